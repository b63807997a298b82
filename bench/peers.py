"""The programs to compare with, each in an environment of its own, kept between runs."""

import os
import subprocess
import sys

import msgspec

HERMES = "hermes-agent==0.19.0"
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Peer(msgspec.Struct, frozen=True):
    """An installed peer, or why it is missing."""

    requirement: str
    python: str = ""
    missing: str = ""


def install(requirement: str) -> Peer:
    """Install a peer into `.cache/bench/`; the second time there is nothing to do."""
    folder = os.path.join(_ROOT, ".cache", "bench", requirement.replace("==", "-"))
    python = os.path.join(folder, "bin", "python")
    done = os.path.join(folder, "installed")
    if os.path.exists(done):
        return Peer(requirement, python)
    print(f"bench: installing {requirement} into {folder} (once)", file=sys.stderr)
    lock = os.path.join(_ROOT, "scripts", "locks", f"{requirement.partition('==')[0]}.txt")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = (
        [sys.executable, "-m", "venv", "--clear", folder],
        [*pip, "--constraint", lock, requirement],
    )
    for step in steps:
        ran = subprocess.run(step, capture_output=True, text=True, check=False)
        if ran.returncode:
            why = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
            return Peer(requirement, missing=f"{requirement} cannot be installed: {why}")
    with open(done, "w", encoding="utf-8") as file:
        file.write(requirement + "\n")
    return Peer(requirement, python)
