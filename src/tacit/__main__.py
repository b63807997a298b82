"""The `tacit` program. Everyday calls are answered before the command-line library is loaded."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    from tacit.ui.cli.fast import answer

    code = answer(sys.argv[1:])
    if code is not None:
        return code
    from tacit.ui.cli.app import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
