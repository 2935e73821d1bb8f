"""The flags of a run, made from the table of settings."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from rooda.cli.names import alias_names
from rooda.config.kinds import Boolean, Choice, FolderText, Kind, PathText, TextList, TextMap
from rooda.config.settings import (
    AI_CMD_ALIAS,
    ENV,
    ITERATION_MODE,
    LOG_LEVEL,
    SETTINGS,
    SHOW_AI_OUTPUT,
    Setting,
)
from rooda.prompts.parts import PHASES

PROMPT, OTHER = "Prompt", "Other"

_ASSIGNMENT = re.compile(r"^((?:--env=)?[A-Za-z_][A-Za-z0-9_]*=).*", re.DOTALL)

Flags = dict[str, tuple[str, str]]


class RunOption(click.Option):
    """An option that knows its section of the help."""

    def __init__(self, *args: Any, section: str = OTHER, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class RunCommand(click.Command):
    """A command whose help is grouped and carries examples."""

    examples = ""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                section = param.section if isinstance(param, RunOption) else OTHER
                sections.setdefault(section, []).append(record)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write(self.examples)


def setting_option(setting: Setting[Any]) -> RunOption:
    """The flag of a row."""
    name = setting.flag_name
    if isinstance(setting.kind, Boolean):
        declaration = [f"{name}/--no-{name.removeprefix('--')}"]
        return RunOption(
            [*declaration, _parameter(setting)],
            default=None,
            help=setting.help,
            section=setting.group,
        )
    declaration = [setting.short, name] if setting.short else [name]
    return RunOption(
        [*declaration, _parameter(setting)],
        metavar=setting.kind.metavar,
        multiple=isinstance(setting.kind, (TextList, TextMap)),
        type=_type(setting.kind),
        help=setting.help,
        section=setting.group,
        shell_complete=_completer(setting),
    )


class PathHint(click.ParamType[str]):
    """Text that names a file: the shell offers files, and the check is ours, with all others."""

    name = "path"

    def __init__(self, offer: str = "file") -> None:
        self._offer = offer

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's form
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type=self._offer)]


# For the commands that read; a run has its own among its flags.
config_option = click.option(
    "--config", metavar="PATH", type=PathHint(), help="Config file instead of ./rooda-config.yml."
)


def _type(kind: Kind[Any]) -> click.ParamType[Any]:
    if isinstance(kind, PathText):
        return PathHint("dir" if isinstance(kind, FolderText) else "file")
    return click.STRING


def _completer(setting: Setting[Any]) -> Callable[..., list[CompletionItem]] | None:
    """What Tab offers for a row's value."""
    kind = setting.kind
    if setting is AI_CMD_ALIAS:
        return complete_from(alias_names)
    if isinstance(kind, Choice):
        return complete_from(lambda: list(kind.options))
    return None


def complete_from(names: Callable[[], list[str]]) -> Callable[..., list[CompletionItem]]:
    """A completion that offers the names with what was typed in front."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names() if name.startswith(incomplete)]

    return complete


def _parameter(setting: Setting[Any]) -> str:
    return "set_" + setting.key.replace(".", "__")


def run_options() -> list[click.Parameter]:
    """Every flag of a run, the short cuts with the rows that they stand for."""
    options: list[click.Parameter] = []
    for setting in SETTINGS:
        options.append(setting_option(setting))
        options += _SHORT_CUTS.get(setting.key, [])
    options += [
        RunOption(
            ["-c", "--context", "contexts"],
            multiple=True,
            metavar="TEXT-or-FILE",
            type=PathHint(),
            help="Add to the prompt: a file that exists is read, anything else is text",
            section=PROMPT,
        )
    ]
    options += [
        RunOption(
            [f"--{phase}"],
            multiple=True,
            metavar="TEXT-or-FILE",
            type=PathHint(),
            help=f"Replace the {phase} phase",
            section=PROMPT,
        )
        for phase in PHASES
    ]
    options += [
        RunOption(
            ["-d", "--dry-run"], is_flag=True, help="Check and show everything, start nothing"
        ),
        RunOption(
            ["--config"],
            metavar="PATH",
            type=PathHint(),
            help="Config file instead of ./rooda-config.yml",
        ),
    ]
    return options


_SHORT_CUTS: Mapping[str, list[click.Parameter]] = {
    ITERATION_MODE.key: [
        RunOption(
            ["-u", "--unlimited"],
            is_flag=True,
            help="No limit (short for --iteration-mode unlimited)",
            section=ITERATION_MODE.group,
        )
    ],
    SHOW_AI_OUTPUT.key: [
        RunOption(
            ["-v", "--verbose"],
            is_flag=True,
            help="Stream the agent's output (short for --show-ai-output)",
            section=SHOW_AI_OUTPUT.group,
        )
    ],
    LOG_LEVEL.key: [
        RunOption(
            ["-q", "--quiet"],
            is_flag=True,
            help="Print warnings and errors alone (short for --log-level warn)",
            section=LOG_LEVEL.group,
        )
    ],
}


def without_dry_run(arguments: Sequence[str]) -> list[str]:
    """The arguments of the run that a dry run stands for; a value that looks like it stays."""
    taking = {name for option in run_options() if _takes_value(option) for name in option.opts}
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return [*kept, word, *words]
        if not word.startswith("--") and word.startswith("-") and len(word) > 1:
            word, wants_value = _cluster(word, taking)  # noqa: PLW2901 - `-dv` becomes `-v`
        else:
            wants_value = word in taking
        if word not in ("--dry-run", "-"):
            kept.append(masked(word) if word.startswith(f"{ENV.flag_name}=") else word)
        if wants_value and (value := next(words, None)) is not None:
            kept.append(masked(value) if word == ENV.flag_name else value)
    return kept


def masked(word: str) -> str:
    """A word without the value of an environment variable, which may be a secret."""
    return _ASSIGNMENT.sub(r"\1...", word)


def _takes_value(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and not option.is_flag


def _cluster(word: str, taking: set[str]) -> tuple[str, bool]:
    """Short flags in one word without their `d`, and whether the next word is a value."""
    for place, letter in enumerate(word[1:], 1):
        if f"-{letter}" in taking:
            return "-" + word[1:place].replace("d", "") + word[place:], place == len(word) - 1
    return "-" + word[1:].replace("d", ""), False


def given_flags(parameters: Mapping[str, Any]) -> Flags:
    """The settings that were given, as `{key: (flag, text)}`."""
    if parameters["verbose"] and parameters["quiet"]:
        raise click.UsageError("--verbose and --quiet can't be given together")
    flags: Flags = {}
    # Short cuts first, so that the long form wins where both were given.
    if parameters["unlimited"]:
        flags[ITERATION_MODE.key] = ("--unlimited", "unlimited")
    if parameters["verbose"]:
        flags[SHOW_AI_OUTPUT.key] = ("--verbose", "true")
    if parameters["quiet"]:
        flags[LOG_LEVEL.key] = ("--quiet", "warn")
    for setting in SETTINGS:
        value = parameters[_parameter(setting)]
        if value is None or value == ():
            continue
        name = setting.flag_name
        if isinstance(value, bool):
            flag = name if value else f"--no-{name.removeprefix('--')}"
            flags[setting.key] = (flag, "true" if value else "false")
        elif isinstance(value, tuple):
            flags[setting.key] = (name, shlex.join(value))
        else:
            flags[setting.key] = (name, value)
    return flags
