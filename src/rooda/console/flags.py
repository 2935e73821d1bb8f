"""The flags of a run, made from the table of settings."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from rooda.config.kinds import (
    Boolean,
    FolderText,
    Kind,
    OneOf,
    PathText,
    Seconds,
    TextList,
    TextMap,
)
from rooda.config.setting import Setting
from rooda.config.settings import (
    AI_CMD,
    AI_CMD_ALIAS,
    ENV,
    ITERATION_MODE,
    LOG_LEVEL,
    MAX_ITERATIONS,
    SETTINGS,
    SHOW_AI_OUTPUT,
)
from rooda.console.completion import alias_names, procedure_names
from rooda.prompts.parts import PHASES
from rooda.text.times import short_duration

PROMPT, OTHER = "Prompt", "Other"
_LONGEST_SUMMARY = 1000  # characters

_ASSIGNMENT = re.compile(r"^((?:--env=)?[A-Za-z_][A-Za-z0-9_]*=).*", re.DOTALL)

Flags = dict[str, tuple[str, str]]


class MergeRules(Struct, frozen=True):
    """How flags given now replace those of an earlier start. The sets hold names of parameters.

    One of `rivals` replaces the others. The values of `by_name` are NAME=VALUE and are merged by
    NAME. `paths` name files; `texts` are text, or the path of an existing file.
    """

    rivals: tuple[frozenset[str], ...] = ()
    by_name: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


class RunOption(click.Option):
    """An option with its section of the help. `--help` shows the `common` ones."""

    def __init__(
        self, *args: Any, section: str = OTHER, common: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.section = section
        self.common = common


class EqualsOption(RunOption):
    """An option whose value is optional and follows an equals sign: `--resume=RUN`.

    The next word is not its value: in `rooda --resume build` it is the procedure.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option as the user writes it."""
        record = super().get_help_record(ctx)
        return record and (f"{self.opts[-1]}[={self.metavar}]", record[1])


_ALL_FLAGS = f"{__name__}.all_flags"


class EqualsCommand(click.Command):
    """A command with options whose value is optional, and with `--help-all`."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; `--help-all` is one where `--help` is one."""
        params = super().get_params(ctx)
        return [*params, _HELP_ALL] if self.get_help_option_names(ctx) else params

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give an option without a value an empty one."""
        bare = {
            name for param in self.params if isinstance(param, EqualsOption) for name in param.opts
        }
        pairs, rest = _pairs(args, _names_taking_value(self.params))
        words = [(f"{word}=" if word in bare else word, value) for word, value in pairs]
        flat = [word for pair in words for word in pair if word is not None]
        return super().parse_args(ctx, [*flat, *rest])


class PlainGroup(click.Group):
    """A group whose help has whole summaries, in the order in which the commands are defined."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the commands in the order of their definition."""
        return list(self.commands)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every command with its whole summary; click would cut a long one."""
        rows = [
            (name, command.get_short_help_str(limit=_LONGEST_SUMMARY))
            for name, command in self.commands.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class RunCommand(EqualsCommand):
    """A command whose help has sections and examples."""

    examples = ""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        everything = wants_all_flags(ctx)
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                section = param.section if isinstance(param, RunOption) else OTHER
                if everything or getattr(param, "common", True):
                    sections.setdefault(section, []).append(record)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write(self.examples)


def wants_all_flags(ctx: click.Context) -> bool:
    """Return whether the help is that of `--help-all`."""
    return bool(ctx.meta.get(_ALL_FLAGS))


def help_with_all_flags(ctx: click.Context) -> str:
    """Return the help with every flag."""
    ctx.meta[_ALL_FLAGS] = True
    return ctx.get_help()


def _print_all_flags(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(help_with_all_flags(ctx), color=ctx.color)
        ctx.exit()


# Not among the parameters of a command: a record of flags can't contain it.
_HELP_ALL = RunOption(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_all_flags,
    help="Show all flags and exit.",
)


def _help(setting: Setting[Any]) -> str:
    """Return the help of a flag, with its default."""
    if "(default:" in setting.help:
        return setting.help
    return f"{setting.help} [default: {_shown_default(setting)}]"


def _shown_default(setting: Setting[Any]) -> str:
    default = setting.default
    if setting is MAX_ITERATIONS:
        return f"the procedure's own, else {default}"
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(setting.kind, Seconds) and default is not None:
        return short_duration(default)
    return setting.show(default)


def setting_option(setting: Setting[Any]) -> RunOption:
    """Return the flag of a setting."""
    name = setting.flag_name
    if isinstance(setting.kind, Boolean):
        declaration = [f"{name}/--no-{name.removeprefix('--')}"]
        return RunOption(
            [*declaration, _parameter(setting)],
            default=None,
            help=_help(setting),
            section=setting.group,
            common=setting.common,
        )
    declaration = [setting.short, name] if setting.short else [name]
    return RunOption(
        [*declaration, _parameter(setting)],
        metavar=setting.metavar,
        multiple=isinstance(setting.kind, (TextList, TextMap)),
        type=_type(setting.kind),
        help=_help(setting),
        section=setting.group,
        common=setting.common,
        shell_complete=_completer(setting),
    )


class PathHint(click.ParamType[str]):
    """Text that names a file: the shell completes it, and rooda checks it like other settings."""

    name = "path"

    def __init__(self, offer: str = "file") -> None:
        self._offer = offer

    def shell_complete(
        self,
        _ctx: click.Context,
        _param: click.Parameter,
        incomplete: str,
    ) -> list[CompletionItem]:
        """Let the shell complete the name."""
        return [CompletionItem(incomplete, type=self._offer)]


_CONFIG_HELP = (
    "Config file [default: rooda-config.yml here, or in the nearest folder above, up to the top of "
    "the work tree]"
)
# For commands that start no run; a run has this option among its flags.
config_option = click.option("--config", metavar="PATH", type=PathHint(), help=f"{_CONFIG_HELP}.")


def _type(kind: Kind[Any]) -> click.ParamType[Any]:
    if isinstance(kind, PathText):
        return PathHint("dir" if isinstance(kind, FolderText) else "file")
    return click.STRING


def _completer(setting: Setting[Any]) -> Callable[..., list[CompletionItem]] | None:
    """Return what completes the value of a setting."""
    kind = setting.kind
    if setting is AI_CMD_ALIAS:
        return complete_from(alias_names)
    if isinstance(kind, OneOf):
        return complete_from(lambda: list(kind.options))
    return None


def complete_from(names: Callable[[], list[str]]) -> Callable[..., list[CompletionItem]]:
    """Return a completion that offers the names that begin with what was typed."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names() if name.startswith(incomplete)]

    return complete


def _procedure_still_missing(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer procedures: the word after `--resume` is not its value."""
    names = [] if ctx.params.get("procedure") else procedure_names()
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _parameter(setting: Setting[Any]) -> str:
    return "set_" + setting.key.replace(".", "__")


# How flags given now replace those of an earlier run.
RULES = MergeRules(
    rivals=(
        frozenset({"unlimited", _parameter(MAX_ITERATIONS), _parameter(ITERATION_MODE)}),
        frozenset({_parameter(AI_CMD), _parameter(AI_CMD_ALIAS)}),
        frozenset({"verbose", "quiet"}),
        frozenset({"verbose", _parameter(SHOW_AI_OUTPUT)}),
        frozenset({"quiet", _parameter(LOG_LEVEL)}),
    ),
    by_name=frozenset({_parameter(ENV)}),
    paths=frozenset(
        {"config", *(_parameter(one) for one in SETTINGS if isinstance(one.kind, PathText))}
    ),
    texts=frozenset({"contexts", *PHASES}),
)


@cache
def run_options() -> tuple[click.Parameter, ...]:
    """Return every flag of a run; a short cut follows the setting that it stands for."""
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
            help="Text for the prompt, or a file with the text; can be given more than once",
            section=PROMPT,
        )
    ]
    options += [
        RunOption(
            [f"--{phase}"],
            multiple=True,
            metavar="TEXT-or-FILE",
            type=PathHint(),
            help=f"Text or file that replaces the {phase} phase of the procedure",
            section=PROMPT,
        )
        for phase in PHASES
    ]
    options += [
        RunOption(
            ["-d", "--dry-run"],
            is_flag=True,
            help="Check everything and show the prompt; start no agent",
        ),
        RunOption(
            ["--config"],
            metavar="PATH",
            type=PathHint(),
            help=_CONFIG_HELP,
        ),
        EqualsOption(
            ["--resume"],
            metavar="RUN",
            help="Continue the last run of the procedure, or the run RUN, with its flags",
            shell_complete=_procedure_still_missing,
        ),
    ]
    return tuple(options)


_SHORT_CUTS: Mapping[str, list[click.Parameter]] = {
    ITERATION_MODE.key: [
        RunOption(
            ["-u", "--unlimited"],
            is_flag=True,
            help="No limit of iterations (short for --iteration-mode unlimited)",
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
            help="Print only warnings and errors (short for --log-level warn)",
            section=LOG_LEVEL.group,
        )
    ],
}


def without_dry_run(
    arguments: Sequence[str], options: Sequence[click.Parameter] | None = None
) -> list[str]:
    """Return the arguments without `--dry-run`; a value of another option stays.

    `options` are those of the command, if they are not those of a run of rooda.
    """
    taking = _names_taking_value(run_options() if options is None else options)
    pairs, rest = _pairs(arguments, taking)
    kept: list[str] = []
    for written, value in pairs:
        word = _without_d(written, taking)
        if word not in ("--dry-run", "-"):
            kept.append(masked(word) if word.startswith(f"{ENV.flag_name}=") else word)
        if value is not None:
            kept.append(masked(value) if word == ENV.flag_name else value)
    return [*kept, *rest]


def masked(word: str) -> str:
    """Return a word without the value of an environment variable, which may be a secret."""
    return _ASSIGNMENT.sub(r"\1...", word)


def _names_taking_value(options: Sequence[click.Parameter]) -> set[str]:
    """Return the options that take the next word as their value."""
    return {name for option in options if _takes_next_word(option) for name in option.opts}


def _takes_next_word(option: click.Parameter) -> bool:
    is_option = isinstance(option, click.Option) and not isinstance(option, EqualsOption)
    return is_option and not getattr(option, "is_flag", False)


def _pairs(
    arguments: Sequence[str], taking: set[str]
) -> tuple[list[tuple[str, str | None]], list[str]]:
    """Return each word with the next word if that is its value, and the words from `--` on."""
    pairs: list[tuple[str, str | None]] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return pairs, [word, *words]
        wants_value = word in taking or _first_taking(word, taking) == len(word) - 1
        pairs.append((word, next(words, None) if wants_value else None))
    return pairs, []


def _first_taking(word: str, taking: set[str]) -> int | None:
    """Return where, in a word of short flags, the first one is that takes a value."""
    if word.startswith("--") or not word.startswith("-"):
        return None
    return next((place for place, letter in enumerate(word) if f"-{letter}" in taking), None)


def _without_d(word: str, taking: set[str]) -> str:
    """Return a word of short flags without `d`: `-dv` becomes `-v`."""
    if word.startswith("--") or not word.startswith("-"):
        return word
    end = _first_taking(word, taking)
    return word[:end].replace("d", "") + ("" if end is None else word[end:])


def given_flags(parameters: Mapping[str, Any]) -> Flags:
    """Return the settings that the user gave, as `{key: (flag, text)}`."""
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
