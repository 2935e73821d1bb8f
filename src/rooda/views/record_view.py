"""The record for people: lists of runs and iterations, one run, one iteration."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from rooda.agents.failure_kinds import known_kind
from rooda.iteration.iteration_history import HistorySummary
from rooda.iteration.progress import without_signals
from rooda.iteration.types import IterationResult
from rooda.loop.run_events import HistoryPruned
from rooda.loop.work_events import HookEnded
from rooda.record.given_flags import masked_flags
from rooda.record.rows import EarlierAttempt, IterationRow, RecordedWait, RunRow
from rooda.testresults.results import TestResults, TestStatus
from rooda.text.controls import clean, one_line, shown_words
from rooda.text.numbers import count, usage_words
from rooda.text.paths import first_names
from rooda.text.times import format_duration
from rooda.views.terminal import render_table

_RUNS = 3  # names of deleted runs
_FILES = 20  # names in a list of files or tests
_BAD = (TestStatus.FAILED, TestStatus.ERROR)


def moment(text: str | None) -> str:
    """A time of the record, as local time."""
    if not text:
        return "-"
    try:
        return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):
        return text


def runs(rows: Sequence[RunRow]) -> str:
    """One line for each run, newest first."""
    titles = ("RUN", "STARTED", "PROCEDURE", "STATUS", "ITERATIONS", "TIME", "WHY")
    return render_table(titles, list(map(_run_line, rows)))


def _run_line(row: RunRow) -> tuple[str, ...]:
    summary = row.summary or HistorySummary()
    return (
        row.run,
        moment(row.started_at),
        row.procedure,
        row.status,
        str(summary.total_iterations),
        format_duration(summary.total_duration_ms / 1000),
        one_line(row.ended_because or ""),
    )


def run(row: RunRow, iterations: Sequence[IterationRow]) -> str:
    """One run: what it was, and a line for each of its iterations."""
    summary = row.summary or HistorySummary()
    flags = masked_flags(row.given)
    good = summary.successful_iterations
    bad = summary.failed_iterations + summary.timed_out_iterations
    about = [
        ("Run", row.run),
        ("Procedure", row.procedure),
        ("Status", _status(row)),
        ("Why", one_line(row.ended_because or "") or "-"),
        ("Started", moment(row.started_at)),
        ("Ended", moment(row.ended_at)),
        ("Command", one_line(row.command or "-")),
        *([] if flags is None else [("Flags", shown_words(flags) or "none")]),
        ("Iterations", f"{summary.total_iterations} ({good} good, {bad} failed)"),
        ("Files", _counts_of_files(summary)),
    ]
    if summary.total_tests_run:
        tests = f"{summary.total_tests_passed} of {summary.total_tests_run} passed"
        about.append(("Tests", tests))
    if (baseline := row.baseline) is not None:
        words = (f"verify {baseline.verdict}", one_line(baseline.error), baseline.counts)
        about.append(("Before", ", ".join(filter(None, words))))
    if used := usage_words(row.tokens, row.cost):
        about.append(("Used", used))
    about += [("Waited", _wait_line(group)) for group in grouped_waits(row.waits or ())]
    about += [
        ("Changed", f"iteration {one.iteration}: {one.agent} for {one.before}")
        for one in row.agents_changed or ()
    ]
    about += [("Pruned", _pruned(one)) for one in row.pruned or ()]
    text = render_table((), [*about, *_unreadable(row.unreadable)])
    if iterations:
        text += "\n" + iteration_list(iterations)
    return text + _hooks(row.hooks)


def _pruned(one: HistoryPruned) -> str:
    names, more = one.runs[:_RUNS], len(one.runs) - _RUNS
    shown = ", ".join(names) + (f", {more} more" if more > 0 else "")
    return f"{count(len(one.runs), 'older run')}: {one_line(shown)}"


class WaitGroup(Struct, frozen=True):
    """The waits of a run for one and the same outage, or a single wait."""

    last: RecordedWait
    number: int = 1
    total: float = 0.0  # seconds

    def joined(self, wait: RecordedWait) -> "WaitGroup":
        """The group with one more wait."""
        return WaitGroup(wait, self.number + 1, self.total + (wait.waited or 0.0))

    def is_continued_by(self, wait: RecordedWait) -> bool:
        """Whether the wait belongs to the same outage, whichever agent it was for."""
        before = self.last.lasted
        if wait.lasted is None or before is None:
            return False
        return wait.lasted > before and wait.lasted >= before + (self.last.waited or 0.0)

    def __str__(self) -> str:
        """How long the run waited, or until when it will wait."""
        last = self.last
        if last.waited is None:
            words = f"{format_duration(last.seconds)} until {moment(last.until)}"
        else:
            words = f"{format_duration(last.waited)} of {format_duration(last.seconds)}"
        if self.number > 1:
            words = f"{self.number} waits of {format_duration(self.total)}, the last {words}"
        if last.lasted is None:
            return words
        lasted = format_duration(last.lasted + (last.waited or 0.0))
        return f"{words}, in an outage of {lasted}"


def grouped_waits(waits: Sequence[RecordedWait]) -> list[WaitGroup]:
    """The waits of a run; those for the same outage are one group."""
    found: list[WaitGroup] = []
    for wait in waits:
        if found and found[-1].is_continued_by(wait):
            found[-1] = found[-1].joined(wait)
        else:
            found.append(WaitGroup(wait, total=wait.waited or 0.0))
    return found


def _wait_line(group: WaitGroup) -> str:
    last = group.last
    return f"iteration {last.iteration}, {last.kind} of {one_line(last.what)}: {group}"


def _counts_of_files(summary: HistorySummary) -> str:
    created, modified = summary.total_files_created, summary.total_files_modified
    return f"{created} created, {modified} modified"


def _status(row: RunRow) -> str:
    return row.status + ("" if row.exit_code is None else f" (exit code {row.exit_code})")


def iteration_list(iterations: Sequence[IterationRow]) -> str:
    """One line for each iteration."""
    titles = ("NO", "STATUS", "TIME", "FILES", "TESTS", "SUMMARY")
    return render_table(
        titles,
        [
            (
                str(one.number),
                one.status,
                _duration(one),
                _files(one.result),
                _tests(one.result),
                one_line(_words(one)),
            )
            for one in iterations
        ],
    )


def named_attempts(attempts: Sequence[EarlierAttempt]) -> list[tuple[str, EarlierAttempt]]:
    """Earlier attempts and their names; the attempts of one outage become one, the last."""
    found: list[tuple[int, EarlierAttempt]] = []
    for one in attempts:
        kind = known_kind(one.kind)
        is_outage = kind is not None and kind.is_outage
        is_again = is_outage and bool(found) and one.kind == found[-1][1].kind
        first = found.pop()[0] if is_again else one.attempt
        found.append((first, one))
    return [(_called(first, last.attempt), last) for first, last in found]


def _called(first: int, last: int) -> str:
    return f"Attempt {first}" if first == last else f"Attempts {first} to {last}"


def _attempt(one: EarlierAttempt) -> str:
    kind = f" ({one.kind})" if one.kind else ""
    return f"{one.status}{kind}, begun {moment(one.started_at)}"


def _duration(one: IterationRow) -> str:
    return "-" if one.duration is None else format_duration(one.duration)


def _files(result: IterationResult | None) -> str:
    if result is None:
        return "-"
    kinds = (
        ("+", result.files_created),
        ("~", result.files_modified),
        ("-", result.files_deleted),
    )
    return " ".join(f"{sign}{len(names)}" for sign, names in kinds if names) or "none"


def _tests(result: IterationResult | None) -> str:
    tests = result and result.test_results
    return "-" if not tests else f"{tests.passed}/{tests.total}"


def _words(one: IterationRow) -> str:
    reason = "" if one.status == "completed" else one.reason
    return reason or without_signals((one.result and one.result.summary) or "")


def iteration(row: IterationRow) -> str:
    """One iteration with all that is known of it."""
    result = row.result
    tests = result.test_results if result is not None else None
    attempt = f" (attempt {row.attempt})" if row.attempt > 1 else ""
    about: list[tuple[str, str]] = [
        ("Iteration", f"{row.number}{attempt}"),
        ("Status", row.status),
        ("Started", moment(row.started_at)),
        ("Ended", moment(row.ended_at)),
        ("Took", _duration(row)),
        *((name, _attempt(one)) for name, one in named_attempts(row.earlier_attempts or ())),
    ]
    if row.reason:
        about.append(("Why", one_line(row.reason)))
    if row.signal:
        about.append(("Signal", row.signal))
    if result is not None:
        code = result.exit_code
        about.append(("Exit code", "-" if code is None else str(code)))
        about.append(("Progress", "yes" if result.progress_detected else "no"))
        if tests is not None:
            about.append(("Tests", _counted(tests)))
    about += [*_agent(row), *_deeds(row), *_oddities(row)]
    text = render_table((), about, whole=True)
    if result is not None:
        text += _file_lists(result)
        if tests is not None:
            text += _failed_tests(tests)
        if summary := without_signals(result.summary or ""):
            text += "\nSummary:\n" + _indented(summary)
    return text + _hooks(row.hooks)


def _agent(row: IterationRow) -> Iterator[tuple[str, str]]:
    """What the agent's CLI reports about itself."""
    if row.model:
        yield "Model", one_line(row.model)
    if used := usage_words(row.tokens.total if row.tokens else None, row.cost):
        turns = f" in {count(row.turns, 'turn')}" if row.turns else ""
        yield "Used", f"{used}{turns}"
    full = row.result.context_usage_percent if row.result is not None else None
    if full is not None:
        yield "Context", f"{full}% full"
    if row.session_id:
        yield "Session", one_line(row.session_id)
    if row.incomplete:
        yield "Output", "incomplete: it ends without the agent's result"


def _counted(tests: TestResults) -> str:
    return f"{tests.total}: {tests.passed} passed, {tests.failed} failed, {tests.skipped} skipped"


def _deeds(row: IterationRow) -> Iterator[tuple[str, str]]:
    """What the loop did around the agent."""
    if (verify := row.verify) is not None:
        yield "Verify", f"{verify.error or 'passed'} ({one_line(verify.command)})"
    if (commit := row.commit) is not None:
        yield "Commit", f"{commit.commit[:12]} {one_line(commit.message)}"
    if (secrets := row.secrets_left_out) is not None:
        shown = first_names(secrets.files, secrets.total)
        yield "Not committed", f"{shown} (new files that look like secrets)"
    if (push := row.push) is not None:
        yield "Push", f"{push.branch} to {push.remote}"
    for name, failed in (("Commit", row.commit_failed), ("Push", row.push_failed)):
        if failed is not None:
            yield name, f"failed: {one_line(failed.error)}"
    if row.cleaned_up:
        names = ", ".join(f"{one.name} (pid {one.pid})" for one in row.cleaned_up)
        yield "Cleaned up", one_line(names)
    if (snapshot := row.snapshot) is not None and snapshot.commit:
        yield "Snapshot", snapshot.commit[:12]
        if snapshot.left_out:
            yield "Left out", one_line(", ".join(snapshot.left_out))


def _oddities(row: IterationRow) -> Iterator[tuple[str, str]]:
    if row.returned_to is not None:
        yield "Tree", f"the same as after iteration {row.returned_to}"
    if row.changes_unknown:
        yield "Changes", f"unknown: {one_line(row.changes_unknown)}"
    yield from _unreadable(row.unreadable)


def _unreadable(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Say which parts of the row are missing: an agent can write to the record."""
    if names:
        yield "Unreadable", f"{', '.join(names)} (something changed the record)"


def _file_lists(result: IterationResult) -> str:
    text = ""
    for title, names in (
        ("Created", result.files_created),
        ("Modified", result.files_modified),
        ("Deleted", result.files_deleted),
    ):
        if names:
            shown = [one_line(name) for name in names[:_FILES]]
            more = [f"... {count(len(names) - _FILES, 'more')}"] if len(names) > _FILES else []
            text += f"\n{title}:\n" + "".join(f"  {name}\n" for name in shown + more)
    return text


def _failed_tests(tests: TestResults) -> str:
    bad = [one for one in tests.details if one.status in _BAD]
    if not bad:
        return ""
    lines = [
        f"  {one_line(one.name)}" + (f": {one_line(one.error)}" if one.error else "")
        for one in bad[:_FILES]
    ]
    more = [f"  ... {len(bad) - _FILES} more"] if len(bad) > _FILES else []
    return "\nFailed tests:\n" + "\n".join(lines + more) + "\n"


def _hooks(hooks: Sequence[HookEnded]) -> str:
    if not hooks:
        return ""
    rows = [
        (hook.hook, hook.error or "ok", format_duration(hook.duration), hook.command)
        for hook in hooks
    ]
    return "\n" + render_table(("HOOK", "END", "TIME", "COMMAND"), rows)


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in clean(text).splitlines())
