"""Which value holds: pure functions over the layers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rooda.config.kinds import TextMap
from rooda.config.layers import Level, Valued
from rooda.config.origin import BUILTIN, Origin
from rooda.config.settings import ITERATION_MODE, MAX_ITERATIONS, SETTINGS, Setting

T = TypeVar("T")


class Values:
    """The values that hold, each with its origin: `values[FAILURE_THRESHOLD]`."""

    def __init__(self, held: Mapping[str, Valued] | None = None) -> None:
        self._held = dict(held or {})

    def __getitem__(self, setting: Setting[T]) -> T:
        held = self._held.get(setting.key)
        return setting.default if held is None else held.value

    def origin(self, setting: Setting[Any]) -> Origin:
        """Where the value came from."""
        held = self._held.get(setting.key)
        return BUILTIN if held is None else held.origin

    def field(self, setting: Setting[Any]) -> str:
        """What the value is called where it came from."""
        held = self._held.get(setting.key)
        return setting.field if held is None else held.field

    def __iter__(self) -> Iterator[Setting[Any]]:
        return iter(SETTINGS)


def resolve(levels: Iterable[Level]) -> Values:
    """The strongest value of every setting; maps are merged key by key."""
    held: dict[str, Valued] = {}
    ordered = list(levels)
    for setting in SETTINGS:
        given = [level[setting.key] for level in ordered if setting.key in level]
        if not given:
            continue
        value = _merged(given) if isinstance(setting.kind, TextMap) else given[0].value
        held[setting.key] = replace(given[0], value=value)
    return Values(held)


def _merged(given: Iterable[Valued]) -> dict[str, str]:
    """A null takes away what is below it: the whole map, or one name."""
    merged: dict[str, str | None] = {}
    for valued in given:
        if valued.value is None:
            break
        merged = {**valued.value, **merged}
    return {name: value for name, value in merged.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Iterations:
    """How many iterations may run; no maximum means unlimited."""

    maximum: int | None
    origin: Origin


def resolve_iterations(levels: Iterable[Level], *, zero_means_unlimited: bool) -> Iterations:
    """The strongest level that says anything about mode or count decides.

    A level that sets a count and no mode means max-iterations at that level; one that sets the
    mode alone takes the count from the levels below.
    """
    ordered = list(levels)
    for depth, level in enumerate(ordered):
        mode, count = level.get(ITERATION_MODE.key), level.get(MAX_ITERATIONS.key)
        if mode is not None and mode.value == "unlimited" and not _flag_count(depth, count):
            return Iterations(None, mode.origin)
        if mode is not None and count is None:
            below = (lower.get(MAX_ITERATIONS.key) for lower in ordered[depth + 1 :])
            count = next((valued for valued in below if valued is not None), None)
            if count is None:
                return Iterations(MAX_ITERATIONS.default, mode.origin)
        if count is not None:
            if count.value == 0 and zero_means_unlimited:
                return Iterations(None, count.origin)
            return Iterations(count.value, count.origin)
    return Iterations(MAX_ITERATIONS.default, BUILTIN)


def _flag_count(depth: int, count: Valued | None) -> bool:
    # On the command line the number wins over --unlimited; in a file the mode rules the count.
    return depth == 0 and count is not None
