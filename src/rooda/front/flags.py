"""The flags of a run, made from the table of settings."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from rooda.base.times import short_duration
from rooda.front.completion import alias_names, procedure_names
from rooda.front.options import (
    EqualsOption,
    RunOption,
    SwitchOption,
    Taking,
    first_taking,
    names_taking_value,
    word_pairs,
)
from rooda.front.program_options import program_options
from rooda.plan.prompts.parts import PHASES
from rooda.plan.settings.kinds import Boolean, Kind, Seconds
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    AI_CMD,
    AI_CMD_ALIAS,
    ENV,
    ITERATION_MODE,
    LOG_LEVEL,
    MAX_ITERATIONS,
    SETTINGS,
    SHOW_AI_OUTPUT,
    VERIFY_BASELINE,
)
from rooda.plan.settings.text_kinds import (
    FolderText,
    OneOf,
    PathText,
    SwitchedWord,
    TextList,
    TextMap,
)

PROMPT = "Prompt"  # the section of the help
_NO_BASELINE = "--no-verify-baseline"

_ASSIGNMENT = re.compile(r"^((?:--env=)?[A-Za-z_][A-Za-z0-9_]*=).*", re.DOTALL)

Flags = dict[str, tuple[str, str]]

_WITH_FLAG = tuple(setting for setting in SETTINGS if setting.flag_name)


class MergeRules(Struct, frozen=True):
    """How flags given now replace those of an earlier start. The sets hold names of parameters.

    One of `rivals` replaces the others. The values of `by_name` are NAME=VALUE and are merged by
    NAME. `paths` name files; `texts` are text, or the path of an existing file.
    """

    rivals: tuple[frozenset[str], ...] = ()
    by_name: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


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
    if isinstance(setting.kind, SwitchedWord):
        return SwitchOption(
            [name, _parameter(setting)],
            words=setting.kind.words,
            bare=setting.kind.on,
            metavar=setting.metavar,
            help=_help(setting),
            section=setting.group,
            common=setting.common,
            shell_complete=_completer(setting),
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
    is_missing = "procedure" in ctx.params and not ctx.params["procedure"]
    names = procedure_names() if is_missing else []
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
        frozenset({"no_verify_baseline", _parameter(VERIFY_BASELINE)}),
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
    for setting in _WITH_FLAG:
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
        *program_options(),
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
            help="Stream the output of agent and verify (short for --show-ai-output)",
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
    VERIFY_BASELINE.key: [
        RunOption(
            [_NO_BASELINE],
            is_flag=True,
            help="Short for --verify-baseline off",
            section=VERIFY_BASELINE.group,
            common=False,
        )
    ],
}


def without_dry_run(
    arguments: Sequence[str], options: Sequence[click.Parameter] | None = None
) -> list[str]:
    """Return the arguments without `--dry-run`; a value of another option stays.

    `options` are those of the command, if they are not those of a run of rooda.
    """
    taking = names_taking_value(run_options() if options is None else options)
    pairs, rest = word_pairs(arguments, taking)
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


def _without_d(word: str, taking: Taking) -> str:
    """Return a word of short flags without `d`: `-dv` becomes `-v`."""
    if word.startswith("--") or not word.startswith("-"):
        return word
    end = first_taking(word, taking)
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
    if parameters["no_verify_baseline"]:
        flags[VERIFY_BASELINE.key] = (_NO_BASELINE, "false")
    for setting in _WITH_FLAG:
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
