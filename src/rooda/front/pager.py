"""Print a text, through the user's pager if it is longer than the terminal."""

import itertools
import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from rooda.base.widths import width


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def print_paged(pieces: Iterable[str], workspace: Path, *, is_colored: bool = False) -> None:
    """Print the pieces of a text. The memory is bounded: a pager gets them one by one.

    The pager is one outside of the work tree: the agent may have put another one there.
    """
    rest = iter(pieces)
    first = list(_screenful(rest)) if is_terminal() else []
    if not first or _fits(first):
        for piece in itertools.chain(first, rest):
            click.echo(piece, nl=False, color=is_colored)
        return
    # Imported here: a short text needs no program.
    from rooda.world.tools import Tools

    os.environ["PATH"] = Tools(folders=[workspace]).path
    if not is_command(os.environ.get("PAGER", "")):
        del os.environ["PAGER"]  # click then takes the pager of the machine
    # None: click finds out whether the pager shows colors.
    click.echo_via_pager(itertools.chain(first, rest), color=None if is_colored else False)


def is_command(text: str) -> bool:
    """Return whether the text can be split into the words of a command."""
    try:
        shlex.split(text)
    except ValueError:  # such as a quote that is not closed
        return False
    return True


def _screenful(pieces: Iterable[str]) -> Iterable[str]:
    """Take pieces until they do not fit on the terminal."""
    taken: list[str] = []
    for piece in pieces:
        taken.append(piece)
        yield piece
        if not _fits(taken):
            return


def _fits(pieces: Iterable[str]) -> bool:
    columns, rows = shutil.get_terminal_size()
    text = click.unstyle("".join(pieces))
    used = sum(1 + max(0, width(line) - 1) // max(1, columns) for line in text.splitlines())
    return used < rows
