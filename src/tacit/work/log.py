"""The worker's log in the data folder: a line an event, kept small."""

import os
import time

from tacit.base import paths

_MOST = 1_000_000


def log_file() -> str:
    return os.path.join(paths.folders().data, "worker.log")


def log(text: str) -> None:
    """Add a line; a log that cannot be written stops nothing."""
    path = log_file()
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {' '.join(text.split())}\n"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > _MOST:
            os.replace(path, path + ".old")
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line)
    except OSError:
        return
