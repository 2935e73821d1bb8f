"""The entry point of `rooda`."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rooda.console.entry import front

if TYPE_CHECKING:
    import click


def main(argv: Sequence[str] | None = None) -> int:
    """Run `rooda` with the given arguments and return its exit code."""
    return front("rooda", list(sys.argv[1:] if argv is None else argv), _rooda)


def _rooda() -> "click.Command":
    from rooda.cli.app import app  # loaded after the signal handlers are installed

    return app
