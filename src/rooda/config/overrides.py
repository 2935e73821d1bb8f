"""Reads the layers of the environment variables and the flags."""

from collections.abc import Iterator, Mapping
from typing import Any

from rooda.config.kinds import WrongValue
from rooda.config.layers import Layer, Valued
from rooda.config.origin import Origin, Tier
from rooda.config.problems import Problem
from rooda.config.setting import VARIABLE_PREFIX, Setting
from rooda.config.settings import BY_KEY, GIT_COMMIT, SETTINGS
from rooda.config.text_kinds import PathText
from rooda.config.world import World
from rooda.text.lookup import near_miss
from rooda.text.paths import anchored


def from_environment(world: World, problems: list[Problem]) -> Layer:
    """Return what `ROODA_LOOP_...` variables set. An empty variable sets nothing."""
    environ = world.environ
    layer = Layer(Tier.ENVIRONMENT)
    for setting in SETTINGS:
        names = (setting.variable, *setting.old_variables)
        name = next((name for name in names if environ.get(name)), None)
        if name is not None:
            origin = Origin(Tier.ENVIRONMENT, name)
            _add(layer, setting, environ[name], origin, world, problems)
    problems += _unknown_variables(environ)
    return layer


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the unknown `ROODA_LOOP_...` variables: a misspelled limit would have no effect."""
    known = [name for row in SETTINGS for name in (row.variable, *row.old_variables)]
    # Compare without the prefix: with it, all names look alike.
    keys = [name.removeprefix(VARIABLE_PREFIX) for name in known]
    for name, value in environ.items():
        if value and name.startswith(VARIABLE_PREFIX) and name not in known:
            guess = near_miss(name.removeprefix(VARIABLE_PREFIX), keys)
            advice = (
                f"Did you mean {VARIABLE_PREFIX + guess!r}?"
                if guess
                else "Unset it; `rooda config show` lists the settings, and the variable of "
                f"`git.commit` is {GIT_COMMIT.variable}"
            )
            yield Problem(f"unknown variable {name}", advice, field=name)


def from_flags(
    flags: Mapping[str, tuple[str, str]], world: World, problems: list[Problem]
) -> Layer:
    """Return what the flags set; they are `{key: (flag as written, text)}`."""
    layer = Layer(Tier.CLI)
    for key, (flag, text) in flags.items():
        _add(layer, BY_KEY[key], text, Origin(Tier.CLI, flag), world, problems)
    return layer


def _add(
    layer: Layer,
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
    if isinstance(setting.kind, PathText) and value is not None:
        value = str(anchored(world.folder, value, world.home))
    layer.loop[setting.key] = Valued(value, origin, origin.source)
