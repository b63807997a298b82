"""A real PostgreSQL server of the tests' own, from the programs that are installed.

PostgreSQL refuses to run as root, so there it runs as `nobody`, which every system has.
"""

import os
import shutil
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


@contextmanager
def server() -> Iterator[str]:
    """The address of a running server; the test is skipped, with the reason, if there is none."""
    programs = _programs()
    # Not under pytest's folder: that one is closed to other users. Short, for the socket's sake.
    folder = Path(tempfile.mkdtemp(prefix="tacit-pg-", dir="/tmp"))
    user: dict[str, object] = {}
    if os.geteuid() == 0:
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody")
    quiet = {"cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **user}
    data = folder / "data"
    try:
        made = subprocess.run(
            [programs / "initdb", "-D", data, "-U", "tacit", *_SETUP],
            timeout=120,
            **quiet,
        )
    except (OSError, LookupError, PermissionError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"PostgreSQL cannot be run here: {error}")
    if made.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"PostgreSQL cannot be set up here: {made.stdout[-300:]!r}")
    options = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
    with open(folder / "log", "wb") as log:
        running = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, *options],
            **{**quiet, "stdout": log, "stderr": log},
        )
    try:
        _wait(running, folder)
        yield f"postgresql://tacit@/postgres?host={folder}"
    finally:
        running.terminate()
        running.wait(120)
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The folder with `initdb` and `postgres`: Debian keeps it off the path, one a version."""
    kept = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    known = os.pathsep.join([*map(str, reversed(kept)), os.environ["PATH"]])
    initdb = shutil.which("initdb", path=known)
    if initdb is None:
        pytest.skip("no PostgreSQL server is installed; on Debian: apt-get install postgresql")
    return Path(initdb).resolve().parent


def _wait(running: "subprocess.Popen[bytes]", folder: Path) -> None:
    import psycopg

    end = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(f"postgresql://tacit@/postgres?host={folder}").close()
            return
        except psycopg.OperationalError as error:
            if running.poll() is not None or time.monotonic() > end:
                pytest.skip(f"PostgreSQL does not start here: {error}")
            time.sleep(0.05)
