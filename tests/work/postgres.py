"""A real PostgreSQL server of the tests' own, from the programs that are installed.

PostgreSQL refuses to run as root, so there it runs as `nobody`, which every system has.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_SETUP = ("--auth=trust", "--no-sync", "--encoding=UTF8", "--no-locale")
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
}


class Server:
    """A server that can be stopped in every way and started again."""

    def __init__(self, folder: Path, programs: Path, user: dict[str, object]) -> None:
        self._folder = folder
        self._programs = programs
        self._as = {"cwd": folder, "stderr": subprocess.STDOUT, **user}
        self._running: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://tacit@/postgres?host={folder}"

    def make(self) -> None:
        made = subprocess.run(
            [self._programs / "initdb", "-D", self._folder / "data", "-U", "tacit", *_SETUP],
            timeout=120,
            stdout=subprocess.PIPE,
            **self._as,
        )
        if made.returncode:
            pytest.skip(f"PostgreSQL cannot be set up here: {made.stdout[-300:]!r}")

    def start(self) -> None:
        options = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [self._programs / "postgres", "-D", self._folder / "data", "-k", self._folder]
        with open(self._folder / "log", "ab") as log:
            self._running = subprocess.Popen([*command, *options], stdout=log, **self._as)
        _wait(self._running, self.url)

    def stop(self, how: int = signal.SIGINT) -> None:
        """SIGINT ends every connection, SIGQUIT is a crash that leaves recovery to the start."""
        if self._running is not None:
            self._running.send_signal(how)
            self._running.wait(120)
            self._running = None


@contextmanager
def server() -> Iterator[Server]:
    """A running server; the test is skipped, with the reason, if there is none."""
    programs = _programs()
    # Not under pytest's folder: that one is closed to other users. Short, for the socket's sake.
    folder = Path(tempfile.mkdtemp(prefix="tacit-pg-", dir="/tmp"))
    user: dict[str, object] = {}
    if os.geteuid() == 0:
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody")
    made = Server(folder, programs, user)
    try:
        try:
            made.make()
            made.start()
        except (OSError, LookupError) as error:
            pytest.skip(f"PostgreSQL cannot be run here: {error}")
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The folder with `initdb` and `postgres`: Debian keeps it off the path, one a version."""
    kept = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    known = os.pathsep.join([*map(str, reversed(kept)), os.environ["PATH"]])
    initdb = shutil.which("initdb", path=known)
    if initdb is None:
        pytest.skip("no PostgreSQL server is installed; on Debian: apt-get install postgresql")
    return Path(initdb).resolve().parent


def _wait(running: "subprocess.Popen[bytes]", url: str) -> None:
    import psycopg

    end = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError as error:
            if running.poll() is not None or time.monotonic() > end:
                pytest.skip(f"PostgreSQL does not start here: {error}")
            time.sleep(0.05)
