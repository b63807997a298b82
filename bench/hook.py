"""What a hook costs, as a ratio to a bare Python start: `python bench/hook.py [ROUNDS]`.

Runs both by turns, so that a busy machine slows both, and compares the medians.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAYLOAD = b'{"session_id":"b4a27079","transcript_path":"/x/y.jsonl","hook_event_name":"Stop"}'


def timed(command: list[str], environment: dict[str, str]) -> float:
    """Milliseconds that `command` takes."""
    begin = time.perf_counter()
    subprocess.run(command, input=PAYLOAD, env=environment, check=True)
    return (time.perf_counter() - begin) * 1000


def main() -> int:
    """Print the medians and their ratio; 1 when the hook takes more than twice a bare start."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    hook = Path(sys.executable).parent / "tacit-hook"
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.defpath, "HOME": home, "TACIT_HOME": home}
        data = Path(home) / "data"
        data.mkdir(mode=0o700)
        (data / "worker.starting").touch()
        kinds = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "tacit-hook": [str(hook), "claude-code", "Stop"],
        }
        taken: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, command in kinds.items():
                taken[name].append(timed(command, environment))
        recorded = len(list((data / "events").glob("*.event")))
        shutil.rmtree(data)
    assert recorded == rounds, f"{recorded} events of {rounds}"
    bare, ours = (statistics.median(taken[name]) for name in kinds)
    print(f"python -c pass  {bare:6.1f} ms\ntacit-hook      {ours:6.1f} ms")
    print(f"ratio           {ours / bare:6.2f}   (at most 2)")
    return 0 if ours / bare <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
