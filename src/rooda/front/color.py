"""The flag `--color`, for every command that prints for people."""

import os
import shutil

import click

from rooda.base.colors import CHOICES, Painter, wants_color
from rooda.front.pager import is_terminal

COLOR = click.option(
    "--color",
    type=click.Choice(CHOICES),
    default="auto",
    help="Print colors; auto: on a terminal, unless NO_COLOR is set.",
)


def painter(choice: str) -> Painter:
    """Return what adds colors to standard output, as the user chose."""
    return Painter(wants_color(choice, os.environ, is_terminal=is_terminal()))


def room() -> int | None:
    """Return the columns of the terminal that is standard output; None if it is something else."""
    return shutil.get_terminal_size().columns if is_terminal() else None
