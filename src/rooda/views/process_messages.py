"""What a process does, in words."""

from collections.abc import Sequence

from rooda.process import events as process
from rooda.process.events import ProcessEvent
from rooda.text.times import format_duration, format_seconds
from rooda.views.message import Message

_SHOWN = 5  # processes by name


def of_process(event: ProcessEvent) -> Message | None:  # noqa: C901, PLR0912 - a table
    """What to say of an event, if anything."""
    match event:
        case process.ClockExpired(clock, after, evidence):
            return Message(
                "AI CLI exceeded timeout",
                (
                    ("timeout", format_seconds(after)),
                    ("action", "sending_sigterm"),
                    ("clock", clock),
                    ("evidence", evidence or None),
                ),
            )
        case process.ProcessCalledOff(rule, reason):
            return Message(
                "AI CLI is called off",
                (("rule", rule), ("reason", reason), ("action", "sending_sigterm")),
            )
        case process.InterruptSeen(signal, again):
            action = "killing" if again else "shutting_down"
            return Message("Received signal", (("signal", signal), ("action", action)))
        case process.ProcessStopping(pid):
            return Message("Killing AI CLI process", (("pid", pid),))
        case process.ProcessKilled():
            return Message("AI CLI did not terminate gracefully", (("action", "sending_sigkill"),))
        case process.ProcessSurvived(pid, processes):
            return Message(
                "AI CLI is still running after SIGKILL",
                (
                    ("pid", pid),
                    ("action", "going_on_without_it"),
                    ("processes", names(processes) or None),
                    ("suggestion", "See who they belong to (ps), and end them by hand"),
                ),
            )
        case process.ProcessStopped():
            return Message("AI CLI terminated")
        case process.LeftoversStopped(_, processes):
            return Message(
                "AI CLI left processes behind; they were stopped",
                (("processes", names(processes) or None),),
            )
        case process.ProcessLost(pid, reason, processes):
            return Message(
                "AI CLI was lost: rooda's warden is gone; what could be found was stopped",
                (("pid", pid), ("error", reason), ("processes", names(processes) or None)),
            )
        case process.ProcessPaused(pid):
            return Message("Paused", (("pid", pid),))
        case process.ProcessResumed(pid, after):
            return Message("Going on", (("pid", pid), ("paused", format_duration(after))))
        case process.MachineSlept(seconds):
            return Message(
                "The machine was asleep; no clock counted that",
                (("asleep", format_duration(seconds)),),
            )
        case process.TranscriptTrimmed(stream, size, kept, reason):
            return Message(
                "Not all of the output is kept on disk",
                (
                    ("stream", stream),
                    ("size", size),
                    ("kept", kept),
                    ("reason", reason or "max_transcript"),
                ),
            )
        case process.ProcessStarted(pid):
            return Message("AI CLI started", (("pid", pid),))
        case process.Output() | process.Tick():
            return None


def names(processes: Sequence[process.NamedProcess]) -> str:
    """`sleep 600 (pid 4711), node (pid 4712), 3 more`."""
    shown = [f"{one.name} (pid {one.pid})" for one in processes[:_SHOWN]]
    more = [f"{len(processes) - _SHOWN} more"] if len(processes) > _SHOWN else []
    return ", ".join(shown + more)
