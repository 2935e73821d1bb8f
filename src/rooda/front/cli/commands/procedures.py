"""`rooda list` and `rooda info`: which procedures there are, and what they do."""

import json

import click

from rooda.base.problems import InvalidInput, Problem, errors, in_order
from rooda.base.secrets.sensitive import without_secret_values
from rooda.front.color import room
from rooda.front.completion import procedure_names
from rooda.front.flags import complete_from, config_option
from rooda.front.options import JSON
from rooda.plan.command import choose, command_of
from rooda.plan.layers import Layers
from rooda.plan.locate import read_layers
from rooda.plan.preflight.validate import unknown_procedure
from rooda.plan.prompts.parts import PHASES
from rooda.plan.resolve import resolve
from rooda.plan.world import this_world
from rooda.views.terminal.table import plain_table


def _load(config: str | None) -> Layers:
    problems: list[Problem] = []
    layers = read_layers(this_world(), config, {}, problems)
    if found := errors(problems):
        raise InvalidInput(in_order(found))
    return layers


def _source(layers: Layers, name: str) -> str:
    for layer in layers.files():
        if name in layer.procedures:
            return layer.procedures[name].origin.exact
    return "built-in"


def _describe(layers: Layers, name: str) -> dict[str, object]:
    phases = layers.phases(name)
    command = command_of(layers, choose(layers, name))
    return {
        "name": name,
        "description": layers.description(name),
        "source": _source(layers, name),
        "max_iterations": resolve(layers, name).iterations.maximum,
        "ai_cmd": without_secret_values(command.text) if command else None,
        "phases": {
            phase: [part.source.name for part in phases[phase].parts] if phase in phases else []
            for phase in PHASES
        },
    }


@click.command("list")
@click.option("--aliases", is_flag=True, help="List the aliases of agent commands instead.")
@JSON
@config_option
def list_(*, aliases: bool, as_json: bool, config: str | None) -> None:
    """List the procedures, or the aliases of agent commands."""
    layers = _load(config)
    rows: list[dict[str, object]]
    if aliases:
        rows = [
            {
                "name": name,
                "command": without_secret_values(held.value.command),
                "source": held.origin.exact,
            }
            for name, held in layers.aliases().items()
        ]
        table = [(str(r["name"]), str(r["source"]), str(r["command"])) for r in rows]
        titles = ("ALIAS", "SOURCE", "COMMAND")
    else:
        rows = [_describe(layers, name) for name in layers.names_to_run()]
        table = [
            (str(r["name"]), _maximum(r["max_iterations"]), str(r["description"])) for r in rows
        ]
        titles = ("PROCEDURE", "ITERATIONS", "WHAT IT DOES")
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        # A command that was cut could be copied and run.
        click.echo(plain_table(titles, table, room=None if aliases else room()), nl=False)


def _maximum(maximum: object) -> str:
    return "unlimited" if maximum is None else str(maximum)


@click.command("info")
@click.argument("procedure", shell_complete=complete_from(procedure_names))
@JSON
@config_option
def info(*, procedure: str, as_json: bool, config: str | None) -> None:
    """Show the phases, prompts and settings of a procedure."""
    layers = _load(config)
    if procedure not in layers.names_to_run():
        raise InvalidInput([unknown_procedure(procedure, layers, frozenset())])
    about = _describe(layers, procedure)
    if as_json:
        click.echo(json.dumps(about, indent=2, ensure_ascii=False))
        return
    rows = [
        ("Procedure", procedure),
        ("Description", str(about["description"])),
        ("Defined in", str(about["source"])),
        ("Max iterations", _maximum(about["max_iterations"])),
        ("AI command", str(about["ai_cmd"] or "none yet (--ai-cmd or --ai-cmd-alias)")),
    ]
    phases = layers.phases(procedure)
    for phase in PHASES:
        parts = phases[phase].parts if phase in phases else ()
        rows.append((phase.upper(), ", ".join(part.source.name for part in parts) or "missing"))
    click.echo(plain_table((), rows, room=room()), nl=False)
    click.echo(f"\nThe whole prompt: rooda {procedure} --dry-run --ai-cmd COMMAND")
