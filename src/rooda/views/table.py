"""Columns of text that fit the terminal."""

import shutil
import sys
from collections.abc import Sequence

from rooda.text.controls import clean


def render_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, whole: bool = False
) -> str:
    """The rows below their titles; on a terminal the last column is cut to fit, unless `whole`."""
    lines = [list(titles), *rows] if titles else list(rows)
    cells = [[clean(cell).replace("\n", " ") for cell in line] for line in lines]
    if not cells:
        return ""
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]) - 1)]
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    room = shutil.get_terminal_size().columns if on_terminal and not whole else None
    text = ""
    for line in cells:
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        row = "  ".join([*padded, line[-1]]).rstrip()
        text += (row if room is None or len(row) <= room else f"{row[: room - 1]}…") + "\n"
    return text
