"""The entry point of `rooda`."""

import sys

from rooda.world.process.first_moment import end_quietly_on_ctrl_c, leave_work_tree_out

TYPE_CHECKING = False  # `typing` is imported after `leave_work_tree_out`
if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run `rooda` with the given arguments and return its exit code."""
    end_quietly_on_ctrl_c()
    leave_work_tree_out()
    from rooda.front.entry import front

    return front("rooda", list(sys.argv[1:] if argv is None else argv), _rooda)


def _rooda() -> "click.Command":
    from rooda.front.cli.app import app  # loaded after the signal handlers are installed

    return app
