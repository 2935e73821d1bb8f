"""Decides the value of each setting, with pure functions of the layers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.problems import BUILTIN, Origin
from rooda.plan.layers import ConfigLevel, Layers, Scope, Valued
from rooda.plan.repository_values import Refusal, admit
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    ITERATION_MODE,
    MAX_ITERATIONS,
    SETTINGS,
    ZERO_MEANS_UNLIMITED,
)
from rooda.plan.settings.text_kinds import TextMap

T = TypeVar("T")

UNLIMITED = "unlimited"
LIMITED = "max-iterations"
ONCE = "once"


class Iterations(Struct, frozen=True):
    """How many iterations may run; a maximum of None means unlimited.

    `once`: the run has one iteration, and its success is that of the run.
    """

    maximum: int | None
    origin: Origin
    once: bool = False


class Values:
    """The values of the settings, each with its origin: `values[FAILURE_THRESHOLD]`."""

    def __init__(
        self, held: Mapping[str, Valued] | None = None, refusals: Iterable[Refusal] = ()
    ) -> None:
        """`refusals` are the values that do not count, for the sake of the sandbox."""
        self._held = dict(held or {})
        self.refusals = tuple(refusals)

    def __getitem__(self, setting: Setting[T]) -> T:
        held = self._held.get(setting.key)
        return setting.default if held is None else held.value

    def __iter__(self) -> Iterator[Setting[Any]]:
        return iter(SETTINGS)

    def origin(self, setting: Setting[Any]) -> Origin:
        """Return the origin of the value."""
        held = self._held.get(setting.key)
        origin = BUILTIN if held is None else held.origin
        notes = [one.note for one in self.refusals if one.setting is setting]
        return replace(origin, note="; ".join(notes)) if notes else origin

    def parts(self, setting: Setting[Any]) -> Mapping[str, Origin]:
        """Return the origin of the value of each name in a map."""
        held = self._held.get(setting.key)
        return {} if held is None else held.parts

    def field(self, setting: Setting[Any]) -> str:
        """Return the name of the value at its origin."""
        held = self._held.get(setting.key)
        return setting.field if held is None else held.field

    @property
    def iterations(self) -> Iterations:
        """The iteration mode and the maximum as one value."""
        if self[ITERATION_MODE] == UNLIMITED:
            return Iterations(None, self.origin(ITERATION_MODE))
        if self[ITERATION_MODE] == ONCE:
            return Iterations(1, self.origin(ITERATION_MODE), once=True)
        return Iterations(self[MAX_ITERATIONS], self.origin(MAX_ITERATIONS))


def resolve(layers: Layers, procedure: str = "") -> Values:
    """Return the strongest value of every setting, for a procedure or for the loop."""
    admitted = admit(layers.levels(procedure))
    levels = admitted.levels
    held: dict[str, Valued] = {}
    for setting in SETTINGS:
        given = [valued for level in levels if (valued := level.get(setting.key)) is not None]
        if given:
            held[setting.key] = _merged(given) if isinstance(setting.kind, TextMap) else given[0]
    zero_means_unlimited = Values(held)[ZERO_MEANS_UNLIMITED]
    iterations = _iterations(levels, zero_means_unlimited=zero_means_unlimited)
    return Values(held | iterations, admitted.refusals)


def _merged(given: Iterable[Valued]) -> Valued:
    """Return a map merged by name; null instead of the map removes the weaker values."""
    first, *_ = given = list(given)
    merged: dict[str, str | None] = {}
    parts: dict[str, Origin] = {}
    for valued in given:
        if valued.value is None:
            break
        for name, value in valued.value.items():
            if name not in parts:
                merged[name], parts[name] = value, valued.origin
    return replace(first, value=merged, parts=parts)


def _iterations(levels: list[ConfigLevel], *, zero_means_unlimited: bool) -> dict[str, Valued]:
    """Return mode and count: the strongest level that sets one of them decides.

    A level with a count and no mode means max-iterations. A level with only the mode takes the
    count from the weaker levels.
    """
    for depth, level in enumerate(levels):
        mode, count = level.get(ITERATION_MODE.key), level.get(MAX_ITERATIONS.key)
        # On the command line, the number beats --unlimited; in a file, the mode beats the number.
        if count is not None and level.scope is Scope.FLAGS:
            mode = None
        if mode is not None and mode.value in (UNLIMITED, ONCE):
            return {ITERATION_MODE.key: mode}
        if mode is not None and count is None:
            below = (lower.get(MAX_ITERATIONS.key) for lower in levels[depth + 1 :])
            count = next((valued for valued in below if valued is not None), None)
            count = count or replace(mode, value=MAX_ITERATIONS.default)
        if count is None:
            continue
        if count.value == 0 and zero_means_unlimited:
            return {ITERATION_MODE.key: replace(count, value=UNLIMITED)}
        held = {MAX_ITERATIONS.key: count}
        if any(level.get(ITERATION_MODE.key) for level in levels):
            held[ITERATION_MODE.key] = replace(mode or count, value=LIMITED)
        return held
    return {}
