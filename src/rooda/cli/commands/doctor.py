"""`rooda doctor`: is everything there that a run needs, and how to mend what is not."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooda.config.problems import InvalidInput, Problem
from rooda.config.world import World, this_world
from rooda.console.command_table import RESERVED, CliContext
from rooda.console.completion import alias_names
from rooda.console.flags import complete_from, config_option
from rooda.process.ending import INTERRUPTED
from rooda.text.times import parse_duration

if TYPE_CHECKING:
    from rooda.loop.agent_events import AgentSaid

_CHOSEN = " "  # no name of an alias: --canary without one
_MOST_LINES, _LONGEST_LINE = 40, 160  # of what the canary does: it must never fill a pipe


@click.command("doctor")
@click.option(
    "--canary",
    is_flag=False,
    flag_value=_CHOSEN,
    metavar="[ALIAS]",
    shell_complete=complete_from(alias_names),
    help="Run an agent once in a scratch repository, for real: it costs money.",
)
@click.option("--ai-cmd", metavar="CMD", default="", help="Look at, or run, this command instead.")
@click.option(
    "--timeout",
    metavar="DURATION",
    help="How long a program may take to tell its version (10s), and the canary (5m).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@config_option
@click.pass_obj
def doctor(
    session: CliContext,
    /,
    *,
    canary: str | None,
    ai_cmd: str,
    timeout: str | None,
    as_json: bool,
    config: str | None,
) -> int:
    """Look at every agent, git, the disk and the configuration: what is wrong, how to mend it.

    Starts no agent, unless --canary asks for it. Exit code 0 when nothing is broken that the
    configuration chooses, else 1.
    """
    if canary is None:
        return _examine(config, ai_cmd, timeout, as_json=as_json)
    alias = canary.strip()
    if alias and ai_cmd:
        raise click.UsageError("name an alias or give --ai-cmd, not both")
    return _canary(session, config, (alias, ai_cmd), timeout, as_json=as_json)


def _examine(config: str | None, ai_cmd: str, timeout: str | None, *, as_json: bool) -> int:
    from rooda.doctor import report  # noqa: PLC0415 - pressing Tab needs none of it
    from rooda.doctor.examine import examine  # noqa: PLC0415
    from rooda.doctor.surroundings import Wish  # noqa: PLC0415
    from rooda.doctor.versions import PATIENCE  # noqa: PLC0415

    patience = PATIENCE if timeout is None else _seconds(timeout)
    flags = {"ai_cmd": ("--ai-cmd", ai_cmd)} if ai_cmd else {}
    found = examine(_world(), Wish(config, flags), patience, RESERVED)
    text = json.dumps(found.to_json(), indent=2) + "\n" if as_json else report.render(found)
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
    """The machine as it is; a folder that is gone is one more thing to tell, and no end."""
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
    from rooda.doctor.canary import text  # noqa: PLC0415 - pressing Tab needs none of it
    from rooda.doctor.canary.choice import TIMEOUT, choose_canary  # noqa: PLC0415
    from rooda.doctor.canary.run import run_canary  # noqa: PLC0415

    canary = choose_canary(_world(), config, *chosen, timeout or TIMEOUT)
    click.echo(text.introduction(canary), err=True)
    # Deferred from here on: an interruption must not leave the folder behind.
    with session.interrupts.deferred():
        try:
            report = run_canary(canary, session.interrupts, _Lines(canary.discreet))
        except OSError as error:
            advice = "Check the folder for temporary files (TMPDIR), and its disk"
            message = f"there is no room for a scratch repository: {error.strerror or error}"
            raise InvalidInput([Problem(message, advice)]) from None
        if report is None:
            click.echo("Interrupted", err=True)
            return INTERRUPTED
        said = json.dumps(report.to_json(), indent=2) + "\n" if as_json else text.render(report)
        click.echo(said, nl=False)
        return 0 if report.ok else 1


class _Lines:
    """Shows what the agent does, so that whoever waits sees that it lives; the first lines only."""

    def __init__(self, discreet: Callable[[str], str]) -> None:
        self._discreet = discreet
        self._left = _MOST_LINES

    def __call__(self, said: "AgentSaid") -> None:
        words = self._discreet(said.text) if self._left else ""
        if not words:
            return
        self._left -= 1
        words = words if len(words) <= _LONGEST_LINE else f"{words[:_LONGEST_LINE]}..."
        click.echo(f"  [{said.kind}] {words}" if self._left else "  ...", err=True)
