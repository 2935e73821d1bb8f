"""The progress of all runs in one terminal: lines about what happened, and one line a run at work.

`happenings` and `panel` are pure: they read two lists of runs, or one. `Display` draws.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.numbers import count, money
from rooda.base.secrets.masking import Masker
from rooda.base.widths import cut, width
from rooda.fleet.display.run_words import FAILED, cost_words, iteration_words, state_words
from rooda.fleet.run_model import Run, RunState
from rooda.views.terminal.terminal import Terminal
from rooda.world.process.interrupts import INTERRUPTED, Interrupts

# Which runs can still go on by themselves. Pure.


def going_on(runs: Iterable[Run], labels: Collection[str] | None = None) -> list[Run]:
    """Return the runs that a worker with these labels can still bring to an end; None: any worker.

    A run can't if it waits for one that did not end as success, or for one that needs other labels.
    """
    every = {run.run: run for run in runs}
    stuck = {run.run for run in every.values() if not _fits(run, labels) and not run.state.is_end}
    while more := [
        run.run
        for run in every.values()
        if run.state is RunState.BLOCKED and run.run not in stuck and _is_lost(run, every, stuck)
    ]:
        stuck.update(more)
    return [run for run in every.values() if not run.state.is_end and run.run not in stuck]


def _fits(run: Run, labels: Collection[str] | None) -> bool:
    is_elsewhere = run.state is RunState.WORKING  # a worker has it already
    return labels is None or is_elsewhere or set(run.task.labels) <= set(labels)


def _is_lost(run: Run, every: Mapping[str, Run], stuck: Collection[str]) -> bool:
    for name in run.task.after:
        other = every.get(name)
        if other is None or name in stuck:
            return True
        if other.state.is_end and other.state is not RunState.SUCCESS:
            return True
    return False


_LONGEST_NAME = 28  # columns
_LONGEST_HEADLINE = 200  # characters
_MOST_ROWS = 12  # of runs at work
_ECHO = 5  # columns for `^C^C` and the cursor
_MINUTE, _HOUR = 60, 3600


def happenings(before: Sequence[Run], after: Sequence[Run], now: float) -> list[str]:
    """Return what happened between two looks at the database, one line each: `auth: ...`."""
    known = {run.run: run for run in before}
    states = {run.run: run.state for run in after}
    return [
        one_line(f"{run.run}: {words}")
        for run in after
        for words in _changes(known.get(run.run), run, states, now)
    ]


def _changes(
    old: Run | None, new: Run, states: Mapping[str, RunState], now: float
) -> Iterator[str]:
    if old is None:
        yield f"added: {state_words(new, states, now)}"
        return
    if new.iteration > old.iteration:
        yield _iterations(old, new)
    if new.state.is_end and not old.state.is_end:
        yield _end(new, states, now)
        return
    if new.ended != old.ended and new.ended:
        yield new.ended
    if new.state is RunState.WORKING:
        yield from _at_work(old, new, states, now)
    elif new.state is RunState.QUEUED and (new.not_before, new.state) != (
        old.not_before,
        old.state,
    ):
        yield state_words(new, states, now)


def _at_work(old: Run, new: Run, states: Mapping[str, RunState], now: float) -> Iterator[str]:
    if old.state is not RunState.WORKING:
        yield f"starts on {new.where}"
    elif old.worker != new.worker:
        yield f"taken over on {new.where}"
    elif new.reason != old.reason and new.reason:
        yield f"waiting: {new.reason}"
    if new.order != old.order and new.order:
        yield state_words(new, states, now)


def _iterations(old: Run, new: Run) -> str:
    """Return `iteration 3/20 done, $0.44: HEADLINE`; several at once become one line."""
    first = old.iteration + 1
    numbers = iteration_words(new)
    what = f"iteration {numbers}" if first == new.iteration else f"iterations {first} to {numbers}"
    unknown = new.unknown_costs - old.unknown_costs
    cost = new.cost - old.cost
    told = money(cost) if cost > 0 else ""
    if unknown > 0:
        told = f"{told} + cost unknown" if told else "cost unknown"
    how = "failed" if new.headline.startswith(FAILED) else "done"
    said = new.headline.removeprefix(FAILED)[:_LONGEST_HEADLINE]
    return f"{what} {how}{f', {told}' if told else ''}{f': {said}' if said else ''}"


def _end(run: Run, states: Mapping[str, RunState], now: float) -> str:
    what = "success" if run.state is RunState.SUCCESS else ""
    words = ", ".join(
        word
        for word in (
            what,
            count(run.iteration, "iteration"),
            _cost(run.cost, run.unknown_costs),
        )
        if word
    )
    return f"{state_words(run, states, now)} ({words})"


def _cost(cost: float, unknown: int) -> str:
    words = cost_words(cost, unknown)
    return "cost unknown" if words == "unknown" else words


def panel(runs: Sequence[Run], now: float, columns: int, hint: str, elapsed: float) -> list[str]:
    """Return the lines below the log: one for each run at work, and a summary.

    Each line has fewer columns than the terminal: a terminal writes `^C` behind the last one, and
    a line that wraps there could not be removed. `hint` says what Ctrl+C does.
    """
    room = max(1, columns - _ECHO)
    at_work = [run for run in runs if run.state is RunState.WORKING]
    shown = at_work[:_MOST_ROWS]
    wide = min(_LONGEST_NAME, max((width(run.run) for run in shown), default=0))
    lines = [cut(_row(run, now, wide), room) for run in shown]
    if len(at_work) > len(shown):
        lines.append(cut(f"... and {count(len(at_work) - len(shown), 'more run')} at work", room))
    return [*lines, cut(_summary(runs, elapsed, hint), room)]


def _row(run: Run, now: float, wide: int) -> str:
    name = cut(run.run, wide)
    number = iteration_words(replace(run, iteration=run.iteration + 1))
    parts = [
        f"{name}{' ' * (wide - width(name))}  iteration {number}",
        _clock(now - run.changed),
        _cost(run.cost, run.unknown_costs),
        run.reason or run.headline[:_LONGEST_HEADLINE],
    ]
    return one_line("  ".join(part for part in parts if part))


def _summary(runs: Sequence[Run], elapsed: float, hint: str) -> str:
    names = {
        "at work": (RunState.WORKING,),
        "waiting": (RunState.QUEUED, RunState.BLOCKED),
        "done": (RunState.SUCCESS,),
        "not done": (RunState.FAILED, RunState.STOPPED, RunState.CONFLICT, RunState.SET_ASIDE),
    }
    counts = {name: sum(run.state in states for run in runs) for name, states in names.items()}
    words = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    unknown = sum(run.unknown_costs for run in runs)
    cost = _cost(sum(run.cost for run in runs), unknown)
    return " · ".join(part for part in (words, cost, _clock(elapsed), hint) if part)


def _clock(seconds: float) -> str:
    """Return `4:05`, or `1:02:09`."""
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, _HOUR)
    minutes, left = divmod(rest, _MINUTE)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


class Display:
    """Writes what happens, and draws the panel on a terminal."""

    def __init__(
        self,
        terminal: Terminal,
        *,
        is_live: bool,
        clock: Callable[[], float] = time.time,
        names: frozenset[str] | None = None,
        masker: Masker | None = None,
    ) -> None:
        """`names` are the runs to show; None: all of the project."""
        self._masker = masker or Masker()
        self._terminal = terminal
        self._is_live = is_live
        self._clock = clock
        self._names = names
        self._before: list[Run] | None = None
        self._began = clock()

    def update(self, runs: Sequence[Run], now: float, hint: str = "") -> None:
        """Show the runs; `now` is the time of the database."""
        runs = self._masker.tree(runs)
        chosen = [run for run in runs if self._names is None or run.run in self._names]
        if self._before is not None:
            for line in happenings(self._before, chosen, now):
                self.say(line)
        self._before = chosen
        if self._is_live:
            elapsed = self._clock() - self._began
            lines = panel(chosen, now, self._terminal.width, hint, elapsed)
            self._terminal.show_status("\n".join(lines))

    def say(self, words: str) -> None:
        """Write a line with the time of day."""
        moment = time.strftime("%H:%M:%S", time.localtime(self._clock()))
        self._terminal.log(f"[{moment}] {self._masker.text(words)}\n")

    def close(self) -> None:
        """Remove the panel."""
        self._terminal.close()


# Shows the runs until they have ended, and what Ctrl+C does meanwhile.


_PACE = 0.5  # seconds between two looks at the database
_HINTS = (
    "Ctrl+C: finish the iterations at work, then stop",
    "finishing the iterations at work; Ctrl+C: stop them now",
    "stopping now",
)
_WATCHING = "Ctrl+C: stop watching; the runs go on"
_NEWS = (
    "no new iteration starts; press Ctrl+C again to stop those at work now",
    "stopping the iterations at work now",
)

# Returns the runs of the project, and the time of the database.
Look = Callable[[], tuple[Sequence[Run], float]]


class Viewer:
    """Looks at the database now and then, and shows what it finds.

    `with_worker`: this command has a worker, to which Ctrl+C is passed on.
    """

    def __init__(
        self, look: Look, display: Display, interrupts: Interrupts, *, with_worker: bool
    ) -> None:
        self._look = look
        self._display = display
        self._interrupts = interrupts
        self._with_worker = with_worker
        self._looked: float | None = None
        self._received = 0  # signals at the last look
        self._heard = 0  # signals that the user was told of
        self.runs: Sequence[Run] = ()

    def show(self) -> None:
        """Show the runs, unless that was done a moment ago and nothing new was heard."""
        is_new = len(self._interrupts.received) != self._received
        if is_new or self._looked is None or time.monotonic() - self._looked >= _PACE:
            self.show_now()

    def show_now(self) -> None:
        """Show the runs."""
        self._received = len(self._interrupts.received)
        self._looked = time.monotonic()
        heard = min(self._received, len(_NEWS))
        if self._with_worker:
            for news in _NEWS[self._heard : heard]:
                self._display.say(news)
        self._heard = heard
        self.runs, moment = self._look()
        self._display.update(self.runs, moment, _HINTS[heard] if self._with_worker else _WATCHING)


def follow_runs(
    viewer: Viewer, interrupts: Interrupts, is_over: Callable[[Sequence[Run]], bool]
) -> int:
    """Show the runs until they are over or the user has seen enough; return the exit code."""
    with interrupts.deferred():
        while not interrupts.received:
            viewer.show()
            if is_over(viewer.runs):
                return 0
            interrupts.rest(_PACE)
    return INTERRUPTED
