"""Events in words: a message and its fields, as seed 004 writes them.

The logfmt view prints these as they are; the text view takes them for the lines of which seed
000 has no example of its own.
"""

import shlex
from collections.abc import Sequence

from rooda.agents.failure_kinds import FailureKind
from rooda.config.problems import Severity
from rooda.loop import agent_events as agents
from rooda.loop import events as loop
from rooda.loop.events import Event
from rooda.loop.failure import FailureContext
from rooda.loop.outcome import Verdict
from rooda.loop.state import Status
from rooda.loop.stats import Stats
from rooda.text.controls import one_line
from rooda.text.times import format_duration, format_seconds
from rooda.views.agent_messages import cannot_work, of_agent, same_failures
from rooda.views.message import Field, Message
from rooda.views.process_messages import names, of_process

_SHOWN = 5  # processes or files by name
_COMMIT = 12  # characters of a commit's name
_OUTPUT = 500  # characters of what a command printed last
_WORD_START, _WORD_END = 300, 100  # characters that are shown of a long word of a command line


def position(number: int, maximum: int | None) -> str:
    """`2/5`, or `2` where there is no limit."""
    return f"{number}/{maximum}" if maximum is not None else str(number)


def describe(event: Event) -> Message | None:  # noqa: C901, PLR0912 - a table, one row an event
    """What to say of an event, if anything."""
    match event:
        case loop.ConfigResolved(setting, value, origin):
            return Message("Setting", (("name", setting), ("value", value), ("origin", origin)))
        case loop.ProblemFound():
            return _problem(event)
        case loop.IterationStarted():
            where = position(event.iteration, event.max_iterations)
            return Message(f"Starting iteration {where}", (("procedure", event.procedure),))
        case loop.PromptAssembled(iteration, size):
            return Message("Prompt assembled", (("iteration", iteration), ("size", size)))
        case loop.PromptFailed(iteration, error, suggestion):
            return Message(
                "Prompt assembly failed",
                (("iteration", iteration), ("error", error), ("suggestion", suggestion)),
            )
        case loop.StartFailed():
            return Message(
                "AI CLI could not be started",
                (
                    ("error", event.error),
                    ("iteration", event.iteration),
                    ("command", event.command),
                    ("suggestion", event.suggestion),
                ),
            )
        case loop.OutputTruncated():
            return Message(
                "AI CLI output exceeded buffer size",
                (
                    ("actual_size", event.actual_size),
                    ("buffer_limit", event.buffer_limit),
                    ("action", "truncating_from_beginning"),
                    ("stream", event.stream),
                    ("iteration", event.iteration),
                    ("suggestion", "Raise max_output_buffer if this happens often"),
                ),
            )
        case loop.SignalsScanned():
            return Message(
                "Scanned for signals",
                (
                    ("success", event.success),
                    ("failure", event.failure),
                    ("believed", event.believed),
                    ("iteration", event.iteration),
                ),
            )
        case loop.ExitOverridden():
            return Message(
                "AI CLI exited with non-zero code but promise signal indicates success",
                (
                    ("exit_code", event.exit_code),
                    ("promise_signal", event.promise_signal),
                    ("signal", event.exit_signal),
                    ("iteration", event.iteration),
                ),
            )
        case loop.HookEnded():
            return _hook_ended(event)
        case loop.VerifyEnded():
            return _verify_ended(event)
        case loop.Committed(iteration, commit, message):
            short = commit[:_COMMIT]
            first = message.splitlines()[0] if message else ""
            return Message(
                "Committed", (("commit", short), ("message", first), ("iteration", iteration))
            )
        case loop.CommitFailed(iteration, error, suggestion):
            return Message(
                "The work could not be committed; it is still in the work tree",
                (("error", error), ("iteration", iteration), ("suggestion", suggestion)),
            )
        case loop.Pushed(iteration, remote, branch, commit):
            return Message(
                "Pushed",
                (
                    ("branch", branch),
                    ("remote", remote),
                    ("commit", commit[:_COMMIT]),
                    ("iteration", iteration),
                ),
            )
        case loop.PushFailed(iteration, error, suggestion):
            return Message(
                "Push failed; the next iteration tries again",
                (("error", error), ("iteration", iteration), ("suggestion", suggestion)),
            )
        case loop.StageEntered(iteration, status):
            return Message("Stage", (("status", str(status)), ("iteration", iteration)))
        case loop.SnapshotTaken(iteration, tree, commit):
            return Message(
                "Work tree seen",
                (
                    ("tree", tree[:_COMMIT]),
                    ("snapshot", commit and commit[:_COMMIT]),
                    ("iteration", iteration),
                ),
            )
        case loop.FilesLeftOut(iteration, files):
            shown = ", ".join(files[:_SHOWN])
            more = f", {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
            return Message(
                "Left out of the snapshots, because they are too large or can't be read",
                (("files", shown + more), ("iteration", iteration)),
            )
        case loop.ChangesUnknown(iteration, error):
            return Message(
                "Nobody can tell what changes in the work tree",
                (("error", error), ("iteration", iteration)),
            )
        case loop.SnapshotTrouble(iteration, error):
            return Message(
                "Trouble with the snapshots", (("error", error), ("iteration", iteration))
            )
        case loop.CommandStarted(what, pid):
            return Message("Command started", (("command", what), ("pid", pid)))
        case loop.RecordTrouble(error):
            return Message("Trouble with the record; the run goes on", (("error", error),))
        case loop.HistoryPruned(runs):
            return Message("Old runs were removed", (("runs", ", ".join(runs)),))
        case loop.StopRequested():
            return Message("Asked to stop after this iteration")
        case loop.IterationEnded():
            return _iteration_ended(event)
        case loop.StateUnwritable(iteration, error):
            return Message(
                "The state folder can't be written; a temporary file is used instead",
                (("error", error), ("iteration", iteration)),
            )
        case loop.EarlierRunCleared(run, processes, survivors):
            return Message(
                "An earlier run was killed here; what it left behind was stopped",
                (
                    ("run", run),
                    ("processes", names(processes) or None),
                    ("survivors", names(survivors) or None),
                ),
            )
        case loop.Unlocked(folder, error):
            return Message(
                "The work tree can't be locked; make sure that no other run works in it",
                (("folder", folder), ("error", error)),
            )
        case loop.ListenerFailed(listener, error):
            return Message(
                "A log or view failed; the run goes on",
                (("view", listener), ("error", error)),
            )
        case loop.RunEnded():
            return _ended(event)
        case loop.RunStarted():
            return None
        case loop.RunResumed():
            return _resumed(event)
        case (
            agents.AgentSaid()
            | agents.UsageSeen()
            | agents.AgentChanged()
            | agents.WaitStarted()
            | agents.StillWaiting()
            | agents.WaitEnded()
        ):
            return of_agent(event)
        case _:
            return of_process(event)


def shown_words(words: Sequence[str]) -> str:
    """Words of a command line on one line; of a long text the middle is left out."""
    return shlex.join(_brief(one_line(word)) for word in words)


def _brief(word: str) -> str:
    left_out = len(word) - _WORD_START - _WORD_END
    if left_out <= 0:
        return word
    return f"{word[:_WORD_START]}[... {left_out} characters ...]{word[-_WORD_END:]}"


def _resumed(event: loop.RunResumed) -> Message:
    told = (("flags", event.flags), ("given", event.given), ("replaced", event.replaced))
    return Message(
        "Resuming a run" if event.recorded else "Resuming a run whose flags were not recorded",
        (
            ("run", event.run),
            ("iteration", event.iteration),
            ("folder", event.folder or None),
            *((name, shown_words(words) or None) for name, words in told),
        ),
    )


def _hook_ended(event: loop.HookEnded) -> Message:
    return Message(
        f"The {event.hook} hook failed" if event.error else f"The {event.hook} hook is done",
        (
            ("error", event.error or None),
            ("command", event.command),
            ("elapsed", format_duration(event.duration)),
            ("on_error", event.on_error if event.error else None),
            ("output", event.output[-_OUTPUT:] or None if event.error else None),
            ("cleaned_up", names(event.cleaned_up) or None),
        ),
    )


def _verify_ended(event: loop.VerifyEnded) -> Message:
    return Message(
        "Verify failed" if event.error else "Verified",
        (
            ("error", event.error or None),
            ("command", event.command),
            ("elapsed", format_duration(event.duration)),
            ("iteration", event.iteration),
            ("output", event.output[-_OUTPUT:] or None if event.error else None),
            ("cleaned_up", names(event.cleaned_up) or None),
        ),
    )


def _problem(event: loop.ProblemFound) -> Message:
    """Seed 004's examples 5 and 6; a warning says in words what an error says in a field."""
    is_error = event.severity is Severity.ERROR
    return Message(
        event.title if is_error else event.message,
        (
            ("file", event.file or None),
            ("line", event.line),
            ("field", event.field or None),
            ("error", event.message if is_error else None),
            ("suggestion", event.suggestion or None),
        ),
    )


def _iteration_ended(event: loop.IterationEnded) -> Message | None:
    truncated: Field = ("truncated", True if event.truncated else None)
    elapsed: Field = ("elapsed", format_duration(event.duration))
    match event.verdict:
        case Verdict.CONTINUE:
            where = position(event.iteration, event.max_iterations)
            return Message(
                f"Completed iteration {where}",
                (elapsed, ("status", "success"), truncated, *_usage(event)),
            )
        case Verdict.COMPLETE if not event.despite_exit:  # else a warning has said it
            signal: Field = ("promise_signal", event.promise_signal)
            iteration: Field = ("iteration", event.iteration)
            fields = (signal, iteration, elapsed, truncated, *_usage(event))
            return Message("AI CLI succeeded", fields)
        case Verdict.FAILURE | Verdict.ABORT if event.failure is not None:
            return _failed(event, event.failure)
        case Verdict.LIMITED:
            agent: Field = ("agent", event.agent)
            why: Field = ("reason", event.reason)
            number: Field = ("iteration", event.iteration)
            return Message(f"Stopped: {cannot_work(event)}", (agent, why, number, elapsed))
        case Verdict.FAILURE:
            count: Field = ("consecutive_failures", event.consecutive_failures)
            limit: Field = ("threshold", event.threshold)
            where_: Field = ("iteration", event.iteration)
            reason: Field = ("reason", event.reason or None)
            return Message("Iteration skipped", (reason, count, limit, where_))
        case _:
            return None  # the end of the run says it


def _usage(event: loop.IterationEnded) -> tuple[Field, ...]:
    """What the agent used, where it tells."""
    usage = event.usage
    if usage is None:
        return ()
    tokens = usage.tokens.total if usage.tokens else None
    return ("tokens", tokens), ("cost", usage.cost), ("model", usage.model)


def _failed(event: loop.IterationEnded, failure: FailureContext) -> Message:
    how: tuple[Field, ...]
    match failure.kind:
        case FailureKind.TIMEOUT:
            timeout = format_seconds(failure.timeout or 0)
            how = (("reason", "timeout"), ("timeout", timeout))
        case FailureKind.CRASH:
            how = (("signal", failure.signal), ("exit_code", failure.exit_code))
        case FailureKind.SIGNAL:
            how = (("exit_code", failure.exit_code), ("promise_signal", failure.promise_signal))
        case _:
            how = (("exit_code", failure.exit_code),)
    return Message(
        "AI CLI failed",
        (
            *how,
            ("consecutive_failures", event.consecutive_failures),
            ("threshold", event.threshold),
            ("iteration", event.iteration),
            ("elapsed", format_duration(event.duration)),
            ("clock", failure.reason if failure.kind is FailureKind.TIMEOUT else None),
            ("evidence", failure.evidence or None),
            ("ignored_signal", _ignored_signal(failure)),
            ("command", failure.command),
            ("output_first", failure.preview or None),
            ("output_last", failure.suffix or None),
            ("truncated", True if failure.truncated else None),
            ("suggestion", failure.suggestion),
            ("kind", str(failure.kind) if failure.kind.row.by_cli else None),
            ("same_failures", same_failures(event)),
            *_usage(event),
        ),
    )


def _ignored_signal(failure: FailureContext) -> str | None:
    return failure.promise_signal if failure.kind is FailureKind.TIMEOUT else None


def _ended(event: loop.RunEnded) -> Message:
    total: tuple[Field, ...] = (
        ("iterations", event.iterations),
        ("total_elapsed", format_duration(event.total)),
        *timing(event.stats),
        ("tokens", event.tokens or None),
        ("cost", event.cost or None),
    )
    resume: Field = ("resume", event.resume or None)
    match event.status:
        case Status.ABORTED:
            counts: tuple[Field, ...] = (
                ("consecutive_failures", event.consecutive_failures),
                ("threshold", event.threshold),
                ("status", event.status),
                ("reason", event.reason or None),
            )
            return Message("Loop aborted", (*counts, *total, resume))
        case Status.INTERRUPTED:
            signal: tuple[Field, ...] = (("status", event.status), ("signal", event.signal))
            return Message("Loop interrupted", (signal[0], *total, signal[1], resume))
        case _:
            return Message("Loop completed", (("status", event.status), *total))


def timing(stats: Stats) -> tuple[tuple[str, str], ...]:
    """The statistics, as far as there are any."""
    if not stats.count:
        return ()
    fields = [("min", stats.minimum), ("max", stats.maximum), ("mean", stats.mean)]
    if stats.stddev is not None:
        fields.append(("stddev", stats.stddev))
    return tuple((name, format_duration(value)) for name, value in fields)
