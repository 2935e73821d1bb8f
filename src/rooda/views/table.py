"""Columns of text that fit the terminal."""

import shutil
import sys
from collections.abc import Sequence

from rooda.text.controls import clean


def render_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The rows below their titles; on a terminal the last column is cut to fit."""
    lines = [list(titles), *rows] if titles else list(rows)
    cells = [[clean(cell).replace("\n", " ") for cell in line] for line in lines]
    if not cells:
        return ""
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]) - 1)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    text = ""
    for line in cells:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        text += "  ".join([*padded, line[-1]]).rstrip()[:room] + "\n"
    return text
