"""What a prompt pays for `tacit prompt-status`, as a ratio to a bare Python start.

`python bench/prompt_status.py [ROUNDS]`. Runs both by turns, so that a busy machine slows both, and
compares the medians: without a line to tell, as at nearly every prompt, and with one.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def timed(command: list[str], environment: dict[str, str]) -> float:
    """Milliseconds that `command` takes."""
    begin = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000


def main() -> int:
    """Print the medians and their ratios; 1 when one of them is more than two."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    program = [str(Path(sys.executable).parent / "tacit"), "prompt-status"]
    bare: list[float] = []
    silent: list[float] = []
    telling: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.defpath, "HOME": home, "TACIT_HOME": home}
        data = Path(home) / "data"
        data.mkdir(mode=0o700)
        for _ in range(rounds):
            bare.append(timed([sys.executable, "-c", "pass"], environment))
            silent.append(timed(program, environment))
            (data / "prompt-status").write_text("tacit: learned the skill x\n1\n")
            telling.append(timed(program, environment))
    base = statistics.median(bare)
    print(f"python -c pass                      {base:6.1f} ms")
    worst = 0.0
    for name, taken in (("nothing to tell", silent), ("a line to tell", telling)):
        middle = statistics.median(taken)
        worst = max(worst, middle / base)
        print(f"tacit prompt-status, {name:<15}{middle:6.1f} ms   ratio {middle / base:.2f}")
    return 0 if worst <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
