"""Commands and options with sections in their help, `--help-all`, and `--resume=RUN`."""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import click

OTHER = "Other"  # the section of the help
_LONGEST_SUMMARY = 1000  # characters
_RUN_HELP = (
    "RUN is a name from `rooda history` or a unique beginning of it, `last` (or -1) for the last "
    "run, -2 for the run before it."
)
_ITERATION_HELP = " ITERATION is a number, or `last` after RUN."
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_DASHED_NAME = re.compile(r"-[0-9]+(?:\.\..*)?")  # `-1` and `-3..`


Taking = Mapping[str, frozenset[str] | None]


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


class SwitchOption(RunOption):
    """An option whose value is optional and one of a few words: `--verify-baseline warn`.

    The next word is its value if it is one of `words`, or if the command has its argument already
    (then it is a mistake that gets a message); else the value is `bare`.
    """

    def __init__(self, *args: Any, words: Sequence[str], bare: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.words = frozenset(words)
        self.bare = bare


_ALL_FLAGS = f"{__name__}.all_flags"


class RunNamesCommand(click.Command):
    """A command that takes names of runs: `-1` is such a name, and not a flag.

    The end of its help says what RUN and, if it takes one, ITERATION can be.
    """

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write which names there are, before the command's own last words."""
        usage = " ".join(param.make_metavar(ctx) for param in self.get_params(ctx))
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(_RUN_HELP + (_ITERATION_HELP if "ITERATION" in usage else ""))
        super().format_epilog(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read words such as `-1` as arguments."""
        return super().parse_args(ctx, dashed_names_last(args, names_taking_value(self.params)))


class EqualsCommand(click.Command):
    """A command with options whose value is optional, and with `--help-all`."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; `--help-all` is one where `--help` is one."""
        params = super().get_params(ctx)
        return [*params, _HELP_ALL] if self.get_help_option_names(ctx) else params

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give an option without a value its own one, or an empty one."""
        bare = {
            name: "" if isinstance(param, EqualsOption) else param.bare
            for param in self.params
            if isinstance(param, EqualsOption | SwitchOption)
            for name in param.opts
        }
        pairs, rest = word_pairs(args, names_taking_value(self.params))
        words = [
            (f"{word}={bare[word]}" if word in bare and value is None else word, value)
            for word, value in pairs
        ]
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


def names_taking_value(options: Sequence[click.Parameter]) -> Taking:
    """Return the options that take the next word as their value, and which words only; or any."""
    return {
        name: option.words if isinstance(option, SwitchOption) else None
        for option in options
        if _takes_next_word(option)
        for name in option.opts
    }


def _takes_next_word(option: click.Parameter) -> bool:
    is_option = isinstance(option, click.Option) and not isinstance(option, EqualsOption)
    return is_option and not getattr(option, "is_flag", False)


def word_pairs(
    arguments: Sequence[str], taking: Taking
) -> tuple[list[tuple[str, str | None]], list[str]]:
    """Return each word with the next word if that is its value, and the words from `--` on."""
    pairs: list[tuple[str, str | None]] = []
    words = deque(arguments)
    while words:
        word = words.popleft()
        if word == "--":
            return pairs, [word, *words]
        wants_value = word in taking or first_taking(word, taking) == len(word) - 1
        is_value = wants_value and words and _may_be_value(words[0], taking.get(word), pairs)
        pairs.append((word, words.popleft() if is_value else None))
    return pairs, []


def _may_be_value(
    word: str, only: frozenset[str] | None, before: Sequence[tuple[str, str | None]]
) -> bool:
    """Return whether a word can be the value of the option before it; see `SwitchOption`."""
    if only is None or word in only:
        return True
    has_argument = any(not earlier.startswith("-") for earlier, _ in before)
    return has_argument and not word.startswith("-")


def dashed_names_last(arguments: Sequence[str], taking: Taking) -> list[str]:
    """Return the words with all arguments behind `--`, if one is a dash with a number."""
    pairs, rest = word_pairs(arguments, taking)
    if not any(_DASHED_NAME.fullmatch(word) for word, _ in pairs):
        return list(arguments)
    named: list[str] = []
    flags: list[str] = []
    for word, value in pairs:
        is_name = word == "-" or not word.startswith("-") or _DASHED_NAME.fullmatch(word)
        (named if is_name else flags).extend(one for one in (word, value) if one is not None)
    return [*flags, "--", *named, *rest[1:]]


def first_taking(word: str, taking: Taking) -> int | None:
    """Return where, in a word of short flags, the first one is that takes a value."""
    if word.startswith("--") or not word.startswith("-"):
        return None
    return next((place for place, letter in enumerate(word) if f"-{letter}" in taking), None)
