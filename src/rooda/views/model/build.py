"""Build the summary of a run from its rows, one row at a time: the memory is bounded."""

import shlex
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby

from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.loop.events.work import SnapshotTaken
from rooda.loop.state import Status
from rooda.loop.wait_kinds import WaitKind
from rooda.record.json_objects import iteration_of
from rooda.record.rows import UNFINISHED, IterationRow, RunRow, moment_of
from rooda.views.model.bounded import bounded_row, bounded_run
from rooda.views.model.changed_files import RunFiles, changed_files, names_of
from rooda.views.model.summary import (
    IterationSummary,
    Note,
    RunSummary,
    Span,
    SpanKind,
    TestCounts,
)
from rooda.views.model.timeline import end_of, limited, pauses, seconds_between, spans_of, waits_of
from rooda.views.wording import sentences
from rooda.views.wording.next_commands import next_commands, next_hint
from rooda.world.agents.agent_program import program_name
from rooda.world.agents.agent_report import Tokens
from rooda.world.agents.registry import KNOWN, TEXT
from rooda.world.process.events import NamedProcess

_MOST_STOPPED = 50  # processes of an iteration
_MOST_NAMED = 5  # failed tests
# The record can be changed by an agent: no text of it may be as long as it likes.
_LONGEST_NAME, _LONGEST_TEXT, _LONGEST_WORD = 300, 2000, 100  # characters


def summarize(
    run: RunRow,
    rows: Iterable[IterationRow],
    now: datetime,
    kept: Container[str] | None = None,
) -> RunSummary:
    """Return the summary of a run. `rows` are all attempts, by number and attempt.

    `kept` are the names of the snapshots that rooda still has; without it, all that the rows name.
    """
    start = moment_of(run.started_at) or now
    known = filter(_makes_sense, rows)
    groups = groupby(known, key=lambda row: row.number)
    build = _Builder(run, start, now, kept)
    for _, attempts in groups:
        build.add(attempts)
    return build.finish(now)


def _makes_sense(row: IterationRow) -> bool:
    try:
        iteration_of(row)
    except (ValueError, OverflowError):
        return False
    return True


class _Builder:
    """Collects the iterations of one run."""

    def __init__(
        self, run: RunRow, start: datetime, now: datetime, kept: Container[str] | None
    ) -> None:
        self._kept = kept
        self._run = run
        self._start = start
        self._now = now
        self._iterations: list[IterationSummary] = []
        self._tests: TestCounts | None = None
        self._first_tests: TestCounts | None = None
        self._files = RunFiles()
        self._tree = run.snapshot.tree if run.snapshot else None
        self._left_out = set(run.snapshot.left_out) if run.snapshot else set()
        self._models: dict[str, None] = {}
        self._commit: str | None = None
        self._holders: dict[int, IterationSummary] = {}  # by the number of a failed iteration
        values = {one.name: one.value for one in run.settings or ()}
        self._has_verify = values.get("loop.verify.command", "none") != "none"

    def add(self, attempts: Iterable[IterationRow]) -> None:
        """Add one iteration."""
        spans: list[Span] = []
        tokens: Tokens | None = None
        cost: float | None = None
        stopped: list[NamedProcess] = []
        first: IterationRow | None = None
        row: IterationRow | None = None
        seconds = 0.0
        for row in attempts:
            first = first or row
            found = self._spans(row)
            spans += found
            is_at_work = row.duration is None and bool(found)
            seconds += found[-1].seconds if is_at_work else limited(row.duration)
            if row.tokens is not None:
                tokens = row.tokens if tokens is None else tokens + row.tokens
            if row.cost is not None:
                cost = (cost or 0.0) + limited(row.cost)
            stopped += [_named(one) for one in (row.cleaned_up or ())[:_MOST_STOPPED]]
            if row.model:
                self._models[one_line(row.model[:_LONGEST_WORD])] = None
        if row is None or first is None:
            return
        one = self._summary(row, tuple(spans))
        one = replace(
            one,
            started_at=first.started_at,
            start=max(0.0, seconds_between(self._start, first.started_at) or 0.0),
            seconds=seconds,
            tokens=tokens,
            cost=cost,
            stopped=tuple(stopped[:_MOST_STOPPED]),
        )
        self._iterations.append(replace(one, notes=tuple(self._notes(row, one))))
        self._holders.update(dict.fromkeys(one.commit_holds, one))
        self._tests = one.tests or self._tests
        self._first_tests = self._first_tests or one.tests
        if one.tree is not None:
            self._tree = one.tree
        if row.snapshot is not None:
            self._commit = row.snapshot.head or self._commit
        if row.commit is not None:
            self._commit = row.commit.commit

    def _spans(self, row: IterationRow) -> list[Span]:
        """Return how an attempt spent its time; the agent of one at work works until now."""
        found = spans_of(row, self._start)
        begin = seconds_between(self._start, row.started_at)
        is_at_work = self._run.status == Status.RUNNING and row.status in UNFINISHED
        if is_at_work and not found and begin is not None:
            now = (self._now - self._start).total_seconds()
            found = [Span(SpanKind.AGENT, begin, max(0.0, now - begin), row.number)]
        return found

    def _summary(self, row: IterationRow, spans: tuple[Span, ...]) -> IterationSummary:
        result = row.result
        self._has_verify = self._has_verify or row.verify is not None
        tests = _tests(row)
        gained = tests.passed - self._tests.passed if tests and self._tests else 0
        files = None
        if result is not None and not row.changes_unknown:
            files = len(names_of(row))
            self._files.add(row)
        details = result.test_results.details if result and result.test_results else ()
        bad = (one.name[:_LONGEST_NAME] for one in details if one.status.is_bad)
        return IterationSummary(
            row=bounded_row(row),
            started_at=row.started_at,
            files=files,
            changed=changed_files(row),
            tests=tests,
            tests_gained=gained,
            failed_tests=tuple(bad)[:_MOST_NAMED],
            adapter=adapter_of(self._run, row),
            is_unchecked=row.verify is None and self._has_verify,
            spans=spans,
            tree_before=self._tree,
            is_kept=self._has(row.snapshot, row.number),
        )

    def _has(self, snapshot: SnapshotTaken | None, number: int) -> bool:
        """Return whether rooda took a snapshot under this number, and still has it."""
        was_kept = snapshot is not None and snapshot.commit is not None
        return was_kept and (self._kept is None or str(number) in self._kept)

    def _notes(self, row: IterationRow, one: IterationSummary) -> Iterator[Note]:
        yield from self._test_notes(row, one)
        if row.snapshot is not None:
            new = [name for name in row.snapshot.left_out if name not in self._left_out]
            self._left_out.update(new)
            if new:
                yield sentences.left_out_note(one.number, new)
        for change in row.protected[:_MOST_NAMED]:
            yield sentences.protected_note(one.number, change)
        if one.stopped and not one.is_failed:
            names = [f"{process.name} (pid {process.pid})" for process in one.stopped]
            yield sentences.stopped_note(one.number, names)
        if row.unsafe_tree and not one.is_failed:
            yield sentences.unsafe_tree_note(one.number, row.unsafe_tree)
        for title, error in (
            ("commit failed", row.commit_failed and row.commit_failed.error),
            ("push failed", row.push_failed and row.push_failed.error),
            ("changes unknown", row.changes_unknown),
            ("record changed", ", ".join(row.unreadable)),
        ):
            if error:
                yield Note(one.number, title, one_line(error[:_LONGEST_NAME]))

    def _test_notes(self, row: IterationRow, one: IterationSummary) -> Iterator[Note]:
        before = self._tests
        if row.verify is not None and row.verify.is_flaky:
            yield sentences.flaky_note(one.number, row.verify)
        if row.tests_lost is not None and row.tests_lost.is_raised():
            yield sentences.lost_tests_note(one.number, row.tests_lost.loss)
        elif one.tests and before and one.tests.total < before.total:
            yield sentences.fewer_tests_note(one.number, before.total, one.tests.total)

    def finish(self, now: datetime) -> RunSummary:
        """Return the summary."""
        run, end = self._run, self._end(now)
        waits = waits_of(run, self._start, end)
        iterations = [self._completed(place, waits) for place in range(len(self._iterations))]
        spans = [*waits, *self._pauses(waits)]
        last = iterations[-1] if iterations else None
        is_blocked = last is not None and last.is_blocked
        tokens = [one.tokens for one in iterations if one.tokens]
        costs = [one.cost for one in iterations if one.cost is not None]
        files = self._files
        found = RunSummary(
            row=bounded_run(run),
            rule_text=sentences.rule_of(run, iterations),
            made_at=now.isoformat(timespec="seconds"),
            seconds=end,
            waited=sum(one.seconds for one in waits),
            good=sum(one.is_good for one in iterations),
            failed=sum(one.is_failed for one in iterations),
            other=sum(not one.is_good and not one.is_failed for one in iterations),
            tests_first=self._first_tests,
            tests_last=self._tests,
            commits=sum(one.commits for one in iterations),
            last_commit=self._commit,
            files=files.number,
            added=files.added,
            deleted=files.deleted,
            changed=files.largest(),
            agent=(last.agent if last else "") or "",
            models=tuple(self._models)[:_MOST_NAMED],
            cost=sum(costs) if costs else run.cost and limited(run.cost),
            tokens=sum(tokens[1:], start=tokens[0]) if tokens else None,
            times=_times(run, iterations, spans),
            spans=tuple(spans),
            proof=sentences.proof_of(iterations, run.baseline),
            closing=last.reason.partition(": ")[2] if last and is_blocked else "",
            closing_iteration=last.number if last and is_blocked else None,
            notes=sentences.most_important(iterations),
            iterations=tuple(iterations),
        )
        return replace(
            found,
            next_commands=tuple(next_commands(found, run, has_start=self._has(run.snapshot, 0))),
            next_hint=next_hint(found),
        )

    def _end(self, now: datetime) -> float:
        """Return when the run ended, in seconds since its start."""
        end = end_of(self._run, self._start, now)
        known = [one.spans[-1].end for one in self._iterations if one.spans]
        return limited(max(known, default=0.0) if end is None else end)

    def _completed(self, place: int, waits: Sequence[Span]) -> IterationSummary:
        """Return an iteration with its waits, and with how the run went on after it."""
        one = self._iterations[place]
        holder = self._holders.get(one.number)
        own = [span for span in waits if span.iteration == one.number]
        failed = sentences.failure_note(one, self._iterations[place + 1 :], self._run.status)
        return replace(
            one,
            waited=sum(span.seconds for span in own),
            notes=(*([failed] if failed else ()), *one.notes),
            held_by=holder and holder.number,
            held_in=holder and holder.commit,
        )

    def _pauses(self, waits: Sequence[Span]) -> list[Span]:
        busy = [(span.start, span.end) for span in waits]
        for one in self._iterations:
            ended = seconds_between(self._start, one.ended_at)
            if ended is None and one.status in UNFINISHED:
                continue
            last = max([one.start, *(span.end for span in one.spans)])
            busy.append((one.start, max(last, ended or 0.0)))
        return pauses(busy)


def adapter_of(run: RunRow, row: IterationRow) -> str:
    """Return the adapter that reads the output of the agent; `text` for an unknown agent."""
    for name in (row.adapter, row.agent):
        if name in KNOWN or name == TEXT:
            return str(name)
    try:
        program = program_name(shlex.split((run.command or "")[:_LONGEST_TEXT]))
    except ValueError:
        return TEXT
    return program if program in KNOWN else TEXT


def _named(process: NamedProcess) -> NamedProcess:
    return NamedProcess(process.pid, process.name[:_LONGEST_NAME])


def _tests(row: IterationRow) -> TestCounts | None:
    tests = row.result.test_results if row.result else None
    if tests is None or tests.total <= 0:
        return None
    passed, failed = max(0, tests.passed), max(0, tests.failed)
    return TestCounts(passed, failed, max(0, tests.skipped), tests.total, row.number)


def _times(
    run: RunRow, iterations: Iterable[IterationSummary], spans: Iterable[Span]
) -> dict[SpanKind | WaitKind, float]:
    """Return how the time of the run is divided, the largest part first."""
    found: dict[SpanKind | WaitKind, float] = {}
    for span in (*spans, *(span for one in iterations for span in one.spans)):
        found[span.kind] = found.get(span.kind, 0.0) + span.seconds
    # Hooks of the run as a whole; those of a wait are part of the wait.
    hooks = sum(one.duration for one in run.hooks if one.hook != "on_wait")
    if hooks > 0:
        found[SpanKind.HOOKS] = found.get(SpanKind.HOOKS, 0.0) + hooks
    spent = [(kind, seconds) for kind, seconds in found.items() if seconds > 0]
    return dict(sorted(spent, key=lambda pair: -pair[1]))
