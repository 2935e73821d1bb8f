"""What the evidence means, line by line: can this agent be left alone with work? Pure."""

from collections.abc import Iterator

from rooda.config.settings import ITERATION_TIMEOUT
from rooda.doctor.canary.evidence import Evidence, Failure
from rooda.doctor.findings import Finding, Mark
from rooda.loop.failure import suggestion
from rooda.loop.outcome import OUTAGES, FailureKind
from rooda.process.exits import (
    CalledOff,
    Exited,
    Interrupted,
    Lingered,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
from rooda.text.times import format_duration, format_seconds
from rooda.views.agent_messages import OF_AGENTS, usage_words

_BY_HAND = "Run the command by hand, with a prompt on its standard input"
_TOOLS = "Read its answer, in the folder below: it may not be allowed to"
# The lines on its signal and its exit say as much.
_TOLD_ELSEWHERE = (FailureKind.SIGNAL, FailureKind.TIMEOUT)
_WAIT = "A run would wait until the limit is over, or take the next of `ai_cmd_fallbacks`"


def judge(found: Evidence, permission_flag: str = "") -> list[Finding]:
    """Every line of the report; `permission_flag` is what lets the CLI use its tools."""
    if isinstance(found.end, NotStarted):
        advice = "Check that it is installed; a script needs a #! line"
        return [Finding("started", Mark.PROBLEM, f"can't be started: {found.end.reason}", advice)]
    tools = f"Let it: add {permission_flag}" if permission_flag else _TOOLS
    denied = [note for note in found.notes if "not allowed" in note]
    return [
        Finding("started", Mark.OK, f"started, and ran for {format_duration(found.duration)}"),
        *_failure(found),
        _prompt(found),
        _deed("file", "write a file", found, done=found.wrote, denied=denied, advice=tools),
        _deed("command", "run a command", found, done=found.ran, denied=denied, advice=tools),
        _signal(found),
        _exit(found),
        _leftovers(found),
        *_numbers(found),
    ]


def _failure(found: Evidence) -> Iterator[Finding]:
    failure = found.failure
    if failure is None or failure.kind in _TOLD_ELSEWHERE:
        return
    said = f"; it said last: {failure.last_words}" if failure.last_words else ""
    text = f"failed ({failure.kind}): {failure.evidence}{said}"
    yield Finding("failure", Mark.PROBLEM, text, _advice(failure, found))


def _advice(failure: Failure, found: Evidence) -> str:
    """What the CLI's adapter knows to do; of the rest a look at it by hand tells more."""
    if failure.kind is FailureKind.LIMIT:
        return _WAIT
    if failure.kind in OUTAGES:
        return suggestion(failure.kind, found.end, 0)
    return failure.advice if str(failure.kind) in OF_AGENTS else _BY_HAND


def _missed(found: Evidence) -> Mark:
    """How to take something that was not done: who failed before may well be able to do it."""
    failure = found.failure
    has_tried = failure is None or failure.kind is FailureKind.SIGNAL
    return Mark.PROBLEM if has_tried else Mark.UNKNOWN


def _prompt(found: Evidence) -> Finding:
    if found.repeated:
        return Finding("prompt", Mark.OK, "the prompt arrived whole: its last line came back")
    text = "the last line of the prompt did not come back"
    if _missed(found) is Mark.UNKNOWN:
        return Finding("prompt", Mark.UNKNOWN, text)
    advice = "It may not read standard input, or cut it: see how it takes a long prompt by hand"
    return Finding("prompt", Mark.PROBLEM, text, advice)


def _deed(
    topic: str,
    deed: str,
    found: Evidence,
    *,
    done: bool | None,
    denied: list[str],
    advice: str,
) -> Finding:
    if done:
        return Finding(topic, Mark.OK, f"can {deed}")
    if done is False:
        text = f"did not {deed} as it was told: the content is another"
        return Finding(topic, Mark.PROBLEM, text, "See what it wrote, in the folder below")
    mark = _missed(found)
    why = f" ({denied[0]})" if denied else ""
    return Finding(topic, mark, f"did not {deed}{why}", advice if mark is Mark.PROBLEM else "")


def _signal(found: Evidence) -> Finding:
    if found.promises.failure:
        line = found.promises.lines[-1] if found.promises.lines else ""
        advice = "Read what it says: it thinks that it is blocked"
        return Finding("signal", Mark.PROBLEM, f"signals failure: {line}", advice)
    if found.promises.success:
        return Finding("signal", Mark.OK, "can signal that it is done")
    mark = _missed(found)
    advice = "See its answer: a run would never hear that the work is done"
    return Finding("signal", mark, "did not signal", advice if mark is Mark.PROBLEM else "")


def _exit(found: Evidence) -> Finding:
    topic = "exit"
    match found.end:
        case Exited(0) if not found.is_complete:
            text = "exits by itself, but its output ends without its result"
            advice = "In a run that is a failure unless it signals: see `rooda why` there"
            return Finding(topic, Mark.WARNING, text, advice)
        case Exited(0):
            after = found.exit_after
            when = "" if after is None else f", {format_duration(after)} after its result"
            return Finding(topic, Mark.OK, f"exits by itself{when}")
        case Exited(code):
            # With a failure that is told above; without one it contradicts the agent's signal.
            mark = Mark.WARNING if found.failure is None else Mark.OK
            return Finding(topic, mark, f"exits by itself, with code {code}")
        case Lingered(_, after):
            text = f"did not exit within {format_seconds(after)} of its result, and was stopped"
            advice = "A run goes on all the same; `result_grace` is how long each iteration waits"
            return Finding(topic, Mark.WARNING, text, advice)
        case TimedOut(clock, after):
            name = "--timeout" if clock == ITERATION_TIMEOUT.key else clock
            text = f"was still at work after {format_seconds(after)} ({name}), and was stopped"
            advice = "Give it more time, or see by hand what it waits for"
            return Finding(topic, Mark.PROBLEM, f"{text}{_seen(found)}", advice)
        case Signalled():
            text = f"was killed by {found.end.name}, which rooda did not send"
            return Finding(topic, Mark.PROBLEM, text, _BY_HAND)
        case Lost(reason) | CalledOff(_, reason) | NotStarted(reason):
            return Finding(topic, Mark.PROBLEM, reason, _BY_HAND)
        case Interrupted():
            return Finding(topic, Mark.UNKNOWN, "was interrupted")


def _seen(found: Evidence) -> str:
    """What was known when a clock ran out."""
    seen = found.failure.evidence if found.failure is not None else ""
    retrying = f"it was retrying: {found.retrying}" if found.retrying else ""
    return "".join(f"; {words}" for words in (seen, retrying) if words)


def _leftovers(found: Evidence) -> Finding:
    topic = "leftovers"
    if found.survivors:
        names = ", ".join(f"{one.name} ({one.pid})" for one in found.survivors)
        text = f"left processes that nobody could stop: {names}"
        return Finding(topic, Mark.PROBLEM, text, "See what keeps them: they may wait for a disk")
    if not isinstance(found.end, Exited | Signalled):
        return Finding(topic, Mark.UNKNOWN, "it was stopped with all of its processes")
    if found.cleaned_up:
        names = ", ".join(f"{one.name} ({one.pid})" for one in found.cleaned_up)
        text = f"left processes behind, which were stopped: {names}"
        advice = "A run does the same after each iteration; `keep_processes` names exceptions"
        return Finding(topic, Mark.WARNING, text, advice)
    return Finding(topic, Mark.OK, "leaves nothing behind")


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
        yield Finding("cost", Mark.UNKNOWN, "does not say what it used")
