"""Every agent that can be named here, and who has chosen which."""

from collections.abc import Iterator
from dataclasses import dataclass

from rooda.config.command import AgentCommand, choose, command_of, fallbacks_of
from rooda.config.layers import Alias, Layers
from rooda.config.resolve import resolve
from rooda.config.settings import AI_CMD_FALLBACKS


@dataclass(frozen=True, slots=True)
class Candidate:
    """An alias, or a command that was chosen without one; `chosen_by` is empty if nobody did."""

    command: AgentCommand
    source: str
    chosen_by: tuple[str, ...] = ()


def candidates(layers: Layers) -> list[Candidate]:
    """The aliases in their order, then the commands that have no name."""
    wishes: dict[tuple[str | None, str], list[str]] = {}
    direct: dict[str, AgentCommand] = {}
    for command in _wishes(layers):
        who = f"{command.field} ({command.origin.exact})"
        wishes.setdefault((command.alias, command.text), []).append(who)
        if command.alias is None:
            direct.setdefault(command.text, command)
    found = [(_alias(layers, name), layers.aliases()[name].origin.exact) for name in _names(layers)]
    found += [(command, command.origin.exact) for command in direct.values()]
    return [
        Candidate(command, source, tuple(dict.fromkeys(wishes.get(_key(command), []))))
        for command, source in found
    ]


def _key(command: AgentCommand) -> tuple[str | None, str]:
    return command.alias, command.text


def _names(layers: Layers) -> list[str]:
    return list(layers.aliases())


def _alias(layers: Layers, name: str) -> AgentCommand:
    defined = layers.aliases()[name]
    alias: Alias = defined.value
    origin = defined.origin
    return AgentCommand(alias.command, str(origin), origin, defined.field, alias.adapter, name)


def _wishes(layers: Layers) -> Iterator[AgentCommand]:
    """What the loop and every procedure would start, and what may stand in for it."""
    for procedure in ("", *layers.procedure_names()):
        command = command_of(layers, choose(layers, procedure))
        if command is not None:
            yield command
        values = resolve(layers, procedure)
        origin, field = values.origin(AI_CMD_FALLBACKS), values.field(AI_CMD_FALLBACKS)
        words = values[AI_CMD_FALLBACKS]
        yield from fallbacks_of(layers, words, origin, field)
