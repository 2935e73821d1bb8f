"""How important each event is."""

from enum import IntEnum

from rooda.config.problems import Severity
from rooda.loop import agent_events as agents
from rooda.loop import events as loop
from rooda.loop.events import Event
from rooda.loop.outcome import Verdict
from rooda.loop.state import Status
from rooda.process import events as process


class Level(IntEnum):
    """How important an event is."""

    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


LEVELS: dict[type[Event], Level] = {
    loop.ConfigResolved: Level.DEBUG,
    loop.StageEntered: Level.DEBUG,
    agents.AgentSaid: Level.DEBUG,
    agents.UsageSeen: Level.DEBUG,
    agents.AgentChanged: Level.WARN,
    agents.WaitStarted: Level.WARN,
    process.ProcessCalledOff: Level.WARN,
    loop.SnapshotTaken: Level.DEBUG,
    loop.CommandStarted: Level.DEBUG,
    loop.HistoryPruned: Level.DEBUG,
    loop.ChangesUnknown: Level.WARN,
    loop.SnapshotTrouble: Level.WARN,
    loop.CommitFailed: Level.ERROR,
    loop.PushFailed: Level.WARN,
    loop.RecordTrouble: Level.WARN,
    loop.PromptAssembled: Level.DEBUG,
    loop.SignalsScanned: Level.DEBUG,
    process.ProcessStarted: Level.DEBUG,
    process.Tick: Level.DEBUG,
    process.Output: Level.DEBUG,
    loop.OutputTruncated: Level.WARN,
    loop.ExitOverridden: Level.WARN,
    process.ClockExpired: Level.WARN,
    process.ProcessKilled: Level.WARN,
    process.ProcessSurvived: Level.WARN,
    process.LeftoversStopped: Level.WARN,
    loop.PromptFailed: Level.ERROR,
    loop.StartFailed: Level.ERROR,
    loop.ListenerFailed: Level.ERROR,
    loop.StateUnwritable: Level.WARN,
    loop.EarlierRunCleared: Level.WARN,
    loop.Unlocked: Level.WARN,
    process.ProcessLost: Level.WARN,
    process.TranscriptTrimmed: Level.WARN,
}


def level(event: Event) -> Level:
    """The level of an event; most are news (INFO)."""
    if isinstance(event, loop.RunEnded) and event.status is Status.ABORTED:
        return Level.ERROR
    if isinstance(event, loop.RunResumed):
        return Level.INFO if event.recorded else Level.WARN
    if isinstance(event, loop.IterationEnded):
        failed = event.verdict is Verdict.FAILURE or event.failure is not None
        return Level.ERROR if failed else Level.INFO
    if isinstance(event, loop.VerifyEnded) and event.error:
        return Level.WARN
    if isinstance(event, loop.HookEnded):
        return Level.WARN if event.error else Level.DEBUG
    if isinstance(event, loop.ProblemFound):
        return Level.ERROR if event.severity is Severity.ERROR else Level.WARN
    return LEVELS.get(type(event), Level.INFO)
