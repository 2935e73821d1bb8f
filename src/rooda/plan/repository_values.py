"""What the config file of a work tree may not decide about the sandbox. Pure.

Others than the user write that file: the authors of a repository, and agents. So it can make the
sandbox of the user stronger, but not weaker, and it opens nothing unless the user trusts it.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.problems import Problem, Severity, Tier
from rooda.plan.layers import ConfigLevel, Valued
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    ENV,
    GIT_PUBLISH,
    LOG_FILE,
    NOTIFY_URLS,
    REPORT,
    SANDBOX_COMMAND,
    SANDBOX_ENV,
    SANDBOX_KIND,
    SANDBOX_NETWORK,
    SANDBOX_READABLE,
    SANDBOX_TRUST,
    SANDBOX_WRITABLE,
    SESSION_LOG,
)
from rooda.plan.settings.text_kinds import TextMap

# The value with which the file makes the sandbox stronger, and the one of the user that gives way.
_STRONGER: tuple[tuple[Setting[Any], object, object], ...] = (
    (SANDBOX_KIND, "bwrap", "none"),
    (SANDBOX_NETWORK, False, True),
)
# They show more inside, or make rooda run or send something outside.
_OPENING: tuple[Setting[Any], ...] = (
    SANDBOX_READABLE,
    SANDBOX_WRITABLE,
    SANDBOX_ENV,
    GIT_PUBLISH,
    NOTIFY_URLS,
)
# Parts of the command that the user has chosen as the sandbox, and that runs outside.
_OF_COMMAND: tuple[Setting[Any], ...] = (SANDBOX_COMMAND, ENV)
_WRITTEN: tuple[Setting[Any], ...] = (LOG_FILE, SESSION_LOG, REPORT)
_NOT_ITS_OWN = (".git",)  # folders of a work tree that its file does not write to

HOW_TO_TRUST = (
    f"If you trust that file, set {SANDBOX_TRUST.key}: true in your own config file, or "
    f"{SANDBOX_TRUST.variable}=true for one run"
)


class Refusal(Struct, frozen=True):
    """A value that does not count. `won` is the one that does; None if the file needs trust."""

    setting: Setting[Any]
    lost: Valued
    won: Valued | None = None

    @property
    def note(self) -> str:
        """Why the value does not count, for the origin of the one that does."""
        place = self.lost.origin.exact
        if self.won is not None:
            return f"stronger than {self.setting.show(self.lost.value)} of {place}"
        if self.setting is SANDBOX_TRUST:
            return f"without effect: {place}"
        return f"left out without {SANDBOX_TRUST.key}: {place}"


class Admitted(Struct, frozen=True):
    """The levels without the values that do not count, and those values."""

    levels: list[ConfigLevel]
    refusals: tuple[Refusal, ...] = ()


def admit(levels: list[ConfigLevel]) -> Admitted:
    """Leave out what the file of a work tree may not decide."""
    if not any(_is_foreign(valued) for level in levels for valued in level.values.values()):
        return Admitted(levels)
    refusals = [
        Refusal(SANDBOX_TRUST, valued)
        for valued in _given(levels, SANDBOX_TRUST)
        if _is_foreign(valued) and valued.value
    ]
    for row, strong, weak in _STRONGER:
        refusals += _weaker(_given(levels, row), row, strong, weak)
    left = _without(levels, refusals)
    kind = next(iter(_given(left, SANDBOX_KIND)), None)
    trust = next((one.value for one in _given(left, SANDBOX_TRUST)), SANDBOX_TRUST.default)
    if kind is not None and kind.value != "none" and not trust:
        refusals += _without_trust(left, kind)
        left = _without(left, refusals)
    return Admitted(left, tuple(one for one in refusals if _would_count(one, levels)))


def _weaker(
    given: Iterable[Valued], row: Setting[Any], strong: object, weak: object
) -> Iterator[Refusal]:
    """Yield the values of the weaker side, if both the user and the file have set the row."""
    of_file = [valued for valued in given if _is_foreign(valued)]
    of_user = [valued for valued in given if _is_of_user(valued)]
    if of_file and of_user and of_file[0].value != of_user[0].value:
        is_stronger = of_file[0].value == strong and of_user[0].value == weak
        winner, losers = (of_file[0], of_user) if is_stronger else (of_user[0], of_file)
        yield from (Refusal(row, valued, winner) for valued in losers)


def _without_trust(levels: list[ConfigLevel], kind: Valued) -> Iterator[Refusal]:
    """Yield the values that count only if the user trusts the file."""
    is_chosen = any(map(_is_of_user, _given(levels, SANDBOX_KIND)))
    is_command_of_user = kind.value == "command" and is_chosen
    rows = (*_OPENING, *_OF_COMMAND) if is_command_of_user else _OPENING
    for row in (*rows, *_WRITTEN):
        for valued in _given(levels, row):
            opens = _is_foreign(valued) and bool(valued.value)
            if opens and not (row in _WRITTEN and _may_write(valued.origin.tree, valued.value)):
                yield Refusal(row, valued)


def is_in(tree: Path | None, path: str | Path) -> bool:
    """Return whether a path is in a work tree, links resolved."""
    return tree is not None and Path(os.path.realpath(path)).is_relative_to(tree)


def _may_write(tree: Path | None, path: str) -> bool:
    """Return whether a file is in the work tree, and not in a folder of git or rooda."""
    if tree is None or not is_in(tree, path):
        return False
    names = Path(os.path.realpath(path)).relative_to(tree).parts
    return not any(name in _NOT_ITS_OWN for name in names)


def _would_count(one: Refusal, levels: list[ConfigLevel]) -> bool:
    """Return whether the value would have had an effect by the usual order."""
    is_merged = isinstance(one.setting.kind, TextMap)
    return is_merged or _given(levels, one.setting)[0] is one.lost


def _without(levels: list[ConfigLevel], refusals: Iterable[Refusal]) -> list[ConfigLevel]:
    gone = {(one.setting.key, id(one.lost)) for one in refusals}
    return [
        replace(
            level,
            values={
                key: valued for key, valued in level.values.items() if (key, id(valued)) not in gone
            },
        )
        for level in levels
    ]


def _given(levels: Iterable[ConfigLevel], row: Setting[Any]) -> list[Valued]:
    return [valued for level in levels if (valued := level.get(row.key)) is not None]


def _is_foreign(valued: Valued) -> bool:
    return valued.origin.tree is not None


def _is_of_user(valued: Valued) -> bool:
    return valued.origin.tree is None and valued.origin.tier > Tier.PRESET


def explain(refusals: Iterable[Refusal]) -> Iterator[Problem]:
    """Yield a warning for what does not count; one for all values that need trust."""
    closed = [one for one in refusals if one.won is None and one.setting is not SANDBOX_TRUST]
    for one in refusals:
        if one not in closed:
            message, fix = _reason(one)
            yield one.lost.problem(message, fix, Severity.WARNING)
    if closed:
        names = ", ".join(dict.fromkeys(one.setting.key for one in closed))
        message = f"left out, because others than you can write this file: {names}"
        yield Problem.at(closed[0].lost.origin, "", message, HOW_TO_TRUST, Severity.WARNING)


def _reason(one: Refusal) -> tuple[str, str]:
    """Return why a value does not count, and what the user can do."""
    if one.won is None:
        return "has no effect in this file: others than you can write it", HOW_TO_TRUST
    lost, won = one.setting.show(one.lost.value), one.setting.show(one.won.value)
    place = one.won.origin.exact
    if _is_foreign(one.won):
        return f"{lost} has no effect: {won} is stronger ({place})", f"For {lost}, edit that file"
    message = f"{lost} has no effect: this file can't weaken or replace your {won} ({place})"
    return message, f"For {lost}, change your own setting"
