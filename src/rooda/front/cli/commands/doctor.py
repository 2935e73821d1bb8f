"""`rooda doctor`: check everything that a run needs, and say how to correct what is wrong."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooda.base.problems import InvalidInput, Problem
from rooda.base.times import parse_duration
from rooda.front.command_table import RESERVED, CliContext
from rooda.front.completion import alias_names
from rooda.front.flags import complete_from, config_option
from rooda.front.options import JSON
from rooda.plan.world import World, this_world
from rooda.world.process.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from rooda.loop.events.agent import AgentSaid

_CHOSEN = " "  # no name of an alias: --canary without one
_MOST_LINES, _LONGEST_LINE = 40, 160  # of what the canary does: it must never fill a pipe


@click.command("doctor")
@click.option(
    "--canary",
    is_flag=False,
    flag_value=_CHOSEN,
    metavar="[ALIAS]",
    shell_complete=complete_from(alias_names),
    help="Run a real agent once in a scratch repository; this costs money.",
)
@click.option(
    "--ai-cmd",
    metavar="CMD",
    default="",
    help="Check or run this command instead.",
)
@click.option(
    "--timeout",
    metavar="DURATION",
    help="Time limit [default: 10s for a program to print its version, 5m for the canary].",
)
@click.option(
    "--fleet",
    is_flag=True,
    help="Check also what `rooda fleet` needs: database, git remote, slots.",
)
@JSON
@config_option
@click.pass_obj
def doctor(
    session: CliContext,
    /,
    *,
    canary: str | None,
    ai_cmd: str,
    timeout: str | None,
    fleet: bool,
    as_json: bool,
    config: str | None,
) -> int:
    """Check every agent, git, the disk and the configuration, and advise what to do.

    Starts no agent, unless --canary asks for it. The exit code is 1 if something is broken that
    the configuration chooses or needs, else 0.
    """
    if canary is None:
        return _examine(config, ai_cmd, timeout, fleet=fleet, as_json=as_json)
    if fleet:
        raise click.UsageError("ask for --canary or for --fleet, not for both")
    alias = canary.strip()
    if alias and ai_cmd:
        raise click.UsageError("name an alias or give --ai-cmd, not both")
    return _canary(session, config, (alias, ai_cmd), timeout, as_json=as_json)


def _examine(
    config: str | None, ai_cmd: str, timeout: str | None, *, fleet: bool, as_json: bool
) -> int:
    # Imported here, because shell completion needs none of it.
    from rooda.front.doctor.doctor_context import DoctorOptions
    from rooda.front.doctor.examine import examine
    from rooda.front.doctor.programs import VERSION_TIMEOUT
    from rooda.front.doctor.report_text import examination_text

    limit = VERSION_TIMEOUT if timeout is None else _seconds(timeout)
    flags = {"ai_cmd": ("--ai-cmd", ai_cmd)} if ai_cmd else {}
    found = examine(_world(), DoctorOptions(config, flags, fleet), limit, RESERVED)
    text = json.dumps(found.to_json(), indent=2) + "\n" if as_json else examination_text(found)
    click.echo(text, nl=False)
    return 1 if found.problems else 0


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidInput([Problem("not a time", "Write `10s` or `2m`", field="--timeout")])
    return seconds


def _world() -> World:
    """Return this machine; a working directory that is gone is a finding, not an error."""
    try:
        return this_world()
    except InvalidInput:
        return World(Path(os.environ.get("PWD") or "/").absolute(), os.environ)


def _canary(
    session: CliContext,
    config: str | None,
    chosen: tuple[str, str],
    timeout: str | None,
    *,
    as_json: bool,
) -> int:
    # Imported here, because shell completion needs none of it.
    from rooda.front.doctor.canary import TIMEOUT, choose_canary, run_canary
    from rooda.front.doctor.report_text import canary_introduction, canary_text

    canary = choose_canary(_world(), config, *chosen, timeout or TIMEOUT)
    click.echo(canary_introduction(canary), err=True)
    # From here on signals wait: an interrupt must not leave the scratch folder behind.
    with session.interrupts.deferred():
        try:
            report = run_canary(canary, session.interrupts, _Lines(canary.without_secrets))
        except OSError as error:
            advice = "Check the folder for temporary files (TMPDIR), and the free space on its disk"
            message = f"could not create a scratch repository: {error.strerror or error}"
            raise InvalidInput([Problem(message, advice)]) from None
        if report is None:
            click.echo("Interrupted", err=True)
            return INTERRUPTED
        said = json.dumps(report.to_json(), indent=2) + "\n" if as_json else canary_text(report)
        click.echo(said, nl=False)
        return 0 if report.ok else 1


class _Lines:
    """Shows the first lines of what the agent does, so that the user sees that it works."""

    def __init__(self, without_secrets: Callable[[str], str]) -> None:
        self._without_secrets = without_secrets
        self._left = _MOST_LINES

    def __call__(self, said: "AgentSaid") -> None:
        words = self._without_secrets(said.text) if self._left else ""
        if not words:
            return
        self._left -= 1
        words = words if len(words) <= _LONGEST_LINE else f"{words[:_LONGEST_LINE]}..."
        click.echo(f"  [{said.kind}] {words}" if self._left else "  ...", err=True)
