"""Chooses the AI command, and checks that it is one."""

import re
import shlex
from collections.abc import Iterable

from msgspec import Struct

from rooda.base.lookup import did_you_mean
from rooda.base.paths import with_home
from rooda.base.problems import BUILTIN, Origin, Problem, Severity
from rooda.base.secrets.sensitive import without_secret_values
from rooda.plan.layers import Alias, ConfigLevel, Layers, Scope, Valued
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import AI_CMD, AI_CMD_ALIAS
from rooda.world.agents.agent_program import Program, program_name, program_of
from rooda.world.agents.registry import COMMANDS

_NAMED_FIRST = ("kiro-cli", "claude", "copilot", "cursor-agent")  # a documented log line
_SHELL_WORDS = ("|", "||", "&&", ";", "&", ">", ">>", "<", "2>&1")


class AgentCommand(Struct, frozen=True):
    """The chosen AI command; the dry run shows its `provenance`.

    `origin` is where the user chose it, `written` where its text is: an alias has its own place.
    """

    text: str
    provenance: str
    origin: Origin
    field: str
    adapter: str | None = None
    alias: str | None = None
    written: Origin = BUILTIN


class Agent(Struct, frozen=True):
    """An agent that a run may start: the command, its words, and the CLI behind it."""

    command: AgentCommand
    argv: tuple[str, ...]
    program: Program

    @classmethod
    def of(cls, command: AgentCommand, argv: tuple[str, ...]) -> "Agent":
        """Return the agent that a command starts."""
        return cls(command, argv, program_of(argv, command.adapter))

    @property
    def name(self) -> str:
        """The name of the agent for users: its alias, or its program."""
        return self.command.alias or program_name(self.argv)


class AgentChoice(Struct, frozen=True):
    """What the layers choose: a direct command or the name of an alias."""

    direct: Valued | None = None
    alias: Valued | None = None


def choose(layers: Layers, procedure: str) -> AgentChoice:
    """Return the choice of the flags, else of the procedure, else of the loop.

    In each of them, a direct command beats an alias.

    A `null` unsets weaker values. An alias in the result of a direct command is the one it beats.
    """
    levels = layers.levels(procedure)
    cleared: set[str] = set()
    for scope in Scope:
        group = [level for level in levels if level.scope is scope]
        direct = _strongest(group, AI_CMD, cleared)
        alias = _strongest(group, AI_CMD_ALIAS, cleared)
        if direct is not None or alias is not None:
            return AgentChoice(direct, alias)
    return AgentChoice()


def _strongest(
    group: Iterable[ConfigLevel], setting: Setting[str | None], cleared: set[str]
) -> Valued | None:
    for level in group:
        valued = level.get(setting.key)
        if valued is None or setting.key in cleared:
            continue
        if valued.value is not None:
            return valued
        cleared.add(setting.key)
    return None


def command_of(layers: Layers, choice: AgentChoice) -> AgentCommand | None:
    """Return the chosen command; None if there is none, or its alias does not exist."""
    if choice.direct is not None:
        chosen = choice.direct
        origin = chosen.origin
        return AgentCommand(chosen.value, str(origin), origin, chosen.field, written=origin)
    if choice.alias is None or choice.alias.value not in layers.aliases():
        return None
    chosen, defined = choice.alias, layers.aliases()[choice.alias.value]
    alias: Alias = defined.value
    provenance = f'{chosen.origin} "{chosen.value}" → {defined.origin.tier.label} alias'
    return AgentCommand(
        alias.command,
        provenance,
        chosen.origin,
        chosen.field,
        alias.adapter,
        chosen.value,
        defined.origin,
    )


def fallbacks_of(
    layers: Layers, words: Iterable[str], origin: Origin, field: str
) -> list[AgentCommand]:
    """Return the commands of the fallbacks, in order; each word is an alias or a command."""
    aliases = layers.aliases()
    found: list[AgentCommand] = []
    for word in words:
        alias: Alias = aliases[word].value if word in aliases else Alias(word)
        name = word if word in aliases else None
        written = aliases[word].origin if word in aliases else origin
        found.append(
            AgentCommand(alias.command, str(origin), origin, field, alias.adapter, name, written)
        )
    return found


def choice_problems(layers: Layers, choice: AgentChoice, procedure: str) -> Iterable[Problem]:
    """Yield the problem that there is no command, an unknown alias, or more than one command."""
    direct, alias = choice.direct, choice.alias
    if direct is None and alias is None:
        yield _nothing_chosen(procedure)
    elif direct is None and alias is not None and alias.value not in layers.aliases():
        yield unknown_alias(layers, alias)
    elif direct and alias and alias.origin.tier >= direct.origin.tier:
        yield direct.problem(
            f"the command {without_secret_values(direct.value)!r} ({direct.origin}) is used, "
            f"not the alias {alias.value!r} ({alias.origin})",
            "Set only one of ai_cmd and ai_cmd_alias; `ai_cmd: null` unsets a weaker one",
            Severity.WARNING,
        )


def unknown_alias(layers: Layers, alias: Valued) -> Problem:
    """Return the problem that the alias does not exist."""
    known = list(layers.aliases())
    return alias.problem(
        f"unknown AI command alias {alias.value!r}",
        did_you_mean(alias.value, known) or f"Known aliases: {', '.join(known)}",
    )


def _nothing_chosen(procedure: str) -> Problem:
    names = ", ".join(dict.fromkeys((*_NAMED_FIRST, *COMMANDS)))
    return Problem(
        "must specify AI command via CLI flag (--ai-cmd or --ai-cmd-alias), "
        "config file (loop.ai_cmd or loop.ai_cmd_alias), "
        f"or built-in alias ({names})",
        f"Example: rooda {procedure} --ai-cmd-alias kiro-cli",
        title="No AI command configured",
    )


def split(text: str, origin: Origin, field: str, problems: list[Problem]) -> tuple[str, ...]:
    """Return the words of a command by the shell's quoting rules; () and a problem if wrong."""
    try:
        words = _words(text)
    except ValueError as error:
        message = f"the AI command can't be split into words: {error}"
        problems.append(Problem.at(origin, field, message, "Check its quotes"))
        return ()
    if not words or not words[0]:
        message = "the AI command names no program"
        problems.append(Problem.at(origin, field, message, "Begin with the name of a program"))
        return ()
    if shell := [word for word in words if word in _SHELL_WORDS]:
        message = f"the AI command is not handed to a shell: {shell[0]!r} is passed on as it is"
        advice = "Put it into a script, or write: sh -c '...'"
        problems.append(Problem.at(origin, field, message, advice, Severity.WARNING))
    return (with_home(words[0]), *words[1:])


def _words(text: str) -> tuple[str, ...]:
    # Text without quotes needs no shlex, which takes minutes for a megabyte.
    if not set(text) & set("'\"\\"):
        return tuple(filter(None, re.split(r"[ \t\r\n]+", text)))
    return tuple(shlex.split(text))
