"""`rooda init`, `rooda config show|check|schema`, `rooda completion` and `rooda version`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click
from click.shell_completion import get_completion_class

from rooda import __version__
from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.base.paths import first_names
from rooda.base.problems import InvalidInput, Problem, errors, in_order, problems_text
from rooda.front.command_table import RESERVED, CliContext
from rooda.front.flags import config_option
from rooda.front.options import JSON, PlainGroup
from rooda.plan.first_config import Proposals, find_proposals, line_of, template
from rooda.plan.inspect import Inspection, inspect
from rooda.plan.locate import CONFIG_NAME, file_above
from rooda.plan.settings.json_schema import schema as json_schema
from rooda.plan.settings.settings import AI_CMD_ALIAS
from rooda.plan.world import this_world
from rooda.views.messages.targets import unusable_addresses
from rooda.views.terminal import config_view


@click.group("config", cls=PlainGroup)
def group() -> None:
    """Show, check and describe the configuration."""


def _inspect(config: str | None, procedure: str = "") -> Inspection:
    return inspect(this_world(), config=config, procedure=procedure, commands=RESERVED)


@group.command("show")
@click.argument("procedure", default="")
@JSON
@config_option
def show(*, procedure: str, as_json: bool, config: str | None) -> int:
    """Show every setting, its value and where the value came from.

    With PROCEDURE: as they hold for that procedure.
    """
    found = _inspect(config, procedure)
    text = config_view.as_json(found) if as_json else config_view.as_yaml(found)
    click.echo(text, nl=False)
    click.echo(problems_text(found.problems), err=True, nl=False)
    return 1 if errors(found.problems) else 0


@group.command("check")
@config_option
def check(*, config: str | None) -> int:
    """Check the config files and everything that they name; all problems at once."""
    found = _inspect(config)
    problems = in_order([*found.problems, *unusable_addresses(found.values)])
    click.echo(problems_text(problems), err=True, nl=False)
    wrong = errors(problems)
    if wrong:
        click.echo(f"{count(len(wrong), 'error')} found.", err=True)
        return 1
    names = [layer.file for layer in found.layers.files() if layer.file]
    files = ", ".join(names) or "no config file, so the built-in defaults"
    click.echo(f"OK: {files}")
    return 0


@group.command("schema")
def schema() -> None:
    """Print the JSON Schema of rooda-config.yml, for editors."""
    click.echo(json.dumps(json_schema(), indent=2))


@click.command("init")
@click.pass_obj
def init(session: CliContext, /) -> None:
    """Find agents and tests, and write a commented rooda-config.yml here.

    The file proposes what was found. A file that exists stays as it is. No program is started.
    """
    world = this_world()
    proposals = find_proposals(world)
    text = template(proposals)
    try:
        with (
            session.interrupts.deferred(),
            Path(CONFIG_NAME).open("x", encoding="utf-8") as file,
        ):
            _write_whole(file, text)
    except FileExistsError:
        problem = Problem(
            f"{CONFIG_NAME} exists already and is left as it is",
            "Edit it, or move it away first; `rooda config check` checks it",
        )
        raise InvalidInput([problem]) from None
    except OSError as error:
        problem = Problem(f"{CONFIG_NAME} can't be written: {error.strerror}", "Check the folder")
        raise InvalidInput([problem]) from None
    above = file_above(world)
    instead = f" In this folder it replaces {os.path.relpath(above)}." if above else ""
    click.echo(f"Wrote {CONFIG_NAME}.{instead}")
    for line in _init_report(proposals, text):
        click.echo(line)


def _init_report(proposals: Proposals, text: str) -> Iterator[str]:
    """Yield what was found, what the file makes of it, how to change that, and what to do next."""
    agent = f"line {line_of(text, AI_CMD_ALIAS.key)}"
    verify = f"lines {line_of(text, 'verify')} and {line_of(text, 'command')}"
    found = ", ".join(proposals.agents)
    if proposals.chosen_in:
        yield f"Agent: as {one_line(proposals.chosen_in)} says. Choose another one in {agent}"
    elif len(proposals.agents) > 1:
        yield f"Agent: {proposals.agent}, the first that was found ({found}). Change it in {agent}"
    elif proposals.agents:
        yield f"Agent: {found}, the only one that was found. Change it in {agent}"
    else:
        yield "Agent: none found. Install one (`rooda doctor` says how)"
        yield f"  Then remove the # in {agent}, and name it there"
    if proposals.tests:
        one = proposals.tests[0]
        yield f"Tests: `{one.command}` ({one.reason}), not in use yet"
        yield f"  Remove the # in {verify}: then an iteration fails if the tests fail"
    else:
        yield "Tests: none found"
        yield f"  Remove the # in {verify}, and name the command that tests your project there"
    protect = f"lines {line_of(text, 'protect')} and {line_of(text, 'paths')}"
    yield f"Protect: {first_names(proposals.protect)}, not in use yet"
    yield f"  Remove the # in {protect}: then rooda restores them if an agent changes them"
    yield "Next:"
    yield "  rooda doctor                      check the agent and the machine"
    yield "  rooda build --dry-run             show what a run would do"
    yield "  rooda loop PROMPT.md --dry-run    the same for a prompt of your own"


def _write_whole(file: TextIO, text: str) -> None:
    """Write all of it, or leave nothing: half a file would stop the next try."""
    try:
        file.write(text)
        file.flush()
    except OSError:
        Path(file.name).unlink(missing_ok=True)
        raise


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    bash: eval "$(rooda completion bash)" in ~/.bashrc; zsh likewise in ~/.zshrc;
    fish: rooda completion fish > ~/.config/fish/completions/rooda.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    root = ctx.find_root().command
    click.echo(found(root, {}, "rooda", "_ROODA_COMPLETE").source())


@click.command("version")
def version() -> None:
    """Show the version."""
    click.echo(f"rooda {__version__}")
