"""Which snapshots the words of `rooda diff` and `rooda restore` mean. Pure."""

import re
from collections.abc import Sequence

from msgspec import Struct

from rooda.base.problems import InvalidInput, Problem
from rooda.front.recorded import iteration_number
from rooda.record.run_names import LAST, from_end

_DOTS = ".."
_ITERATION = re.compile(r"[0-9]{1,6}")
_UNDO = re.compile(r"u[0-9]{1,6}")
_SHORT_NUMBER = re.compile(r"[0-9]{1,3}")  # too short for the beginning of a run's name: a date
_MANY = 10  # numbers that are not named one by one
_WRITE_RANGE = "Write 3, 3..7, 3.. or ..7"
_FROM_ONE = "Choose an iteration from 1 on; `rooda show` lists them"


class IterationRange(Struct, frozen=True):
    """The iterations from `first` to `last`, both included.

    A number below 0 counts from the end. None is the first or the last iteration of the run.
    """

    first: int | None = None
    last: int | None = None


class Compared(Struct, frozen=True):
    """Two snapshots of a run: the state before the iterations, and the one after them."""

    before: str
    after: str


def words_of_diff(words: Sequence[str]) -> tuple[str | None, IterationRange]:
    """Return RUN, or None, and the iterations whose changes the user wants to see.

    Raises InvalidInput.
    """
    if not words:
        return None, IterationRange()
    *rest, word = words
    if rest:
        if _SHORT_NUMBER.fullmatch(rest[0]) and _ITERATION.fullmatch(word):
            message = f"{rest[0]!r} is too short for the name of a run"
            advice = f"For iterations {rest[0]} to {word}: rooda diff {rest[0]}..{word}"
            raise _wrong(message, advice)
        return rest[0], _span(word)
    if _DOTS in word or _ITERATION.fullmatch(word) or _UNDO.fullmatch(word):
        return None, _span(word)
    return word, IterationRange()


def _span(word: str) -> IterationRange:
    if _UNDO.fullmatch(word):
        raise _wrong(f"nothing comes before {word}", _FROM_ONE)
    if _DOTS not in word:
        number = iteration_number(word)
        return IterationRange(number, number)
    first, _, last = word.partition(_DOTS)
    for end in (first, last):
        if end and not _ITERATION.fullmatch(end) and from_end(end) is None:
            raise _wrong(f"{word!r} is not a range of iterations", _WRITE_RANGE)
    return IterationRange(*(iteration_number(end) if end else None for end in (first, last)))


def compared(
    run: str, span: IterationRange, names: Sequence[str], *, at_work: bool = False
) -> Compared:
    """Return the snapshots to compare, of those that the run has. Raises InvalidInput."""
    numbers = [int(name) for name in names if name.isdecimal()]
    iterations = [number for number in numbers if number > 0]
    if not names:
        advice = f"It ran without git, or with git.snapshots off. Its files: rooda show {run}"
        raise _wrong(f"run {run} has no snapshots", advice)
    if not iterations:
        advice = "Wait until its first iteration has ended" if at_work else f"See rooda show {run}"
        raise _wrong(f"run {run} has no snapshot of an iteration", advice)
    first = 1 if span.first is None else _counted(span.first, iterations, run)
    last = _counted(-1 if span.last is None else span.last, iterations, run)
    for number in (first, last):
        if number == 0:
            raise _wrong("nothing comes before 0, the work tree before the run", _FROM_ONE)
        if number > iterations[-1]:
            raise no_snapshot(run, str(number), names)
    if first > last:
        advice = f"Write the smaller number first: {last}{_DOTS}{first}"
        raise _wrong(f"iteration {first} comes after iteration {last}", advice)
    before = max((number for number in numbers if number < first), default=0)
    for number in (last, before):
        if number not in numbers:
            raise no_snapshot(run, str(number), names)
    return Compared(str(before), str(last))


def _counted(number: int, iterations: Sequence[int], run: str) -> int:
    """Return the number of an iteration; one below 0 counts from the end."""
    if number >= 0:
        return number
    if -number > len(iterations):
        known = f"It has {', '.join(map(str, iterations))}"
        raise _wrong(f"run {run} has no snapshot of iteration {number}", known)
    return iterations[number]


def words_of_restore(words: Sequence[str]) -> tuple[str | None, str]:
    """Return RUN, or None, and the name of a snapshot. Raises InvalidInput."""
    *rest, word = words
    place = from_end(word)
    if not rest and place is not None and place > 1:
        message = f"{word!r} can be a run or an iteration"
        advice = (
            f"`rooda restore {word} {LAST}` is the run, `rooda restore {LAST} {word}` the other"
        )
        raise _wrong(message, advice)
    if place is None and not (_ITERATION.fullmatch(word) or _UNDO.fullmatch(word)):
        message = f"{word!r} is not the number of an iteration"
        raise _wrong(message, "Write a number, or `last`; `rooda show` lists them")
    return (rest[0] if rest else None), word


def snapshot_named(run: str, word: str, names: Sequence[str]) -> str:
    """Return the name of a snapshot; `last`, `-2` and so on count from the end."""
    place = from_end(word)
    if place is None:
        return word
    iterations = [int(name) for name in names if name.isdecimal() and int(name) > 0]
    if place > len(iterations):
        raise no_snapshot(run, word, names)
    return str(iterations[-place])


def no_snapshot(run: str, name: str, names: Sequence[str]) -> InvalidInput:
    """Return the error that a run has no such snapshot."""
    return _wrong(f"there is no snapshot {name} of run {run}", known_snapshots(names))


def known_snapshots(names: Sequence[str]) -> str:
    """Return in one sentence which snapshots there are: `There are: 0 to 30, u1`."""
    if not names:
        return "This run has none"
    numbers = [int(name) for name in names if name.isdecimal()]
    if len(numbers) < _MANY or numbers[-1] - numbers[0] != len(numbers) - 1:
        return f"There are: {', '.join(names)}"
    words = [name for name in names if not name.isdecimal()]
    return f"There are: {', '.join([f'{numbers[0]} to {numbers[-1]}', *words])}"


def _wrong(message: str, advice: str) -> InvalidInput:
    return InvalidInput([Problem(message, advice)])
