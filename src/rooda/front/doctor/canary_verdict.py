"""The evidence from a trial of an agent, and the findings that follow from it."""

from collections.abc import Iterator

from msgspec import Struct, field

from rooda.base.numbers import usage_words
from rooda.base.times import format_duration, format_seconds
from rooda.front.doctor.canary_trial import (
    COMMANDED,
    WRITTEN,
    CanaryTask,
    ScratchRepository,
    TrialResult,
)
from rooda.front.doctor.findings import Finding, Mark
from rooda.loop.failure import suggestion
from rooda.loop.outcome import Verdict
from rooda.loop.stages.promises import Promises
from rooda.plan.settings.settings import ITERATION_TIMEOUT
from rooda.world.agents.agent_program import Program
from rooda.world.agents.agent_report import Usage
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.faults import last_line
from rooda.world.process.events import NamedProcess
from rooda.world.process.exits import (
    Canceled,
    Exit,
    Exited,
    HungAfterResult,
    Interrupted,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)

_LONGEST_LINE = 300


class Failure(Struct, frozen=True):
    """Why the agent failed: kind, evidence, advice, and the last line of the output."""

    kind: FailureKind
    evidence: str
    advice: str = ""
    last_words: str = ""


class Evidence(Struct, frozen=True):
    """The facts on which the findings are based.

    `repeated`: the answer contains the mark of the prompt. `wrote` and `ran`: whether the file of
    the agent and the file of its command have the right content, or None without a file.
    `exit_after`: seconds between the agent's result and its exit. `retrying`: what the agent was
    retrying when rooda stopped it. `is_complete`: the output ends with a result, or has no events.
    """

    end: Exit
    failure: Failure | None = None
    repeated: bool = False
    wrote: bool | None = None
    ran: bool | None = None
    promises: Promises = field(default_factory=Promises)
    exit_after: float | None = None
    duration: float = 0.0
    cleaned_up: tuple[NamedProcess, ...] = ()
    survivors: tuple[NamedProcess, ...] = ()
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    retrying: str = ""
    is_complete: bool = True


def gather(
    trial: TrialResult, task: CanaryTask, scratch: ScratchRepository, program: Program
) -> Evidence:
    """Return the evidence from the files that the agent wrote and the result of the trial."""
    result, report = trial.process, trial.report
    if result is None:
        return Evidence(NotStarted(trial.trouble or "the prompt could not be written"))
    written, commanded = scratch.read(WRITTEN), scratch.read(COMMANDED)
    after = trial.result_after
    return Evidence(
        end=result.exit,
        failure=_trial_failure(trial),
        repeated=task.is_repeated(_answer(trial, program)),
        wrote=None if written is None else task.is_written(written),
        ran=None if commanded is None else task.is_commanded(commanded),
        promises=trial.promises,
        exit_after=None if after is None else max(0.0, result.duration - after),
        duration=result.duration,
        cleaned_up=result.cleaned_up,
        survivors=result.survivors,
        usage=report.usage if report is not None else Usage(),
        notes=trial.notes,
        retrying=report.retrying if report is not None else "",
        is_complete=report is None or report.is_complete,
    )


def _answer(trial: TrialResult, program: Program) -> bytes:
    """Return the agent's answer, which is the text that a run searches for signals."""
    result, report = trial.process, trial.report
    if result is None:
        return b""
    if report is not None and report.speaks_events:
        return report.spoken
    on_stderr = report is None or program.adapter.facts.speaks_on_stderr
    return result.stdout.tail + (b"\n" + result.stderr.tail if on_stderr else b"")


def _trial_failure(trial: TrialResult) -> Failure | None:
    ended = trial.ended
    if ended is None or ended.verdict in (Verdict.CONTINUE, Verdict.COMPLETE, Verdict.INTERRUPTED):
        return None
    kind = ended.kind or FailureKind.EXIT
    facts = ended.facts
    evidence = (facts.evidence if kind is FailureKind.TIMEOUT else facts.reason) or ""
    context = facts.failure
    if context is None:
        return Failure(kind, evidence)
    words = last_line(context.suffix or context.preview)[-_LONGEST_LINE:]
    return Failure(kind, evidence, context.suggestion, "" if words in evidence else words)


# -- the verdict -----------------------------------------------------------------------------

_BY_HAND = "Run the command by hand, with a prompt on its standard input"
_TOOLS = "Read its answer in the folder below: it may lack the permission"
# The findings about the signal and the exit already show these kinds.
_SHOWN_ELSEWHERE = (FailureKind.SIGNAL, FailureKind.TIMEOUT)
_WAIT = "A run would wait until the limit is over, or start the next of `ai_cmd_fallbacks`"


def judge(found: Evidence, permission_flag: str = "") -> list[Finding]:
    """Return all findings; `permission_flag` is a missing flag that would allow the tools."""
    if isinstance(found.end, NotStarted):
        advice = "Check that it is installed; a script needs a #! line"
        return [
            Finding("started", Mark.PROBLEM, f"could not be started: {found.end.reason}", advice)
        ]
    tools = f"Allow it: add {permission_flag}" if permission_flag else _TOOLS
    denied = [note for note in found.notes if "not allowed" in note]
    return [
        Finding("started", Mark.OK, f"started, and ran for {format_duration(found.duration)}"),
        *_failure(found),
        _prompt(found),
        _step("file", "write a file", found, done=found.wrote, denied=denied, advice=tools),
        _step("command", "run a command", found, done=found.ran, denied=denied, advice=tools),
        _signal(found),
        _exit(found),
        _leftovers(found),
        *_numbers(found),
    ]


def _failure(found: Evidence) -> Iterator[Finding]:
    failure = found.failure
    if failure is None or failure.kind in _SHOWN_ELSEWHERE:
        return
    last = f"; its last line: {failure.last_words}" if failure.last_words else ""
    text = f"failed ({failure.kind}): {failure.evidence}{last}"
    yield Finding("failure", Mark.PROBLEM, text, _advice(failure, found))


def _advice(failure: Failure, found: Evidence) -> str:
    """Return the advice of the CLI's adapter if the adapter knows this kind of failure."""
    if failure.kind is FailureKind.LIMIT:
        return _WAIT
    if failure.kind.is_outage:
        return suggestion(failure.kind, found.end, 0)
    return failure.advice if failure.kind.row.by_cli else _BY_HAND


def _missed(found: Evidence) -> Mark:
    """Return the mark of an omitted step; unknown if the agent failed before that step."""
    failure = found.failure
    could_try = failure is None or failure.kind is FailureKind.SIGNAL
    return Mark.PROBLEM if could_try else Mark.UNKNOWN


def _prompt(found: Evidence) -> Finding:
    if found.repeated:
        return Finding("prompt", Mark.OK, "got the whole prompt: its last line came back")
    text = "the last line of the prompt did not come back"
    if _missed(found) is Mark.UNKNOWN:
        return Finding("prompt", Mark.UNKNOWN, text)
    advice = "It may not read standard input, or may truncate it: try a long prompt by hand"
    return Finding("prompt", Mark.PROBLEM, text, advice)


def _step(
    topic: str,
    action: str,
    found: Evidence,
    *,
    done: bool | None,
    denied: list[str],
    advice: str,
) -> Finding:
    if done:
        return Finding(topic, Mark.OK, f"can {action}")
    if done is False:
        text = f"did not {action} as instructed: the content is wrong"
        return Finding(topic, Mark.PROBLEM, text, "Read the file in the folder below")
    mark = _missed(found)
    why = f" ({denied[0]})" if denied else ""
    return Finding(topic, mark, f"did not {action}{why}", advice if mark is Mark.PROBLEM else "")


def _signal(found: Evidence) -> Finding:
    if found.promises.failure:
        line = found.promises.lines[-1] if found.promises.lines else ""
        advice = "Read its answer: it says that it is blocked"
        return Finding("signal", Mark.PROBLEM, f"signals failure: {line}", advice)
    if found.promises.success:
        return Finding("signal", Mark.OK, "can signal that it is done")
    mark = _missed(found)
    advice = "Read its answer: without a signal a run does not end before its limits"
    return Finding("signal", mark, "did not signal", advice if mark is Mark.PROBLEM else "")


def _exit(found: Evidence) -> Finding:
    topic = "exit"
    match found.end:
        case Exited(0) if not found.is_complete:
            text = "exits on its own, but its output ends without a result"
            advice = "In a run this is a failure, unless the agent signals success"
            return Finding(topic, Mark.WARNING, text, advice)
        case Exited(0):
            after = found.exit_after
            when = "" if after is None else f", {format_duration(after)} after its result"
            return Finding(topic, Mark.OK, f"exits on its own{when}")
        case Exited(code):
            # A finding above shows the failure; without one, the code contradicts the signal.
            mark = Mark.WARNING if found.failure is None else Mark.OK
            return Finding(topic, mark, f"exits on its own, with code {code}")
        case HungAfterResult(_, after):
            text = f"did not exit within {format_seconds(after)} of its result, and was stopped"
            advice = "A run continues after this; `result_grace` limits the wait in each iteration"
            return Finding(topic, Mark.WARNING, text, advice)
        case TimedOut(clock, after):
            name = "--timeout" if clock == ITERATION_TIMEOUT.key else clock
            text = f"was still running after {format_seconds(after)} ({name}), and was stopped"
            advice = "Give it more time, or run it by hand to see what it waits for"
            return Finding(topic, Mark.PROBLEM, f"{text}{_when_stopped(found)}", advice)
        case Signalled():
            text = f"was killed by {found.end.name}, which rooda did not send"
            return Finding(topic, Mark.PROBLEM, text, _BY_HAND)
        case Lost(reason) | Canceled(_, reason) | NotStarted(reason):
            return Finding(topic, Mark.PROBLEM, reason, _BY_HAND)
        case Interrupted():
            return Finding(topic, Mark.UNKNOWN, "was interrupted")


def _when_stopped(found: Evidence) -> str:
    """Return what was known about the agent at the timeout."""
    seen = found.failure.evidence if found.failure is not None else ""
    retrying = f"it was retrying: {found.retrying}" if found.retrying else ""
    return "".join(f"; {words}" for words in (seen, retrying) if words)


def _leftovers(found: Evidence) -> Finding:
    topic = "leftovers"
    if found.survivors:
        names = ", ".join(f"{one.name} ({one.pid})" for one in found.survivors)
        text = f"left processes that rooda could not stop: {names}"
        return Finding(topic, Mark.PROBLEM, text, "Check what they wait for, for example a disk")
    if not isinstance(found.end, Exited | Signalled):
        return Finding(topic, Mark.UNKNOWN, "was stopped with all of its processes")
    if found.cleaned_up:
        names = ", ".join(f"{one.name} ({one.pid})" for one in found.cleaned_up)
        text = f"left processes behind, and rooda stopped them: {names}"
        advice = "A run does this after each iteration; `keep_processes` names exceptions"
        return Finding(topic, Mark.WARNING, text, advice)
    return Finding(topic, Mark.OK, "leaves no processes behind")


def _numbers(found: Evidence) -> Iterator[Finding]:
    model = found.usage.model
    if model:
        yield Finding("model", Mark.OK, f"model: {model}")
    else:
        yield Finding("model", Mark.UNKNOWN, "does not say which model answered")
    tokens = found.usage.tokens
    words = usage_words(tokens.total if tokens else None, found.usage.cost)
    if words:
        yield Finding("cost", Mark.OK, f"used {words}")
    else:
        yield Finding("cost", Mark.UNKNOWN, "does not report its usage")
