"""`rooda web`: all runs of this machine in a browser."""

import errno
import os
import socket

import click

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.front.command_table import CliContext
from rooda.front.extras import need_extra
from rooda.front.masking import masker_here
from rooda.plan.world import this_world

_LARGEST_PORT = 65535


@click.command("web")
@click.option(
    "--port",
    type=click.IntRange(0, _LARGEST_PORT),
    metavar="PORT",
    default=0,
    help="Listen on this port [default: a free one, chosen at random].",
)
@click.pass_obj
def web(session: CliContext, /, *, port: int) -> int:
    """Show all runs of this machine in a browser: live, with iterations, diffs and reports.

    The page is read-only, and only for programs on this machine that know the address. It runs
    until Ctrl+C; runs are not affected.
    """
    need_extra("web", "`rooda web`", "starlette", "uvicorn")
    from rooda.front.web.server import listen, serve
    from rooda.front.web.sources import Sources

    world = this_world()
    try:
        listener = listen(port)
    except OSError as error:
        raise _refused(error, port) from None
    with listener:
        sources = Sources(world.environ)
        serve(listener, sources, world.folder, session.interrupts, _tell, _report_fault)
    return 0


def _tell(address: str, port: int) -> None:
    click.echo(f"Open {address}")
    host = socket.gethostname() if os.environ.get("SSH_CONNECTION") else "HOST"
    click.echo(f"From another machine: ssh -L {port}:127.0.0.1:{port} {host}", err=True)
    click.echo("Ctrl+C ends the page; the runs go on.", err=True)


def _report_fault(where: str, error: Exception) -> None:
    """Print a fault of rooda; the page goes on."""
    words = masker_here().text(f"{type(error).__name__}: {error}")
    click.echo(f"Fault at {where}: {one_line(words)}", err=True)


def _refused(error: OSError, port: int) -> InvalidInput:
    if error.errno == errno.EADDRINUSE:
        message = f"port {port} is in use by another program"
    else:
        message = f"rooda can't listen on port {port}: {error.strerror}"
    return InvalidInput([Problem(message, "Choose another one with --port, or leave it out")])
