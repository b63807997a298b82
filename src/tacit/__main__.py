"""The `tacit` program. Everyday calls are answered before the command-line library is loaded."""

import gc
import sys

_GARBAGE = (100_000, 50, 50)


def main() -> int:
    """Run the command line and return its exit code."""
    # Looking for garbage among what was just imported, and once more at the end, takes as long as
    # two starts of Python. What runs for long still has its garbage collected, in larger steps.
    gc.set_threshold(*_GARBAGE)
    try:
        return _answer()
    finally:
        gc.freeze()


def _answer() -> int:
    from tacit.ui.cli.fast import answer

    code = answer(sys.argv[1:])
    if code is not None:
        return code
    from tacit.ui.cli.app import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
