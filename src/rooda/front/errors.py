"""Turns every error into a message and an exit code."""

import contextlib
import errno
import os
import sys
from io import TextIOWrapper

import click

from rooda.front.command_table import CliContext
from rooda.world.process.interrupts import Interrupts

USAGE_ERROR = 1
INTERNAL_ERROR = 3


def run(
    arguments: list[str],
    interrupts: Interrupts,
    command: click.Command,
    name: str = "rooda",
    internal_error: int = INTERNAL_ERROR,
) -> int:
    """Run the command and return its exit code; never raises an Exception."""
    _replace_unprintable()
    out = sys.stdout
    try:
        result = command.main(
            arguments,
            prog_name=name,
            standalone_mode=False,
            obj=CliContext(interrupts, tuple(arguments)),
        )
    except click.exceptions.NoArgsIsHelpError as error:
        _complain(_no_command(error))
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
    except SystemExit:
        if sys.stdout is out:
            raise
        return 0  # click turned EPIPE into this; it also replaced the stream
    except Exception as error:  # noqa: BLE001 - the boundary
        return _tell(error, arguments, internal_error)
    return result if isinstance(result, int) else 0


def _tell(error: Exception, arguments: list[str], internal_error: int) -> int:
    """Print what is wrong with the input, or a report of a bug; return the exit code."""
    # Imported here: `rooda --help` needs neither.
    from rooda.base.problems import InvalidInput, problems_text
    from rooda.base.secrets.masking import Masker
    from rooda.front import crash

    if isinstance(error, InvalidInput):
        _complain(Masker(os.environ).text(problems_text(error.problems)))
        return USAGE_ERROR
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        _complain(f"Error: {error.strerror}\n  Free some disk space\n")
        return USAGE_ERROR
    crash.tell(error, arguments)
    return internal_error


def flush(code: int) -> int:
    """Flush the output and return the exit code, which is an error if the flush failed.

    A reader that has closed the pipe is no error. The stream is closed, because Python would
    report that error when it exits.
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
    """Print characters that the terminal's encoding lacks as `?` instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _no_command(error: click.exceptions.NoArgsIsHelpError) -> str:
    ctx = error.ctx
    names = ctx.command.list_commands(ctx) if isinstance(ctx.command, click.Group) else []
    return (
        f"Error: name a command of `{ctx.command_path}`: {', '.join(names)}\n"
        f"  Try `{ctx.command_path} --help`\n"
    )


def _usage(error: click.UsageError) -> str:
    lines = [f"Error: {error.format_message()}"]
    if error.ctx is not None:
        lines.append(f"  Try `{error.ctx.command_path} --help`")
    return "\n".join(lines) + "\n"


def _complain(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        click.echo(text, err=True, nl=False)
