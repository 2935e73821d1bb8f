"""Splits a command line into its flags, merges it with an earlier one, and parses it again."""

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import Struct

from rooda.base.paths import anchored, file_mode
from rooda.front.flags import MergeRules
from rooda.front.program_options import NAMES
from rooda.plan.settings.setting import UNSET
from rooda.record.given_flags import GivenFlags

# Parameter name -> for each time that it was given, its words on the command line.
Parts = Mapping[str, tuple[tuple[str, ...], ...]]

# These choose the run, ask for a dry run, or are for the program that starts rooda: they are no
# flags of the run.
_NOT_OF_THE_RUN = NAMES | {"procedure", "run", "resume", "dry_run"}


class Merged(Struct, frozen=True):
    """The flags of an earlier start that still hold, those given now, and those replaced."""

    kept: Parts
    now: Parts
    replaced: Parts


def parts_of(ctx: click.Context) -> Parts:
    """Return what the user gave on the command line, with the long form of each flag."""
    return {
        param.name: tuple(_words(param, ctx.params[param.name]))
        for param in ctx.command.params
        if param.name not in _NOT_OF_THE_RUN
        and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    }


def _words(param: click.Parameter, value: Any) -> list[tuple[str, ...]]:
    if isinstance(param, click.Argument):
        return [(value,)]
    if value is False:
        return [(max(param.secondary_opts, key=len),)]
    flag = max(param.opts, key=len)
    if value is True:
        return [(flag,)]
    values = value if isinstance(value, tuple) else (value,)
    return [(flag, one) for one in values]


def given_of(command: click.Command, *several: Parts) -> GivenFlags:
    """Return the command line that consists of these parts."""
    arguments = {param.name for param in command.params if isinstance(param, click.Argument)}
    pairs = [(name, words) for parts in several for name, every in parts.items() for words in every]
    return GivenFlags(
        flags=tuple(words for name, words in pairs if name not in arguments),
        arguments=tuple(words[0] for name, words in pairs if name in arguments),
        folder=".",
    )


def parse(
    command: click.Command, given: GivenFlags, arguments: Sequence[str] = ()
) -> click.Context:
    """Return the command line as click reads it. Raises click.UsageError."""
    flags = [word for words in given.flags for word in words]
    line = [*flags, "--", *arguments, *given.arguments]
    # Without a help flag: if the record contains one, it would end the program.
    ctx = command.make_context(command.name, line, help_option_names=[])
    if ctx.params.get("dry_run") or ctx.params.get("resume") is not None:
        raise click.UsageError("--dry-run and --resume are no flags of a run")
    read = given_of(command, parts_of(ctx))
    if sorted(words[1:] for words in read.flags) != sorted(words[1:] for words in given.flags):
        raise click.UsageError("a flag lacks its value, or is there twice")
    return ctx


def merge(earlier: Parts, now: Parts, rules: MergeRules) -> Merged:
    """Return the flags of the earlier start, with those replaced that are given now."""
    kept: dict[str, tuple[tuple[str, ...], ...]] = {}
    replaced: dict[str, tuple[tuple[str, ...], ...]] = {}
    for name, every in earlier.items():
        rivals = {name}.union(*(group for group in rules.rivals if name in group))
        if rivals.isdisjoint(now):
            stays = every
        elif name in rules.by_name and name in now:
            stays = _other_names(every, now[name])
        else:
            stays = ()
        goes = tuple(words for words in every if words not in stays)
        if stays:
            kept[name] = stays
        if goes:
            replaced[name] = goes
    return Merged(kept, now, replaced)


def _other_names(
    earlier: tuple[tuple[str, ...], ...], now: tuple[tuple[str, ...], ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the earlier NAME=VALUE words whose names are not given now; `none` replaces all."""
    if not all("=" in words[-1] for words in (*earlier, *now)):
        return ()
    names = {words[-1].partition("=")[0] for words in now}
    return tuple(words for words in earlier if words[-1].partition("=")[0] not in names)


def anchored_in(folder: Path, parts: Parts, rules: MergeRules) -> Parts:
    """Return the parts for use in another folder: paths relative to `folder` become absolute."""

    def moved(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
        *flag, value = words
        if name not in rules.paths | rules.texts or value == UNSET or not value:
            return words
        path = anchored(folder, value)
        is_meant = name in rules.paths or stat.S_ISREG(file_mode(path))
        return (*flag, str(path)) if is_meant else words

    return {name: tuple(moved(name, words) for words in every) for name, every in parts.items()}
