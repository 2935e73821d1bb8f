"""The entry point of `ralph`."""

import sys


def main() -> int:
    """Say plainly that this command is not there yet."""
    sys.stderr.write("ralph is not built yet; `rooda` is. See CHANGELOG.md for what comes when.\n")
    return 1
