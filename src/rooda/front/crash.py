"""Reports a bug in rooda: a short message, and a log file for a bug report."""

import contextlib
import os
import platform
import tempfile
import traceback
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from rooda import __version__
from rooda.base.controls import one_line
from rooda.base.secrets.masking import Masker
from rooda.base.system import system_name
from rooda.front.flags import masked
from rooda.world.state.home import NoStateHomeError, state_home

_LONGEST_MESSAGE = 300


def tell(error: Exception, arguments: Sequence[str]) -> None:
    """Print the error to standard error, and write the details to a log file."""
    python = platform.python_version()
    report = "\n".join(
        [
            f"rooda {__version__}, Python {python}, {system_name()}",
            f"time: {datetime.now().astimezone().isoformat(timespec='seconds')}",
            # Only the names of variables: values may be secrets.
            f"arguments: {[masked(word) for word in arguments]!r}",
            f"variables: {' '.join(sorted(n for n in os.environ if n.startswith('ROODA_')))}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    masker = Masker(os.environ)
    report = masker.text(report)
    words = masker.text(one_line(str(error)))[:_LONGEST_MESSAGE]
    message = (
        f"Internal error: {type(error).__name__}: {words}\n"
        f"  This is a bug in rooda, not in your setup. Details for a report: {_keep(report)}\n"
    )
    with contextlib.suppress(OSError, ValueError):
        click.echo(message, err=True, nl=False)


def _keep(report: str) -> str:
    """Write the report to a file and return the name of the file, or the report if that fails."""
    folders = [Path(tempfile.gettempdir())]
    with contextlib.suppress(NoStateHomeError):
        folders.insert(0, state_home(os.environ))
    name = f"crash-{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}.log"
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / name
            file.touch(mode=0o600)
            file.write_text(report, encoding="utf-8", errors="replace")
            return str(file)
    return f"(no log could be written)\n{report}"
