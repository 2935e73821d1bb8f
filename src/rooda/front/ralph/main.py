"""The entry point of `ralph`."""

import sys

from rooda.world.process.first_moment import end_quietly_on_ctrl_c, leave_work_tree_out

TYPE_CHECKING = False  # `typing` is imported after `leave_work_tree_out`
if TYPE_CHECKING:
    from collections.abc import Sequence

    import click


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run `ralph` with the given arguments and return its exit code."""
    end_quietly_on_ctrl_c()
    leave_work_tree_out()
    from rooda.front.entry import front

    arguments = list(sys.argv[1:] if argv is None else argv)
    return front("ralph", arguments, _ralph, internal_error=1)  # 3 means that tests failed


def _ralph() -> "click.Command":
    from rooda.front.ralph.app import app  # loaded after the signal handlers are installed

    return app
