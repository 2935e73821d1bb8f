"""`log_format: text`: seed 000's lines, to the letter of its examples."""

from rooda.agents.failure_kinds import FailureKind
from rooda.loop import events as loop
from rooda.loop.events import Event
from rooda.loop.failure import PREVIEW, FailureContext
from rooda.loop.levels import Level, level
from rooda.loop.outcome import Verdict
from rooda.loop.state import Status
from rooda.loop.stops import StopRule
from rooda.process import events as process
from rooda.text.controls import clean, one_line
from rooda.text.numbers import count
from rooda.text.times import format_duration, format_seconds
from rooda.views.agent_messages import (
    cannot_work,
    same_failures,
    usage_words,
)
from rooda.views.logfmt import render_fields
from rooda.views.messages import describe, position, shown_words, timing


def render(event: Event) -> str | None:  # noqa: C901, PLR0912 - a table, one row an event
    """The line of an event, with further lines indented below it."""
    match event:
        case loop.RunStarted():
            maximum = event.max_iterations
            limit = "unlimited" if maximum is None else f"max {count(maximum, 'iteration')}"
            if event.resumed_at is not None:
                where = f"run {one_line(event.run)}, at iteration {event.resumed_at}, {limit}"
                return f"Resuming procedure: {one_line(event.procedure)} ({where})"
            return f"Starting procedure: {one_line(event.procedure)} ({limit})"
        case loop.RunResumed():
            return _resumed(event)
        case loop.IterationStarted():
            return f"Iteration {position(event.iteration, event.max_iterations)} starting..."
        case loop.IterationEnded():
            return _iteration_ended(event)
        case loop.RunEnded():
            return _ended(event)
        case loop.VerifyEnded() if event.error:
            took = format_duration(event.duration)
            error, command = one_line(event.error), one_line(event.command)
            line = f"WARN: Verify failed: {error} after {took} ({command})"
            return "\n".join([line, *_quoted("Output, its end", event.output[-PREVIEW:])])
        case loop.CommitFailed():
            line = "ERROR: The work could not be committed; it is still in the work tree"
            said = _quoted("Git says", event.error[-PREVIEW:])
            return "\n".join([line, *said, f"  Try: {one_line(event.suggestion)}"])
        case loop.PushFailed():
            line = "WARN: Push failed; the next iteration tries again"
            said = _quoted("Git says", event.error[-PREVIEW:])
            return "\n".join([line, *said, f"  Try: {one_line(event.suggestion)}"])
        case process.InterruptSeen(signal, again):
            return (
                f"Received {signal}{' again, killing at once' if again else ', shutting down...'}"
            )
        case process.ProcessStopping(pid):
            return f"Killing AI CLI process (pid {pid}); a second Ctrl+C kills it at once"
        case _:
            message = describe(event)
            if message is None:
                return None
            prefix = "" if level(event) is Level.INFO else f"{level(event).name}: "
            return f"{prefix}{one_line(message.words)}{render_fields(message.fields)}"


def _iteration_ended(event: loop.IterationEnded) -> str | None:
    where = f"Iteration {position(event.iteration, event.max_iterations)}"
    duration = format_duration(event.duration)
    match event.verdict:
        case Verdict.CONTINUE | Verdict.COMPLETE:
            return "\n".join([f"{where} completed in {duration} (success)", *_usage(event)])
        case Verdict.FAILURE:
            count_ = f"{event.consecutive_failures}/{event.threshold}"
            line = f"{where} completed in {duration} (failure, consecutive: {count_})"
            context = _context(event.failure) if event.failure else ()
            same = same_failures(event)
            again = [f"  The same failure {same} times in a row"] if same else []
            return "\n".join([line, *context, *again, *_usage(event)])
        case Verdict.INTERRUPTED:
            return f"{where} interrupted after {duration}"
        case Verdict.LIMITED:
            return f"{where} stopped after {duration}: {cannot_work(event)}"
        case Verdict.ABORT if event.failure is not None:
            line = f"ERROR: {where} failed after {duration} ({event.kind})"
            return "\n".join([line, *_context(event.failure)])
        case Verdict.ABORT:
            return None  # an error has said it


def _usage(event: loop.IterationEnded) -> list[str]:
    """What the agent used, where it tells."""
    usage = event.usage
    if usage is None:
        return []
    words = usage_words(usage.tokens.total if usage.tokens else None, usage.cost)
    if not words:
        return []
    model = f" ({one_line(usage.model)})" if usage.model else ""
    full = usage.context_percent
    context = f", context {full}% full" if full is not None else ""
    return [f"  Used: {words}{context}{model}"]


def _context(failure: FailureContext) -> list[str]:
    """Seed 004's context, indented below the line of the failed iteration."""
    lines = [f"  Reason: {_reason(failure)}", f"  Command: {one_line(failure.command)}"]
    if failure.suffix:
        lines += _quoted(f"Output, first {PREVIEW} characters", failure.preview)
        lines += _quoted(f"Output, last {PREVIEW} characters", failure.suffix)
    elif failure.preview:
        lines += _quoted("Output", failure.preview)
    return [*lines, f"  Try: {one_line(failure.suggestion)}"]


def _reason(failure: FailureContext) -> str:
    said = failure.promise_signal
    match failure.kind:
        case FailureKind.TIMEOUT:
            ignored = f"; its {said} signal does not count" if said else ""
            limit = f"timeout ({failure.reason}: {format_seconds(failure.timeout or 0)})"
            seen = f"; {failure.evidence}" if failure.evidence else ""
            return f"{limit}{seen}{ignored}"
        case kind if kind.row.by_cli:
            return f"{kind} after {format_duration(failure.duration)}: {one_line(failure.reason)}"
        case FailureKind.SIGNAL if failure.exit_code is not None:
            words = f"the agent signaled {said}, exit code {failure.exit_code}"
        case FailureKind.SIGNAL:
            words = f"the agent signaled {said}"
        case FailureKind.CRASH if failure.exit_code is not None:
            words = f"{one_line(failure.reason)}, exit code {failure.exit_code}"
        case _:
            words = one_line(failure.reason)
    return f"{words} after {format_duration(failure.duration)}"


def _quoted(title: str, text: str) -> list[str]:
    return [f"  {title}:", *(f"    | {line}" for line in clean(text).splitlines())]


def _ended(event: loop.RunEnded) -> str:
    total = f"total: {format_duration(event.total)}"
    completed = f"{count(event.iterations, 'iteration')} completed, {total}"
    match event.status:
        case Status.SUCCESS:
            done = count(event.iterations, "iteration")
            line = f"Completed: AI signaled {event.promise_signal} ({done}, {total})"
        case Status.MAX_ITERS:
            line = f"Reached max iterations: {event.max_iterations} ({total})"
        case Status.INTERRUPTED:
            word = "Stopped" if event.rule is StopRule.STOPPED else "Interrupted"
            line = f"{word} ({completed})"
        case _ if event.reason:
            line = f"ERROR: Aborting: {one_line(event.reason)} ({completed})"
        case _:
            failures = count(event.consecutive_failures, "consecutive failure")
            line = f"ERROR: Aborting after {failures} ({completed})"
    numbers = ", ".join(f"{name}={value}" for name, value in timing(event.stats))
    lines = [line, f"  Iteration timing: {numbers}"] if numbers else [line]
    if used := usage_words(event.tokens, event.cost):
        lines.append(f"  Used: {used}")
    # After failures in a row, seed 000's example ends with the timing.
    if event.resume and event.rule is not StopRule.FAILURE_THRESHOLD:
        lines.append(f"  To continue: {one_line(event.resume)}")
    return "\n".join(lines)


def _resumed(event: loop.RunResumed) -> str:
    """Which values come from the run, and which from the command line of now."""
    where = f" in {one_line(event.folder)}" if event.folder else ""
    line = f"Resuming run {one_line(event.run)} at iteration {event.iteration}{where}"
    now = shown_words(event.given)
    if not event.recorded:
        flags = f" with the flags given now: {now}" if now else ""
        return f"WARN: {line}{flags}; the flags of the run were not recorded"
    kept, gone = shown_words(event.flags), shown_words(event.replaced)
    if kept:
        line += f" with its flags: {kept}"
    elif not gone:
        line += "; it was started without flags"
    if now:
        line += f"; given now: {now}"
    return f"{line}, instead of: {gone}" if gone else line
