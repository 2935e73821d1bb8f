"""What a summary says in words: why a run ended, what is proven, what to look at.

Every sentence is made by rules from the record, and never from an interpretation of the agent's
words.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.loop.events.iteration_detail import SHORT_COMMIT
from rooda.loop.events.protect import ProtectedChanged
from rooda.loop.events.tree import UnsafeTree
from rooda.loop.events.work import BaselineEnded, VerifyEnded
from rooda.loop.state import Status
from rooda.loop.stops import known_rule
from rooda.loop.wait_kinds import known_wait
from rooda.record.rows import RecordedWait, RunRow, moment_of
from rooda.views.model.open_tasks import still_open
from rooda.views.model.summary import IterationSummary, Note, Proof, ProofState
from rooda.views.wording.labels import clock, date_and_time
from rooda.world.agents.failure_kinds import known_kind
from rooda.world.testresults.census import TestLoss

MOST_NOTES = 5
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_LONGEST = 500  # characters of a reason
_NAMES = 3  # files or processes by name


def short(commit: str | None) -> str:
    """Return the beginning of a commit's name; "" for a text that is none."""
    return commit[:SHORT_COMMIT] if commit and _COMMIT.fullmatch(commit) else ""


# -- why it ended --------------------------------------------------------------------------------


def rule_of(run: RunRow, iterations: Sequence[IterationSummary]) -> str:
    """Return why a run ended, in one sentence or two."""
    last = iterations[-1] if iterations else None
    rule = known_rule(run.rule)
    if run.status == Status.RUNNING:
        if waits := waits_now(run):
            return f"{waits} Nothing has ended the run yet."
        at = f" at iteration {last.number}" if last else ""
        return f"The run is at work{at}; nothing has ended it yet."
    if rule is None:
        return "rooda itself was killed, or the machine went down: no rule ended the run."
    facts = _Facts(run, iterations)
    try:
        return rule.row.story.format_map(facts).strip()
    except _UnknownFactError:  # the record is not whole
        return _PLAIN_STORY.format_map(facts).strip()


_PLAIN_STORY = "{sentence} {reason}"


class _UnknownFactError(Exception):
    """A story needs a fact that the record does not have."""


class _Facts(dict[str, str]):
    """The facts of the stories of the stop rules, each worked out if a story needs it."""

    def __init__(self, run: RunRow, iterations: Sequence[IterationSummary]) -> None:
        super().__init__()
        self._run, self._iterations = run, iterations

    def __missing__(self, name: str) -> str:
        """Work out a fact."""
        fact = STORY_FACTS[name](self._run, self._iterations)
        if fact is None:
            raise _UnknownFactError
        return fact


_Fact = Callable[[RunRow, Sequence[IterationSummary]], str | None]


def _of_last(words: Callable[[RunRow, IterationSummary], str]) -> _Fact:
    """Return a fact that is only known if there is an iteration."""
    return lambda run, iterations: words(run, iterations[-1]) if iterations else None


def _rule_sentence(run: RunRow, _: object) -> str:
    rule = known_rule(run.rule)
    return rule.row.sentence if rule else ""


def _signal(run: RunRow, _: object) -> str:
    return f" ({run.signal})" if run.signal else ""


def _most(run: RunRow, _: object) -> str:
    return "" if run.max_iterations is None else f" of at most {run.max_iterations}"


def _checks(last: IterationSummary) -> str:
    checked = ", and verify passed after it" if last.verify else ""
    if last.clean_check:
        checked += " and in a clean copy" if checked else ", and a check passed in a clean copy"
    return checked


def _failures(run: RunRow, _: object) -> str:
    return count(run.consecutive_failures or _limit(run), "failure")


def _limit(run: RunRow) -> int:
    return run.threshold or run.consecutive_failures or 0


def _all_iterations(run: RunRow, iterations: Sequence[IterationSummary]) -> str:
    number = run.max_iterations or len(iterations)
    return "The only iteration" if number == 1 else f"All {number} iterations"


def _claim(_: RunRow, iterations: Sequence[IterationSummary]) -> str:
    """Return what the agent signaled last, after which the run did not end."""
    last = iterations[-1] if iterations else None
    if last and last.signal and last.is_failed and not last.is_blocked:
        return f"the agent signaled {last.signal} in the last one, but it failed ({last.kind})"
    if last is None or not last.successes:
        return "the agent did not signal that the work is done"
    said = f"{last.signal} {last.confirmation} in a row"
    return f"the agent signaled {said}, so that the work is done is not confirmed"


# What the story of a stop rule can name; None: the record does not have it.
STORY_FACTS: Mapping[str, _Fact] = {
    "sentence": _rule_sentence,
    "reason": lambda run, _: _sentence(one_line((run.reason or "")[:_LONGEST])),
    "time": lambda run, _: clock(run.ended_at),
    "interrupt": _signal,
    "most": _most,
    "failures": _failures,
    "threshold": lambda run, _: _threshold(run),
    "tasks": lambda run, _: still_open(run),
    "iterations": _all_iterations,
    "claim": _claim,
    "signal": _of_last(lambda _, last: str(last.signal)),
    "number": _of_last(lambda _, last: str(last.number)),
    "in_a_row": _of_last(
        lambda _, last: f" ({last.confirmation} in a row)" if last.successes else ""
    ),
    "checks": _of_last(lambda _, last: _checks(last)),
}


def waits_now(run: RunRow) -> str:
    """Return what a run that is at work waits for, and until when; "" if it does not wait."""
    last = run.waits[-1] if run.waits else None
    if run.status != Status.RUNNING or last is None or last.waited is not None:
        return ""
    kind = known_wait(last.kind)
    word = kind.row.until if kind else "until"
    until = f" {word} {date_and_time(last.until)}" if moment_of(last.until) else ""
    return f"The run waits {target_of(last)}{until}, then iteration {last.iteration} starts."


def target_of(wait: RecordedWait) -> str:
    """Return what a run waits for, in a sentence after `waits`."""
    kind, what = known_wait(wait.kind), wait.what[:_LONGEST]
    if kind is None:
        return f"for {one_line(f'{wait.kind} of {what}')}"
    return kind.target(what, wait.outage[:_LONGEST])


def _sentence(words: str) -> str:
    """Return the words with a capital letter and a full stop."""
    if not words:
        return ""
    return words[0].upper() + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


def _threshold(run: RunRow) -> str:
    """Return the setting that limits failures in a row, its value, and where it was set."""
    settings = {one.name: one for one in run.settings or ()}
    attempts = settings.get("loop.max_attempts")
    is_retried = attempts is not None and attempts.value != "none"
    name = "max_attempts" if is_retried else "failure_threshold"
    setting = settings.get(f"loop.{name}")
    origin = f", {one_line(setting.origin[:_LONGEST])}" if setting else ""
    return f"{name} ({_limit(run)}{origin})"


# -- what is proven ------------------------------------------------------------------------------


def proof_of(
    iterations: Sequence[IterationSummary], baseline: BaselineEnded | None = None
) -> Proof:
    """Return what `verify` has proven of the last state."""
    checked = [one for one in iterations if one.verify is not None]
    if not checked:
        return Proof(ProofState.NOT_CHECKED, after=_only_before(baseline))
    command = checked[-1].verify.command if checked[-1].verify else ""
    passed = [one for one in checked if one.verify and not one.verify.error]
    if not passed:
        return Proof(ProofState.NOT_PROVEN, command, after=_never_passed(checked, baseline))
    best = passed[-1]
    later = [one for one in iterations if one.number > best.number and one.files != 0]
    commits = [one.commit for one in iterations if one.number <= best.number and one.commit]
    commit = best.commit or (commits[-1] if commits and not best.files else None)
    has_own = any(one.commits_of_agent for one in iterations)
    return Proof(
        ProofState.NOT_PROVEN if later else ProofState.PASSED,
        command,
        best.number,
        best.tests,
        short(commit) or None,
        short(best.head) or None if has_own and not commit else None,
        _after(later),
    )


def _only_before(baseline: BaselineEnded | None) -> str:
    """Return what a check has found that ran after no iteration."""
    if baseline is None:
        return "The run had no verify command that ran."
    code = "" if baseline.exit_code is None else f" (exit code {baseline.exit_code})"
    if baseline.cannot_run:
        return f"Verify can't run{code}; rooda tried it before the first iteration."
    found = f"failed{code}" if baseline.error else "passed"
    return f"Verify ran only before the first iteration, and it {found}."


def _never_passed(checked: Sequence[IterationSummary], baseline: BaselineEnded | None) -> str:
    """Return how the checks ended if none of them passed after an iteration."""
    before = baseline is not None and not baseline.error
    passed = "It passed only before the first iteration" if before else "It never passed"
    failed = [one.number for one in checked if _is_failed(one)]
    last = f"it failed last after iteration {failed[-1]}" if failed else ""
    number = checked[-1].number
    if failed[-1:] != [number]:
        stopped = f"a signal interrupted it after iteration {number}"
        last = f"{last}, and {stopped}" if last else stopped
    return f"{passed}; {last}."


def _is_failed(one: IterationSummary) -> bool:
    """Return whether verify failed after an iteration; one that was interrupted did not."""
    return one.verify is not None and bool(one.verify.error) and not one.verify.was_interrupted


def _after(later: Sequence[IterationSummary]) -> str:
    """Return what the iterations after the last proven state did."""
    if not later:
        return ""
    words = f"{_numbers([one.number for one in later])}{_left(later)}"
    failed = [one.number for one in later if _is_failed(one)]
    stopped = [one.number for one in later if one.verify and one.verify.was_interrupted]
    ended = "failed" if failed else "was interrupted" if stopped else "did not run"
    numbers = failed or stopped
    which = f" ({_numbers(numbers).lower()})" if numbers and len(later) > 1 else ""
    return f"{words}, and verify {ended} on {_them(later)}{which}."


def _them(later: Sequence[IterationSummary]) -> str:
    """Return the word for the changes that `_left` counts."""
    if any(one.files for one in later):
        return "it" if _changed_files(later) == 1 else "them"
    return "its result" if len(later) == 1 else "their results"


def _changed_files(later: Sequence[IterationSummary]) -> int:
    """Return how many files these iterations changed, or at least so many."""
    names = {file.name for one in later for file in one.changed}
    return max(len(names), *(one.files or 0 for one in later))


def _left(later: Sequence[IterationSummary]) -> str:
    """Return how many files these iterations changed, and whether the changes are in commits."""
    if not any(one.files for one in later):
        return " came after it"
    is_known = len(later) == 1 or all(one.files == len(one.changed) for one in later)
    files = count(_changed_files(later), "changed file")
    left = f" left {'' if is_known else 'at least '}{files}"
    if own := sum(one.commits_of_agent for one in later):
        return f"{left} (the agent made {count(own, 'commit')})"
    return left if any(one.commit for one in later) else f"{left} uncommitted"


def _numbers(numbers: Sequence[int]) -> str:
    """Return `Iteration 5`, `Iterations 5 to 7` or `Iterations 5 and 9`."""
    if len(numbers) == 1:
        return f"Iteration {numbers[0]}"
    is_range = numbers[-1] - numbers[0] == len(numbers) - 1
    joined = " and ".join(map(str, numbers)) if len(numbers) == len("ab") else ""
    if joined and not is_range:
        return f"Iterations {joined}"
    return f"Iterations {numbers[0]} to {numbers[-1]}"


# -- what is worth a look ------------------------------------------------------------------------


def failure_note(
    one: IterationSummary, later: Sequence[IterationSummary], status: str
) -> Note | None:
    """Return the note of a failed iteration: what failed, and how the run went on."""
    if not one.is_failed:
        return None
    ended = " The run ended here." if not later and status == Status.ABORTED else ""
    text = f"{what_failed(one)}{_recovery(one, later)}{ended}"
    return Note(one.number, title_of(one), text, is_failure=True)


def title_of(one: IterationSummary) -> str:
    """Return `failed: verify`, `timed_out`, `completed, SUCCESS 1 of 2` or another status."""
    if one.is_good and one.successes:
        return f"{one.status}, SUCCESS {one.confirmation}"
    return f"failed: {one.kind}" if one.status == "failed" and one.kind else one.status


def what_failed(one: IterationSummary) -> str:
    """Return in one sentence why an iteration failed."""
    return own_story(one) or _sentence(one_line(one.reason)) or "The record has no reason."


def own_story(one: IterationSummary) -> str:
    """Return the story of the kind of failure; "" if it has none, or the record lacks its facts."""
    kind = known_kind(one.kind)
    facts = {name: words(one) for name, words in FAILURE_FACTS.items()}
    return kind.row.story.format_map(facts) if kind else ""


def _failed_tests(one: IterationSummary) -> str:
    tests = one.tests
    if tests is None or not tests.failed:
        return ""
    first = f", first {one_line(one.failed_tests[0])}" if one.failed_tests else ""
    return f"{tests.failed} of {count(tests.total, 'test')} failed{first}."


# What the story of a kind of failure can name.
FAILURE_FACTS: Mapping[str, Callable[[IterationSummary], str]] = {
    "failed_tests": _failed_tests,
    "signal": lambda one: one.signal or "FAILURE",
    "unchecked": lambda one: " Verify did not run." if one.is_unchecked else "",
    "clock": lambda one: one_line(one.reason) or "a time limit",
    "ended": lambda one: f"; rooda ended {_processes(len(one.stopped))}" if one.stopped else "",
}


def _processes(number: int) -> str:
    return f"{number} process" if number == 1 else f"{number} processes"


def _recovery(one: IterationSummary, later: Sequence[IterationSummary]) -> str:
    good = next((other for other in later if other.is_good), None)
    if good is None:
        return ""
    tests = good.tests
    if one.tests is not None and one.tests.failed and tests and tests.passed and not tests.failed:
        return f" All tests passed again after iteration {good.number}."
    return f" Iteration {good.number} completed."


def fewer_tests_note(number: int, before: int, now: int) -> Note:
    """Return the note of an iteration after which there were fewer tests."""
    title = f"{count(before - now, 'test')} fewer"
    return Note(number, title, f"{before} to {now} tests.", is_in_diff=True)


def lost_tests_note(number: int, loss: TestLoss) -> Note:
    """Return the note of an iteration after which verify had fewer tests."""
    return Note(number, loss.brief, f"{one_line(loss.words[:_LONGEST])}.", is_in_diff=True)


def flaky_note(number: int, verify: VerifyEnded) -> Note:
    """Return the note of a check that did not pass on its first try."""
    first = verify.failed_tries[0].error if verify.failed_tries else ""
    text = f"Passed on try {verify.tries}; the first try: {one_line(first[:_LONGEST])}."
    return Note(number, "verify is flaky", text)


def left_out_note(number: int, names: Sequence[str]) -> Note:
    """Return the note of files that are in no snapshot."""
    title = "file left out" if len(names) == 1 else "files left out"
    return Note(number, title, f"In no snapshot: {_some(names)}")


def protected_note(number: int, change: ProtectedChanged) -> Note:
    """Return the note of protected files that were changed."""
    title = "protected file" if change.total == 1 else "protected files"
    return Note(number, title, f"{_sentence(change.end)[:-1]}: {change.story[:_LONGEST]}")


def stopped_note(number: int, names: Sequence[str]) -> Note:
    """Return the note of processes that rooda stopped after an iteration."""
    title = "process ended" if len(names) == 1 else "processes ended"
    return Note(number, title, f"Left running by the agent: {_some(names)}")


def unsafe_tree_note(number: int, found: Sequence[UnsafeTree]) -> Note:
    """Return the note of what could have acted outside of the sandbox."""
    words = [f"{one.sentence}: {_some(one.files)}." for one in found[:_NAMES]]
    return Note(number, "left by the agent", " ".join(words))


def _some(names: Sequence[str]) -> str:
    shown = [one_line(name[:200]) for name in names[:_NAMES]]
    more = [f"{len(names) - _NAMES} more"] if len(names) > _NAMES else []
    return ", ".join(shown + more)


def most_important(iterations: Sequence[IterationSummary]) -> tuple[Note, ...]:
    """Return all notes: failures first, each kind in the order of the iterations."""
    notes = [note for one in iterations for note in one.notes]
    return tuple(sorted(notes, key=lambda note: not note.is_failure))
