"""Reads the layers of the environment variables and the flags."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rooda.base.lookup import near_miss
from rooda.base.problems import Origin, Problem, Tier
from rooda.plan.layers import Layer, Valued
from rooda.plan.settings.kinds import WrongValue
from rooda.plan.settings.setting import Setting, variable_prefix
from rooda.plan.settings.settings import BY_KEY, GIT_COMMIT, SETTINGS
from rooda.plan.settings.text_kinds import with_folder
from rooda.plan.world import World


def from_environment(world: World, problems: list[Problem]) -> Layer:
    """Return what `ROODA_LOOP_...` variables set. An empty variable sets nothing."""
    return Layer(Tier.ENVIRONMENT, loop=read_variables(SETTINGS, world, problems))


def read_variables(
    settings: Sequence[Setting[Any]], world: World, problems: list[Problem]
) -> dict[str, Valued]:
    """Return what the variables of these settings set; all of them are below one key."""
    environ = world.environ
    found: dict[str, Valued] = {}
    for setting in settings:
        names = (setting.variable, *setting.old_variables)
        name = next((name for name in names if environ.get(name)), None)
        if name is not None:
            origin = Origin(Tier.ENVIRONMENT, name)
            _add(found, setting, environ[name], origin, world, problems)
    problems += _unknown_variables(settings, environ)
    return found


def _unknown_variables(
    settings: Sequence[Setting[Any]], environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield the unknown `ROODA_LOOP_...` variables: a misspelled limit would have no effect."""
    prefix = variable_prefix(settings[0].place)
    known = [name for row in settings for name in (row.variable, *row.old_variables)]
    # Compare without the prefix: with it, all names look alike.
    keys = [name.removeprefix(prefix) for name in known]
    for name, value in environ.items():
        if value and name.startswith(prefix) and name not in known:
            guess = near_miss(name.removeprefix(prefix), keys)
            advice = (
                f"Did you mean {prefix + guess!r}?"
                if guess
                else "Unset it; `rooda config show` lists the settings, and the variable of "
                f"`git.commit` is {GIT_COMMIT.variable}"
            )
            yield Problem(f"unknown variable {name}", advice, field=name)


def from_flags(
    flags: Mapping[str, tuple[str, str]], world: World, problems: list[Problem]
) -> Layer:
    """Return what the flags set; they are `{key: (flag as written, text)}`."""
    return Layer(Tier.CLI, loop=read_flags(BY_KEY, flags, world, problems))


def read_flags(
    settings: Mapping[str, Setting[Any]],
    flags: Mapping[str, tuple[str, str]],
    world: World,
    problems: list[Problem],
) -> dict[str, Valued]:
    """Return the values of the flags; `settings` are those that have flags, by their keys."""
    found: dict[str, Valued] = {}
    for key, (flag, text) in flags.items():
        _add(found, settings[key], text, Origin(Tier.CLI, flag), world, problems)
    return found


def _add(
    found: dict[str, Valued],
    setting: Setting[Any],
    text: str,
    origin: Origin,
    world: World,
    problems: list[Problem],
) -> None:
    try:
        value = setting.from_text(text)
    except WrongValue as wrong:
        problems.append(Problem(str(wrong), wrong.suggestion, field=origin.source))
        return
    value = with_folder(setting.kind, value, world.folder, world.home)
    found[setting.key] = Valued(value, origin, origin.source)
