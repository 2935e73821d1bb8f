"""Turn every way of failing into a message and an exit code."""

import contextlib
import errno
import os
import platform
import sys
import tempfile
import traceback
from datetime import datetime
from io import TextIOWrapper
from pathlib import Path

import click

from rooda import __version__
from rooda.cli.app import Session, app
from rooda.cli.flags import masked
from rooda.config.problems import InvalidInput
from rooda.process.interrupts import Interrupts
from rooda.text.controls import one_line
from rooda.views import problems

USAGE_ERROR = 1
INTERNAL_ERROR = 3

_LONGEST_MESSAGE = 300


def run(arguments: list[str], interrupts: Interrupts) -> int:
    """Run the command and return its exit code; never raises an Exception."""
    _replace_unprintable()
    try:
        result = app.main(
            arguments,
            prog_name="rooda",
            standalone_mode=False,
            obj=Session(interrupts, tuple(arguments)),
        )
    except InvalidInput as invalid:
        _complain(problems.render_all(invalid.problems))
        return USAGE_ERROR
    except click.exceptions.NoArgsIsHelpError as error:
        _complain(f"{error.format_message()}\n\nError: name one of these commands\n")
        return USAGE_ERROR
    except click.UsageError as error:
        _complain(_usage(error))
        return USAGE_ERROR
    except click.ClickException as error:
        _complain(f"Error: {error.format_message()}\n")
        return USAGE_ERROR
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        return 0  # the reader has seen enough
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return _internal(error, arguments)
        _complain(f"Error: {error.strerror}\n  Free some disk space\n")
        return USAGE_ERROR
    except Exception as error:  # noqa: BLE001 - the boundary
        return _internal(error, arguments)
    return result if isinstance(result, int) else 0


def flush(code: int) -> int:
    """Write out what is still in memory; the exit code, or an error where that failed.

    A reader that went away is no error, and must not become one when Python ends.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # started with `>&-`
            continue
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            with contextlib.suppress(OSError, ValueError):
                stream.close()
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                _complain(f"Error: the output can't be written: {error.strerror}\n")
                code = code or USAGE_ERROR
    return code


def _replace_unprintable() -> None:
    """Let no character that the terminal's encoding lacks become an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _usage(error: click.UsageError) -> str:
    lines = [f"Error: {error.format_message()}"]
    if error.ctx is not None:
        lines.append(f"  Try `{error.ctx.command_path} --help`")
    return "\n".join(lines) + "\n"


def _complain(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        click.echo(text, err=True, nl=False)


def _internal(error: Exception, arguments: list[str]) -> int:
    """An error of ours: a short message, and a log fit for a bug report."""
    report = "\n".join(
        [
            f"rooda {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"time: {datetime.now().astimezone().isoformat(timespec='seconds')}",
            # Names of variables alone: values may be secrets.
            f"arguments: {[masked(word) for word in arguments]!r}",
            f"variables: {' '.join(sorted(n for n in os.environ if n.startswith('ROODA_')))}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    words = one_line(str(error))[:_LONGEST_MESSAGE]
    _complain(
        f"Internal error: {type(error).__name__}: {words}\n"
        f"  This is a bug in rooda, not in your setup. Details for a report: {_keep(report)}\n"
    )
    return INTERNAL_ERROR


def _keep(report: str) -> str:
    """Write the report where the user can find it; the name of the file, or why there is none."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
    name = f"crash-{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}.log"
    for folder in (Path(state) / "rooda", Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / name
            file.touch(mode=0o600)
            file.write_text(report, encoding="utf-8", errors="replace")
            return str(file)
    return f"(no log could be written)\n{report}"
