"""`rooda init`, `rooda config show|check|schema`, `rooda completion` and `rooda version`."""

import json
import os
from pathlib import Path
from typing import TextIO

import click
from click.shell_completion import get_completion_class

from rooda import __version__
from rooda.config.inspect import Inspection, inspect
from rooda.config.json_schema import schema as json_schema
from rooda.config.locate import CONFIG_NAME, file_above
from rooda.config.problems import InvalidInput, Problem, errors, problems_text
from rooda.config.template import template
from rooda.config.world import this_world
from rooda.console.command_table import RESERVED, CliContext
from rooda.console.flags import config_option
from rooda.console.options import PlainGroup
from rooda.text.numbers import count
from rooda.views import config_view


@click.group("config", cls=PlainGroup)
def group() -> None:
    """Show, check and describe the configuration."""


def _inspect(config: str | None, procedure: str = "") -> Inspection:
    return inspect(this_world(), config=config, procedure=procedure, commands=RESERVED)


@group.command("show")
@click.argument("procedure", default="")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    click.echo(problems_text(found.problems), err=True, nl=False)
    wrong = errors(found.problems)
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
    """Write a commented rooda-config.yml here; never overwrites one."""
    try:
        text = template(os.environ)
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
    above = file_above(this_world())
    instead = f" In this folder it replaces {os.path.relpath(above)}." if above else ""
    click.echo(f"Wrote {CONFIG_NAME}.{instead} Next: choose an agent in it, then `rooda list`.")


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
