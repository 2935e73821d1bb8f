"""The entry point of `ralph`."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rooda.console.entry import front

if TYPE_CHECKING:
    import click


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ralph` with the given arguments and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return front("ralph", arguments, _ralph, internal_error=1)  # 3 means that tests failed


def _ralph() -> "click.Command":
    from rooda.ralph.app import app  # loaded after the signal handlers are installed

    return app
