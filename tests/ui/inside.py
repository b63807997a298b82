"""A command line run inside the test's process, with streams of its own: it spares a start."""

import io
import json
import sys
from typing import Any, NamedTuple

import pytest

from tacit.ui.cli.app import run


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def tacit(*arguments: str, given: bytes = b"", **environment: str) -> Done:
    """What a command prints and how it ends; a fault of ours is never an answer."""
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (given, b"", b"")]
    before = sys.stdin, sys.stdout, sys.stderr
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        sys.stdin, sys.stdout, sys.stderr = streams
        try:
            code = run(list(arguments))
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
    for stream in streams:
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])  # type: ignore[attr-defined]
    assert code != 70, err
    return Done(code, out, err)


def answer(command: str, *arguments: str, **more: Any) -> Any:
    """What a command prints with --json."""
    done = tacit(command, "--json", *arguments, **more)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def error(code: int, *arguments: str) -> Any:
    """The error that a command ends with, with --json."""
    done = tacit(*arguments, "--json")
    assert (done.returncode, done.stdout) == (code, ""), done.stdout + done.stderr
    return json.loads(done.stderr)["error"]
