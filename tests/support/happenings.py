"""Sample events for the tests of the views."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeVar

from msgspec import structs

from rooda.base.event import EVENTS, Event, LogLevel
from rooda.base.problems import Severity
from rooda.loop.events.agent import (
    AgentChanged,
    AgentSaid,
    NotesGiven,
    NotesWaiting,
    NoteTrouble,
    StillWaiting,
    UsageSeen,
    WaitEnded,
    WaitStarted,
)
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import (
    ExitOverridden,
    IterationEnded,
    IterationStarted,
    OutputTruncated,
    PromptAssembled,
    PromptFailed,
    SignalsScanned,
    StageEntered,
    StartFailed,
)
from rooda.loop.events.messages import MessageNotSent
from rooda.loop.events.protect import ProtectedChanged, ProtectionStarted
from rooda.loop.events.publish import PublishEnded
from rooda.loop.events.run import (
    ConfigResolved,
    EarlierRunCleared,
    HistoryPruned,
    KeptAwake,
    ListenerFailed,
    NotKeptAwake,
    ProblemFound,
    RecordTrouble,
    ReportFailed,
    RunEnded,
    RunResumed,
    RunStarted,
    StateUnwritable,
    StopRequested,
    TasksLeft,
    Unlocked,
)
from rooda.loop.events.tree import HardLinksFound, UnsafeTree
from rooda.loop.events.verify import CleanCheckEnded, DoneCheckEnded, TestsLost, VerifyRetried
from rooda.loop.events.work import (
    BaselineEnded,
    BranchSwitched,
    ChangesUnknown,
    CommandOutput,
    CommandStarted,
    CommitFailed,
    Committed,
    FailedTry,
    FilesLeftOut,
    HookEnded,
    Pushed,
    PushFailed,
    RepositoriesLeftOut,
    SecretsLeftOut,
    SnapshotStarted,
    SnapshotTaken,
    SnapshotTrouble,
    UserFilesChanged,
    VerifyEnded,
)
from rooda.loop.failure import FailureContext
from rooda.loop.history import Stats
from rooda.loop.iteration_facts import IterationFacts
from rooda.loop.outcome import Verdict
from rooda.loop.result import IterationResult, IterationStatus
from rooda.loop.run_facts import RunFacts
from rooda.loop.state import State
from rooda.loop.wait_kinds import WaitKind
from rooda.views.terminal.log import DEFAULT_TIMES, TIME_FORMATS, Log
from rooda.world.agents.agent_report import Tokens, Usage
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process import events as process
from rooda.world.sandbox.tree_findings import Action, Finding
from rooda.world.tasks.standing import TaskCount
from rooda.world.testresults.census import LossKind, TestLoss
from rooda.world.testresults.results import TestDetail, TestResults, TestStatus

EVENT_CLASSES: tuple[type[Event], ...] = tuple(EVENTS)
_MIDNIGHT = datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=1)))
_BEGAN = _MIDNIGHT.replace(hour=10)


def stamped(clock: str, event: Event) -> Stamped:
    """The event at a time of day such as `10:00:45` or `21:00:05.100`."""
    hours, minutes, seconds = clock.split(":")
    at = _MIDNIGHT + timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
    return Stamped(event, at, (at - _BEGAN).total_seconds())


def written(
    log_format: str,
    *events: tuple[str, Event],
    time: str | None = None,
    threshold: LogLevel = LogLevel.INFO,
) -> str:
    """The text that a log of this format writes for the events."""
    pieces: list[str] = []
    log = Log(log_format, TIME_FORMATS[time or DEFAULT_TIMES[log_format]], threshold, pieces.append)
    for clock, event in events:
        log(stamped(clock, event))
    return "".join(pieces)


Ended = TypeVar("Ended", IterationEnded, RunEnded)


def stats(*durations: float) -> Stats:
    found = Stats()
    for seconds in durations:
        found = found.add(seconds)
    return found


def stat(ended: RunEnded, name: str) -> float | None:
    """One of the statistics of a run that has ended."""
    return (ended.facts.stats or {})[name]


def timing(*durations: float) -> dict[str, float | None]:
    """What a run tells of these durations."""
    return stats(*durations).summary()


FAILURE = FailureContext(
    command="agent --flag",
    kind=FailureKind.EXIT,
    reason="exit code 1",
    duration=5.0,
    exit_code=1,
    signal=None,
    timeout=None,
    promise_signal=None,
    preview="",
    suffix="",
    truncated=False,
    suggestion="Run the command by hand",
)
TIMEOUT = structs.replace(
    FAILURE,
    kind=FailureKind.TIMEOUT,
    reason="iteration_timeout",
    exit_code=None,
    timeout=60.0,
)
CRASH = structs.replace(
    FAILURE, kind=FailureKind.CRASH, reason="killed by SIGSEGV", exit_code=139, signal="SIGSEGV"
)
BLOCKED = structs.replace(
    FAILURE,
    kind=FailureKind.SIGNAL,
    reason="the agent says that it is blocked",
    promise_signal="FAILURE",
    exit_code=0,
)


def ended(
    number: int, maximum: int | None, seconds: float, verdict: Verdict, **more: Any
) -> IterationEnded:
    """The event of an ended iteration; the facts that are not given have ordinary values."""
    facts = IterationFacts(
        number=number,
        attempt=1,
        status="completed",
        duration=seconds,
        verdict=verdict,
        truncated=False,
        despite_exit=False,
        incomplete=False,
        reason="",
        evidence="",
        agent="",
        failures_before=0,
        failures_after=0,
        same_failures=0,
        threshold=3,
        cleaned_up=(),
    )
    state = more.pop("state", None)
    usage = more.pop("usage", Usage())
    return IterationEnded(
        structs.replace(facts, **usage.session, **more), max_iterations=maximum, state=state
    )


def with_facts(event: Ended, **more: Any) -> Ended:
    """The same event with other facts, or other fields."""
    names = event.facts.__struct_fields__
    facts = {name: value for name, value in more.items() if name in names}
    others = {name: value for name, value in more.items() if name not in names}
    return structs.replace(event, facts=structs.replace(event.facts, **facts), **others)


def completed(
    number: int, maximum: int | None, seconds: float, *, truncated: bool
) -> IterationEnded:
    return ended(number, maximum, seconds, Verdict.CONTINUE, truncated=truncated)


def done(
    number: int,
    maximum: int | None,
    seconds: float,
    word: str,
    *,
    truncated: bool,
    despite_exit: bool,
) -> IterationEnded:
    more = {"signal": word, "truncated": truncated, "despite_exit": despite_exit}
    return ended(number, maximum, seconds, Verdict.COMPLETE, **more)


def failed(
    number: int,
    maximum: int | None,
    seconds: float,
    consecutive: int,
    threshold: int,
    failure: FailureContext,
) -> IterationEnded:
    more = {"failures_after": consecutive, "threshold": threshold, "failure": failure}
    return ended(number, maximum, seconds, Verdict.FAILURE, **more)


def interrupted(number: int, maximum: int | None, seconds: float) -> IterationEnded:
    return ended(number, maximum, seconds, Verdict.INTERRUPTED)


RESUMED = RunResumed(
    run="20260301-230000-abcdef",
    iteration=4,
    recorded=True,
    flags=("--verify", "make test", "--env", "TOKEN=...", "--commit"),
    given=("--max-iterations", "12"),
    replaced=("--max-iterations", "8"),
)
ENDED = RunEnded(
    RunFacts(
        status="max-iters",
        rule="max-iterations",
        exit_code=2,
        iterations=3,
        consecutive_failures=0,
        threshold=3,
        max_iterations=3,
        total=136.0,
        stats=timing(45.2, 38.7, 52.1),
    )
)
SUCCEEDED = with_facts(
    ENDED, status="success", rule="signal", exit_code=0, promise_signal="SUCCESS"
)
ABORTED = with_facts(
    ENDED,
    status="aborted",
    rule="failure-threshold",
    exit_code=1,
    consecutive_failures=3,
)
INTERRUPTED = with_facts(
    ENDED, status="interrupted", rule="interrupted", exit_code=130, signal="SIGINT"
)
WARNING = ProblemFound(
    Severity.WARNING, "Config validation failed", "mind the gap", "Step over it", "", None, ""
)
ERROR = ProblemFound(
    Severity.ERROR,
    "Config validation failed",
    "timeout must be positive, not -10",
    "Set to a positive number of seconds, or remove to disable timeout",
    "rooda-config.yml",
    12,
    "loop.iteration_timeout",
)

NAMED = process.NamedProcess(4711, "sleep 600")
COMMIT, TREE = "c0ffee" * 6 + "c0de", "decade" * 6 + "dead"
HOOK = HookEnded("pre_iteration", "make deps", 0, "", "abort", 2.5, "up to date")
VERIFIED = VerifyEnded(1, "make test", 0, "", 12.5, "3 passed")
RESULT = IterationResult(
    exit_code=1,
    stdout="much text",
    stderr="some more",
    files_modified=("src/main.c",),
    files_created=("notes.md",),
    files_deleted=("old.md",),
    test_results=TestResults(
        2, 1, 1, 0, (TestDetail("test_x", TestStatus.FAILED, 3, "assert 1 == 2"),)
    ),
    progress_detected=True,
    summary="Wrote the notes",
    duration_ms=5000,
)

USAGE = Usage(
    "opus",
    "60b344ee",
    2,
    Tokens(38349, 55, 4444, 2222, total=45070),
    0.2092,
    context_percent=2,
    messages=3,
)
WAIT = WaitStarted(
    iteration=2,
    kind=WaitKind.LIMIT,
    what="claude",
    reason="You've hit your limit · resets 3am (UTC)",
    until=datetime(2026, 3, 2, 3, 0, tzinfo=UTC),
    seconds=14400.0,
    tries=1,
    known=True,
)

# One event of each class, and more where a class has several forms.
SAMPLES: tuple[Event, ...] = (
    NotesGiven(2, ("use tabs", "and\nnot spaces")),
    NotesGiven(3, ("use tabs",), is_new=False),
    NoteTrouble(2, "a delivered note can't be deleted: Permission denied"),
    NotesWaiting(1),
    MessageNotSent("end", "json://127.0.0.1:9/...", "no answer within 20 seconds"),
    MessageNotSent("start", "discord://...", "a part of it is missing"),
    MessageNotSent("", "", "the process that sends them does not answer"),
    KeptAwake("systemd-inhibit"),
    NotKeptAwake("systemd-inhibit refuses: Access denied", is_demanded=True),
    NotKeptAwake("there is no systemd-inhibit", is_demanded=False),
    ConfigResolved("loop.ai_cmd", "agent --flag", "workspace: ./rooda-config.yml:3"),
    WARNING,
    ERROR,
    RunStarted("build", 3, "agent --flag"),
    RunStarted("build", None, "agent --flag"),
    IterationStarted("build", 1, 3),
    IterationStarted("build", 1, None),
    RunStarted("build", 9, "agent --flag", "20260301-230000-abcdef", "/srv/project", 4),
    RESUMED,
    structs.replace(RESUMED, recorded=False, flags=(), replaced=(), folder="/srv/project"),
    IterationStarted("build", 4, 9, attempt=2),
    StageEntered(1, IterationStatus.PRE_HOOKS),
    StageEntered(1, IterationStatus.EXECUTING),
    PromptAssembled(1, 1234),
    PromptFailed(2, "observe.md does not exist", "Create the file or correct the path"),
    StartFailed(2, "agent --flag", "agent: Permission denied", "Check its mode"),
    OutputTruncated(1, "stdout", 5242880, 1048576),
    SignalsScanned(1, success=True, failure=False, believed=True),
    completed(1, 3, 45.2, truncated=False),
    completed(1, None, 45.2, truncated=True),
    ExitOverridden(1, "SUCCESS", 1, None),
    ExitOverridden(1, "SUCCESS", 139, "SIGSEGV"),
    done(2, 5, 15.0, "SUCCESS", truncated=False, despite_exit=False),
    done(2, 5, 15.0, "SUCCESS", truncated=True, despite_exit=True),
    failed(1, 3, 5.0, 1, 3, FAILURE),
    failed(1, 3, 5.0, 1, 3, TIMEOUT),
    failed(1, 3, 5.0, 1, 3, CRASH),
    failed(1, 3, 5.0, 1, 3, BLOCKED),
    ended(
        *(2, 5, 5.0, Verdict.FAILURE),
        failure=structs.replace(FAILURE, kind=FailureKind.VERIFY, evidence="exit code 1"),
        cleaned_up=(NAMED,),
        status=IterationStatus.FAILED,
        kind=FailureKind.VERIFY,
        reason="verify failed: exit code 1",
        evidence="exit code 1",
        failures_before=1,
        returned_to=0,
        result=RESULT,
        state=State(2, consecutive_failures=2, stats=stats(3.0, 5.0), trees=((TREE, 0),)),
    ),
    interrupted(2, 5, 3.3),
    ended(2, 5, 0.0, Verdict.ABORT),
    ended(
        *(2, 5, 1.5, Verdict.ABORT),
        failure=structs.replace(FAILURE, kind=FailureKind.AUTH, reason="Invalid API key"),
        kind=FailureKind.AUTH,
        reason="Invalid API key",
        agent="claude",
    ),
    ended(
        *(2, 5, 1.5, Verdict.LIMITED),
        kind=FailureKind.LIMIT,
        reason="You've hit your limit",
        agent="claude",
    ),
    ended(
        *(3, 5, 5.0, Verdict.FAILURE),
        failure=structs.replace(FAILURE, kind=FailureKind.OVERLOADED, reason="529"),
        usage=USAGE,
        same_failures=3,
        incomplete=True,
    ),
    ended(1, 5, 5.0, Verdict.CONTINUE, usage=USAGE),
    IterationStarted("build", 1, 3, agent="claude", is_read=True),
    AgentSaid(1, "text", "Working on it."),
    AgentSaid(1, "tool", "Write notes.md"),
    UsageSeen(1, "opus", 45070, 0.2092),
    UsageSeen(1, None, None, None),
    AgentChanged(2, "claude", "codex", "usage limit of claude"),
    WAIT,
    structs.replace(WAIT, known=False),
    structs.replace(WAIT, capped=True),
    structs.replace(WAIT, kind=WaitKind.BACKOFF, what="startup", seconds=12.5),
    structs.replace(WAIT, kind=WaitKind.OUTAGE, capped=True, outage="offline", lasted=75.0),
    StillWaiting(2, WaitKind.LIMIT, 7200.0),
    WaitEnded(2, WaitKind.LIMIT, 14400.0),
    process.ProcessCalledOff("max_cost", "$1.20 spent, $1.00 were left (max_cost)"),
    with_facts(ENDED, tokens=123456, cost=1.25),
    SnapshotTaken(1, TREE, COMMIT, COMMIT, ("huge.bin",)),
    SnapshotTaken(0, TREE, None, None),
    FilesLeftOut(1, ("huge.bin",)),
    FilesLeftOut(1, tuple(f"huge-{number}.bin" for number in range(9))),
    ChangesUnknown(1, "git: index.lock exists"),
    ChangesUnknown(2, "git: index.lock exists", is_new=False),
    SnapshotTrouble(1, "refs/rooda was written again"),
    CommandStarted("verify", 12345, 817.5, "make test"),
    CommandOutput("stdout", b"4 passed"),
    SnapshotStarted(1),
    HOOK,
    structs.replace(HOOK, exit_code=2, error="exit code 2", output="no rule", cleaned_up=(NAMED,)),
    VERIFIED,
    structs.replace(
        VERIFIED, exit_code=None, error="timed out after 60s", output="...", cleaned_up=(NAMED,)
    ),
    structs.replace(VERIFIED, failed_tries=(FailedTry(1, "exit code 1", 2.0),), is_flaky=True),
    VerifyRetried(1, 1, 3, "make test", 1, "exit code 1", 2.0, "1 failed"),
    TestsLost(2, TestLoss(LossKind.FEWER, 41, 38, 0, 2, ("test_a",), 3, ("test_b",), 2)),
    TestsLost(2, TestLoss(LossKind.REPLACED, 41, 41, 0, 0, ("test_a",), 1)),
    DoneCheckEnded(0, "./all-done.sh", 0, "", 0.2, "all done"),
    DoneCheckEnded(2, "./all-done.sh", 1, "exit code 1", 0.2, "3 are open"),
    DoneCheckEnded(2, "./all-done.sh", 7, "exit code 7", 0.2, "no database", (NAMED,)),
    CleanCheckEnded(2, "npm ci && npm test", 0, "", 30.0, "4 passed", 12),
    CleanCheckEnded(2, "npm ci && npm test", 1, "exit code 1", 3.0, "no lock file", 12, (NAMED,)),
    BaselineEnded("make test", 0, "", 12.5, "3 passed", (NAMED,), TestResults(3, 3, 0, 0)),
    BaselineEnded("make test", 2, "exit code 2", 12.5, "1 failed"),
    BaselineEnded(
        "nope",
        127,
        "exit code 127",
        0.1,
        "sh: nope: not found",
        cannot_run=True,
        obstacle="a program or file is missing",
        ends_run=True,
        digest="0123456789abcdef",
    ),
    BranchSwitched("night", created=True, before="main"),
    BranchSwitched("night", created=False, before=None),
    Committed(1, COMMIT, "Write the notes\n\nIteration: 1"),
    CommitFailed(1, "Author identity unknown", "Tell git who you are"),
    ProtectionStarted(3, "restore"),
    ProtectionStarted(0, "fail", unmatched=("nothing.*",)),
    ProtectionStarted(2, "warn", lost=("large.bin",)),
    ProtectedChanged(1, ("a", "b"), 2, "restore", ("changed", "deleted"), committed=("a",)),
    ProtectedChanged(1, ("a",), 1, "fail", ("replaced by a link",), by="verify"),
    ProtectedChanged(1, ("a",), 1, "restore", ("changed",), failed=("a: Read-only file system",)),
    SecretsLeftOut(1, (".env",), 1),
    SecretsLeftOut(1, tuple(f"{number}.pem" for number in range(9)), 9, is_new=False),
    RepositoriesLeftOut(1, ("vendored/",), 1),
    UserFilesChanged(1, ("notes",), 1),
    UnsafeTree(
        1, Finding.CLI_SETTINGS, Action.REMOVED, (".mcp.json",), 1, ".rooda/runs/r/1/removed"
    ),
    UnsafeTree(2, Finding.HOOK, Action.REFUSED, (".husky/pre-push",), 1),
    HardLinksFound(("node_modules/a/index.js",), 2000),
    Pushed(1, "origin", "main", COMMIT),
    PushFailed(1, "rejected (fetch first)", "Pull, then push by hand"),
    PushFailed(1, "nothing was pushed: .env", "Take it out", secrets=(".env",)),
    PublishEnded(1, "./publish", 0, "", 1.5, "done", COMMIT),
    PublishEnded(1, "./publish", 3, "exit code 3", 1.5, "another has it", COMMIT),
    RecordTrouble("the record was broken; it was created again"),
    ReportFailed("/work/night.html", "Permission denied"),
    HistoryPruned(("20260201-230000-abcdef", "20260202-230000-abcdef"), 3 * 1024 * 1024),
    StopRequested(),
    TasksLeft(("Parse dates",), ("Ask the weather service",)),
    TasksLeft(("Parse dates",), (), "PLAN.md"),
    with_facts(SUCCEEDED, tasks=TaskCount(14, 20, 1)),
    StateUnwritable(1, "No space left on device"),
    EarlierRunCleared("20260301-230000-abcdef", (NAMED,), ()),
    Unlocked("/srv/project", "No locks available"),
    ListenerFailed("LiveLine", "ValueError: no"),
    ENDED,
    SUCCEEDED,
    ABORTED,
    with_facts(ABORTED, reason="agent: Permission denied", stats=timing(), iterations=0),
    INTERRUPTED,
    process.ProcessStarted(12345),
    process.Output("stdout", b"hello\n"),
    process.Tick(),
    process.ClockExpired("iteration_timeout", 60.0),
    process.ClockExpired("idle_timeout", 60.0, "nothing was printed"),
    process.InterruptSeen("SIGINT"),
    process.InterruptSeen("SIGINT", again=True),
    process.ProcessStopping(12345),
    process.ProcessKilled(12345),
    process.ProcessSurvived(12345),
    process.ProcessSurvived(12345, (NAMED,)),
    process.ProcessStopped(12345),
    process.LeftoversStopped(12345, (NAMED,)),
    process.ProcessLost(12345, "end of file", (NAMED,)),
    process.ProcessPaused(12345),
    process.ProcessResumed(12345, 61.0),
    process.MachineSlept(3600.0),
    process.TranscriptTrimmed("stdout", 5242880, 1048576),
    process.TranscriptTrimmed("stdout", 5242880, 1048576, "No space left on device"),
)

# Text from a file, a name or an agent that must not control a terminal or forge a log line.
EVIL = 'a\x1b[31mb\x1b]0;title\x07\nERROR forged="x"\r\x9b5mz\x7f\x00 \\'
_EVIL_FAILURE = structs.replace(FAILURE, command=EVIL, preview=EVIL, suffix=EVIL)
EVIL_EVENTS: tuple[Event, ...] = (
    ConfigResolved(EVIL, EVIL, EVIL),
    MessageNotSent("end", EVIL, EVIL),
    structs.replace(WARNING, message=EVIL, suggestion=EVIL, file=EVIL, field=EVIL),
    structs.replace(ERROR, message=EVIL, suggestion=EVIL, file=EVIL, field=EVIL),
    RunStarted(EVIL, 3, EVIL),
    IterationStarted(EVIL, 1, 3),
    PromptFailed(1, EVIL, EVIL),
    StateUnwritable(1, EVIL),
    EarlierRunCleared(EVIL, (process.NamedProcess(1, EVIL),), (process.NamedProcess(2, EVIL),)),
    process.LeftoversStopped(1, (process.NamedProcess(2, EVIL),)),
    process.ProcessSurvived(1, (process.NamedProcess(2, EVIL),)),
    process.ProcessLost(1, EVIL, (process.NamedProcess(2, EVIL),)),
    ListenerFailed(EVIL, EVIL),
    StartFailed(1, EVIL, EVIL, EVIL),
    failed(1, 3, 5.0, 1, 3, _EVIL_FAILURE),
    with_facts(ABORTED, reason=EVIL),
    RunStarted(EVIL, 3, EVIL, EVIL, EVIL, 2),
    RunResumed(EVIL, 2, recorded=True, flags=(EVIL,), given=(EVIL,), replaced=(EVIL,), folder=EVIL),
    RunResumed(EVIL, 2, recorded=False, flags=(), given=(EVIL,), replaced=()),
    with_facts(ABORTED, resume=EVIL),
    ended(
        *(1, 3, 5.0, Verdict.FAILURE),
        failure=structs.replace(_EVIL_FAILURE, evidence=EVIL, reason=EVIL),
        cleaned_up=(process.NamedProcess(2, EVIL),),
        reason=EVIL,
        evidence=EVIL,
        result=structs.replace(RESULT, files_created=(EVIL,), summary=EVIL),
        state=State(feedback=EVIL),
    ),
    SnapshotTaken(1, EVIL, EVIL, EVIL, (EVIL,)),
    FilesLeftOut(1, (EVIL, EVIL)),
    ChangesUnknown(1, EVIL),
    SnapshotTrouble(1, EVIL),
    CommandStarted(EVIL, 1, 1.0, EVIL),
    HookEnded(EVIL, EVIL, 1, EVIL, EVIL, 1.0, EVIL, (process.NamedProcess(2, EVIL),)),
    VerifyEnded(1, EVIL, 1, EVIL, 1.0, EVIL, (process.NamedProcess(2, EVIL),)),
    VerifyRetried(1, 1, 2, EVIL, 1, EVIL, 1.0, EVIL),
    TestsLost(1, TestLoss(LossKind.FEWER, 2, 1, 0, 1, (EVIL,), 1, (EVIL,), 1)),
    TestsLost(1, TestLoss(LossKind.OTHER_RUNNER, 2, 1, runners=EVIL, runners_now=EVIL)),
    CleanCheckEnded(1, EVIL, 1, EVIL, 1.0, EVIL, 1, (process.NamedProcess(2, EVIL),)),
    BaselineEnded(EVIL, 1, EVIL, 1.0, EVIL, (process.NamedProcess(2, EVIL),), obstacle=EVIL),
    BranchSwitched(EVIL, created=False, before=EVIL),
    Committed(1, EVIL, EVIL),
    CommitFailed(1, EVIL, EVIL),
    ProtectionStarted(1, EVIL, (EVIL,), (EVIL,)),
    ProtectedChanged(1, (EVIL,), 1, "warn", (EVIL,), EVIL, (EVIL,), (EVIL,)),
    SecretsLeftOut(1, (EVIL,), 1),
    RepositoriesLeftOut(1, (EVIL,), 1),
    UserFilesChanged(1, (EVIL,), 1),
    UnsafeTree(1, Finding.CLI_SETTINGS, Action.REMOVED, (EVIL,), 1, EVIL),
    HardLinksFound((EVIL,), 1),
    Pushed(1, EVIL, EVIL, EVIL),
    PushFailed(1, EVIL, EVIL, secrets=(EVIL,)),
    PublishEnded(1, EVIL, 1, EVIL, 1.0, EVIL, EVIL, (process.NamedProcess(2, EVIL),)),
    RecordTrouble(EVIL),
    ReportFailed(EVIL, EVIL),
    HistoryPruned((EVIL,)),
    IterationStarted(EVIL, 1, 3, agent=EVIL),
    ended(1, 3, 1.0, Verdict.LIMITED, kind=FailureKind.LIMIT, reason=EVIL, agent=EVIL),
    ended(1, 3, 1.0, Verdict.CONTINUE, usage=structs.replace(USAGE, model=EVIL)),
    AgentSaid(1, EVIL, EVIL),
    UsageSeen(1, EVIL, 1, 1.0),
    AgentChanged(1, EVIL, EVIL, EVIL),
    structs.replace(WAIT, what=EVIL, reason=EVIL),
    process.ProcessCalledOff(EVIL, EVIL),
)
