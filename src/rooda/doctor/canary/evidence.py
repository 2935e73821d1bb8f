"""What a canary left: all that its report is made of."""

from dataclasses import dataclass, field

from rooda.agents.endings import last_line
from rooda.agents.program import Program
from rooda.agents.report import Usage
from rooda.doctor.canary.errand import COMMANDED, WRITTEN, Errand
from rooda.doctor.canary.scratch import Scratch
from rooda.doctor.canary.trial import Trial
from rooda.loop.outcome import FailureKind, Verdict
from rooda.loop.promises import Promises
from rooda.process.events import Named
from rooda.process.exits import Exit, NotStarted

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the agent failed: its kind, what tells, what to do, and what it printed last."""

    kind: FailureKind
    evidence: str
    advice: str = ""
    last_words: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The facts. `wrote` and `ran` are None where there was no such file, else if it was right.

    `exit_after` is how long after its result the agent was gone.
    """

    end: Exit
    failure: Failure | None = None
    repeated: bool = False
    wrote: bool | None = None
    ran: bool | None = None
    promises: Promises = field(default_factory=Promises)
    exit_after: float | None = None
    duration: float = 0.0
    cleaned_up: tuple[Named, ...] = ()
    survivors: tuple[Named, ...] = ()
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()
    retrying: str = ""  # what it tried again when it was cut off
    is_complete: bool = True  # its output ends with its result, where it has one


def gather(trial: Trial, errand: Errand, scratch: Scratch, program: Program) -> Evidence:
    """Look at what the agent left in its folder, and at what the engine knows of it."""
    result, report = trial.process, trial.report
    if result is None:
        return Evidence(NotStarted(trial.trouble or "the prompt could not be written"))
    written, commanded = scratch.read(WRITTEN), scratch.read(COMMANDED)
    after = trial.result_after
    return Evidence(
        end=result.exit,
        failure=_failure(trial),
        repeated=errand.is_repeated(_speech(trial, program)),
        wrote=None if written is None else errand.is_written(written),
        ran=None if commanded is None else errand.is_commanded(commanded),
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


def _speech(trial: Trial, program: Program) -> bytes:
    """What the agent itself said, where the signals are looked for as well."""
    result, report = trial.process, trial.report
    if result is None:
        return b""
    if report is not None and report.speaks_events:
        return report.spoken
    on_stderr = report is None or program.adapter.facts.speaks_on_stderr
    return result.stdout.tail + (b"\n" + result.stderr.tail if on_stderr else b"")


def _failure(trial: Trial) -> Failure | None:
    ended = trial.ended
    if ended is None or ended.verdict in (Verdict.CONTINUE, Verdict.COMPLETE, Verdict.INTERRUPTED):
        return None
    kind = ended.kind or FailureKind.EXIT
    evidence = ended.evidence if kind is FailureKind.TIMEOUT else ended.reason
    context = ended.failure
    if context is None:
        return Failure(kind, evidence)
    words = last_line(context.suffix or context.preview)[-_LONGEST:]
    return Failure(kind, evidence, context.suggestion, "" if words in evidence else words)
