"""Turn every way of failing into a message and an exit code."""

import contextlib
import errno
import sys
from io import TextIOWrapper

import click

from rooda.config.problems import InvalidInput, problems_text
from rooda.console import crash
from rooda.console.command_table import CliContext
from rooda.process.interrupts import Interrupts

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
    try:
        result = command.main(
            arguments,
            prog_name=name,
            standalone_mode=False,
            obj=CliContext(interrupts, tuple(arguments)),
        )
    except InvalidInput as invalid:
        _complain(problems_text(invalid.problems))
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
            return _internal(error, arguments, internal_error)
        _complain(f"Error: {error.strerror}\n  Free some disk space\n")
        return USAGE_ERROR
    except Exception as error:  # noqa: BLE001 - the boundary
        return _internal(error, arguments, internal_error)
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


def _internal(error: Exception, arguments: list[str], code: int) -> int:
    crash.tell(error, arguments)
    return code
