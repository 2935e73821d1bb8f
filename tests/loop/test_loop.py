"""The loop with a scripted agent and a scripted clock, without a process."""

import dataclasses
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from rooda.base.event import Event
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
from rooda.loop.events.run import RunEnded, RunStarted
from rooda.loop.failure import FailureContext
from rooda.loop.loop import run_loop
from rooda.loop.state import Status
from rooda.plan.prompts.parts import FilePart, Part, TextPart
from rooda.plan.settings.settings import (
    FAILURE_THRESHOLD,
    IGNORE_EXIT_STATUS,
    ITERATION_MODE,
    ITERATION_TIMEOUT,
    KILL_GRACE,
    MAX_ITERATIONS,
    MAX_ITERS_EXIT_CODE,
    MAX_OUTPUT_BUFFER,
    SIGNALS_FAILURE,
    SIGNALS_MATCH,
    SIGNALS_STREAMS,
    SIGNALS_SUCCESS,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process.capture.buffers import Captured
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import InterruptSeen, Output, ProcessStarted
from rooda.world.process.exits import Exit, Exited, Interrupted, NotStarted, Signalled, TimedOut
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult
from support.builders import Settings, built_plan, built_services
from support.happenings import stat
from support.states import state_of

SUCCESS, FAILURE = b"<promise>SUCCESS</promise>\n", b"<promise>FAILURE</promise>\n"
OK = Exited(0)
E = TypeVar("E", bound=Event)


@dataclasses.dataclass
class Agent:
    """One scripted execution of the agent."""

    end: Exit = OK
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 1.0
    dropped: int = 0  # bytes of standard output that were printed and not kept
    meanwhile: Callable[[], None] = lambda: None


GOOD, BAD = Agent(), Agent(Exited(1))
SAYS_SUCCESS, SAYS_FAILURE = Agent(stdout=SUCCESS), Agent(stdout=FAILURE)
NO_START = Agent(NotStarted("agent: Permission denied"), seconds=0.0)


class Scenario:
    """Runs the scripted agents one after the other, and records the events."""

    def __init__(self, folder: Path, interrupts: Interrupts) -> None:
        self.folder = folder
        self.now = 100.0
        self.events_seen: list[Event] = []
        self.requests: list[ProcessRequest] = []
        self.prompts: list[bytes] = []
        self.interrupts = interrupts
        self._agents: list[Agent] = []

    def run(
        self,
        *agents: Agent,
        maximum: int | None = 5,
        phases: dict[str, tuple[Part, ...]] | None = None,
        settings: Settings | None = None,
    ) -> RunEnded:
        """Run until a stop rule applies; the last agent is used for all further iterations."""
        self._agents = list(agents)
        limit: Settings = {ITERATION_MODE: "unlimited"}
        if maximum is not None:
            limit = {MAX_ITERATIONS: maximum}
        chosen = {**limit, **(settings or {})}
        plan = built_plan(self.folder, chosen, phases=phases, environ={"A": "b"})
        services = built_services(
            self.events_seen.append, self.interrupts, self._execute, monotonic=lambda: self.now
        )
        return run_loop(plan, services)

    def _execute(
        self, request: ProcessRequest, interrupts: Interrupts, listener: Listener
    ) -> ProcessResult:
        assert interrupts is self.interrupts
        self.requests.append(request)
        self.prompts.append(request.stdin.read())
        agent = self._agents.pop(0) if len(self._agents) > 1 else self._agents[0]
        nothing = Captured(b"", b"", 0)
        if isinstance(agent.end, NotStarted):
            return ProcessResult(agent.end, nothing, nothing, 0.0)
        listener(ProcessStarted(4711))
        if agent.stdout:
            listener(Output("stdout", agent.stdout))
        agent.meanwhile()
        self.now += agent.seconds
        out, err = agent.stdout, agent.stderr
        return ProcessResult(
            agent.end,
            Captured(out[:4096], out, len(out) + agent.dropped),
            Captured(err[:4096], err, len(err)),
            agent.seconds,
        )

    def names(self) -> list[str]:
        """The names of the loop's events, without the frequent ones."""
        frequent = (PromptAssembled, StageEntered, SignalsScanned)
        ignored = (*frequent, ProcessStarted, Output)
        return [_name(event) for event in self.events_seen if not isinstance(event, ignored)]

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events_seen if isinstance(event, kind)]

    def failure(self) -> FailureContext:
        found = self.only(IterationEnded).facts.failure
        assert found is not None
        return found

    def only(self, kind: type[E]) -> E:
        (event,) = self.all(kind)
        return event


def _name(event: Event) -> str:
    if isinstance(event, IterationEnded):
        return f"ended: {event.verdict}"
    return type(event).__name__


@pytest.fixture(scope="module")
def signals() -> Interrupts:
    return Interrupts()


@pytest.fixture
def scenario(tmp_path: Path, signals: Interrupts) -> Iterator[Scenario]:
    yield Scenario(tmp_path, signals)
    signals.received.clear()
    signals.acknowledged = 0


# -- the order of events -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent,settings,expected",
    [
        (GOOD, {}, ["ended: success"]),
        (SAYS_SUCCESS, {}, ["ended: done"]),
        (
            Agent(Exited(1), SUCCESS),
            {},
            ["ExitOverridden", "ended: done"],
        ),
        (BAD, {}, ["ended: failure"]),
        (SAYS_FAILURE, {}, ["ended: failure"]),
        (Agent(Signalled(signal.SIGSEGV)), {}, ["ended: failure"]),
        (Agent(TimedOut("iteration_timeout", 60.0)), {}, ["ended: failure"]),
        (Agent(Interrupted(signal.SIGINT)), {}, ["ended: interrupted"]),
        (NO_START, {}, ["StartFailed", "ended: abort"]),
        (Agent(stdout=b"x", dropped=9), {}, ["OutputTruncated", "ended: success"]),
        (BAD, {IGNORE_EXIT_STATUS: True}, ["ended: success"]),
    ],
    ids=[
        "good",
        "SUCCESS",
        "SUCCESS with exit 1",
        "exit 1",
        "FAILURE",
        "crash",
        "timeout",
        "interrupted",
        "not started",
        "truncated",
        "exit status ignored",
    ],
)
def test_events_of_each_kind_of_iteration(
    scenario: Scenario, agent: Agent, settings: Settings, expected: list[str]
) -> None:
    if isinstance(agent.end, Interrupted):
        agent = dataclasses.replace(
            agent, meanwhile=lambda: scenario.interrupts.received.append(signal.SIGINT)
        )
    scenario.run(agent, maximum=1, settings=settings)
    assert scenario.names() == ["RunStarted", "IterationStarted", *expected, "RunEnded"]


def test_all_events_of_a_good_iteration(scenario: Scenario) -> None:
    scenario.run(Agent(stdout=b"hello"), maximum=1)
    assert [type(event) for event in scenario.events_seen] == [
        RunStarted,
        IterationStarted,
        PromptAssembled,
        StageEntered,
        ProcessStarted,
        Output,
        SignalsScanned,
        IterationEnded,
        RunEnded,
    ]


def test_run_and_iteration_started_events(scenario: Scenario) -> None:
    scenario.run(GOOD, maximum=2)
    assert scenario.events_seen[0] == RunStarted(
        "work", 2, "agent --flag", workspace=str(scenario.folder)
    )
    assert scenario.all(IterationStarted) == [
        IterationStarted("work", 1, 2, spec="none", agent="agent", adapter="text"),
        IterationStarted("work", 2, 2, spec="none", agent="agent", adapter="text"),
    ]


def test_request_has_the_settings_of_the_plan(scenario: Scenario) -> None:
    scenario.run(
        GOOD,
        maximum=1,
        settings={ITERATION_TIMEOUT: 60.0, KILL_GRACE: 2.0, MAX_OUTPUT_BUFFER: 2048},
    )
    (request,) = scenario.requests
    assert (request.argv, request.cwd, request.environ) == (
        ("agent", "--flag"),
        scenario.folder,
        {"A": "b"},
    )
    assert (request.kill_grace, request.output_limit) == (2.0, 2048)
    assert request.clocks == (
        Clock("iteration_timeout", 60.0, Since.START, 60.0),
        Clock("result_grace", 30.0, Since.RESULT, 30.0),
    )


# -- end of the run ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agents,maximum,status,code,iterations",
    [
        ([GOOD], 1, Status.MAX_ITERS, 2, 1),
        ([GOOD], 5, Status.MAX_ITERS, 2, 5),
        ([SAYS_SUCCESS], 5, Status.SUCCESS, 0, 1),
        ([GOOD, GOOD, SAYS_SUCCESS], None, Status.SUCCESS, 0, 3),
        ([BAD], 10, Status.ABORTED, 1, 3),
        ([BAD], 3, Status.ABORTED, 1, 3),
        ([BAD], 2, Status.MAX_ITERS, 2, 2),
        ([BAD, BAD, GOOD, BAD, BAD, SAYS_SUCCESS], None, Status.SUCCESS, 0, 6),
        ([GOOD, GOOD, GOOD, BAD], 10, Status.ABORTED, 1, 6),
        ([BAD, SAYS_FAILURE, Agent(TimedOut("iteration_timeout", 1.0))], 9, Status.ABORTED, 1, 3),
        ([NO_START], 5, Status.ABORTED, 1, 0),
        ([GOOD, NO_START], 5, Status.ABORTED, 1, 1),
        ([Agent(TimedOut("iteration_timeout", 1.0), SUCCESS)], 5, Status.ABORTED, 1, 3),
        ([Agent(stdout=SUCCESS + FAILURE)], 5, Status.ABORTED, 1, 3),
        ([Agent(stdout=SUCCESS, stderr=FAILURE)], 5, Status.ABORTED, 1, 3),
        ([Agent(Signalled(signal.SIGKILL), SUCCESS)], 5, Status.SUCCESS, 0, 1),
        ([Agent(stderr=SUCCESS)], 5, Status.SUCCESS, 0, 1),
    ],
)
def test_status_code_and_count(
    scenario: Scenario,
    agents: list[Agent],
    maximum: int | None,
    status: Status,
    code: int,
    iterations: int,
) -> None:
    ended = scenario.run(*agents, maximum=maximum)
    assert (ended.status, ended.facts.exit_code, ended.facts.iterations) == (
        status,
        code,
        iterations,
    )
    assert scenario.events_seen[-1] is ended


def test_unlimited_run_continues_until_success(scenario: Scenario) -> None:
    ended = scenario.run(*[GOOD] * 200, SAYS_SUCCESS, maximum=None)
    assert (ended.status, ended.facts.iterations, stat(ended, "count")) == (
        Status.SUCCESS,
        201,
        201,
    )


def test_success_with_a_timeout_is_a_failure_and_the_ignored_signal_is_reported(
    scenario: Scenario,
) -> None:
    scenario.run(Agent(TimedOut("iteration_timeout", 60.0), SUCCESS), maximum=1)
    assert scenario.only(SignalsScanned) == SignalsScanned(
        1, success=True, failure=False, believed=False
    )
    assert scenario.failure().kind is FailureKind.TIMEOUT


@pytest.mark.parametrize(
    "end,code,name",
    [(Exited(7), 7, None), (Signalled(signal.SIGSEGV), 139, "SIGSEGV")],
    ids=["exit", "crash"],
)
def test_success_with_a_bad_exit_is_reported(
    scenario: Scenario, end: Exit, code: int, name: str | None
) -> None:
    scenario.run(Agent(end, SUCCESS))
    assert scenario.only(ExitOverridden) == ExitOverridden(1, "SUCCESS", code, name)
    assert scenario.only(IterationEnded).facts.despite_exit


def test_failure_events_have_the_counts(scenario: Scenario) -> None:
    scenario.run(BAD, BAD, GOOD, BAD, maximum=4)
    facts = [event.facts for event in scenario.all(IterationEnded)]
    failed = [(one.number, one.failures_after, one.threshold) for one in facts if one.failure]
    assert failed == [
        (1, 1, 3),
        (2, 2, 3),
        (4, 1, 3),
    ]


def test_failure_has_its_context(scenario: Scenario) -> None:
    scenario.run(Agent(Exited(7), b"said\n", b"complained\n", seconds=2.5), maximum=1)
    failure = scenario.failure()
    assert (failure.command, failure.exit_code, failure.duration) == ("agent --flag", 7, 2.5)
    assert failure.preview == "said\ncomplained"
    assert failure.suggestion


def test_failed_start_of_the_agent_aborts_at_once(scenario: Scenario) -> None:
    ended = scenario.run(GOOD, NO_START, settings={FAILURE_THRESHOLD: 10})
    assert (ended.status, ended.rule) == (Status.ABORTED, "not-started")
    assert ended.reason == "agent: Permission denied"
    start = scenario.only(StartFailed)
    assert (start.iteration, start.command, start.error) == (
        2,
        "agent --flag",
        "agent: Permission denied",
    )


def test_configured_words_streams_and_exit_code_are_used(scenario: Scenario) -> None:
    policy: Settings = {
        SIGNALS_SUCCESS: "COMPLETE",
        SIGNALS_FAILURE: None,
        SIGNALS_STREAMS: "stdout",
        MAX_ITERS_EXIT_CODE: 0,
    }
    complete = b"<promise>COMPLETE</promise>\n"
    ended = scenario.run(
        Agent(stderr=complete), Agent(stdout=SUCCESS + FAILURE), maximum=2, settings=policy
    )
    assert (ended.status, ended.facts.exit_code) == (Status.MAX_ITERS, 0)
    ended = scenario.run(Agent(stdout=complete), maximum=2, settings=policy)
    assert (ended.status, ended.promise_signal) == (Status.SUCCESS, "COMPLETE")


def test_without_words_there_is_no_signal(scenario: Scenario) -> None:
    ended = scenario.run(
        Agent(stdout=SUCCESS + FAILURE),
        maximum=2,
        settings={SIGNALS_SUCCESS: None, SIGNALS_FAILURE: None},
    )
    assert ended.status is Status.MAX_ITERS


def test_last_line_mode(scenario: Scenario) -> None:
    ended = scenario.run(
        Agent(stdout=SUCCESS + b"and more\n"),
        Agent(stdout=b"more\n" + SUCCESS),
        settings={SIGNALS_MATCH: "last-line"},
    )
    assert (ended.status, ended.facts.iterations) == (Status.SUCCESS, 2)


def test_tag_split_over_both_streams_is_no_signal(scenario: Scenario) -> None:
    ended = scenario.run(Agent(stdout=b"<promise>SUC", stderr=b"CESS</promise>"), maximum=1)
    assert ended.status is Status.MAX_ITERS


# -- the prompt --------------------------------------------------------------------------------


def phases(observe: Part) -> dict[str, tuple[Part, ...]]:
    text = Part(TextPart("say <promise>SUCCESS</promise> when done"))
    return {"observe": (observe,), "orient": (text,), "decide": (text,), "act": (text,)}


def test_prompt_is_read_again_for_every_iteration(scenario: Scenario) -> None:
    file = scenario.folder / "observe.md"
    file.write_text("before")
    scenario.run(
        Agent(meanwhile=lambda: (file.write_text("after"), None)[1]),
        GOOD,
        maximum=2,
        phases=phases(Part(FilePart(file, "observe.md"))),
    )
    first, second = scenario.prompts
    assert b"before" in first
    assert b"after" in second
    assert [event.size for event in scenario.all(PromptAssembled)] == [
        len(first),
        len(second),
    ]


def test_failed_prompt_assembly_aborts_at_once(scenario: Scenario) -> None:
    file = scenario.folder / "observe.md"
    file.write_text("look")
    ended = scenario.run(
        Agent(meanwhile=file.unlink),
        phases=phases(Part(FilePart(file, "observe.md"))),
        settings={FAILURE_THRESHOLD: 10},
    )
    assert (ended.status, ended.facts.exit_code, ended.facts.iterations) == (Status.ABORTED, 1, 1)
    assert "observe.md does not exist" in ended.reason
    failed = scenario.only(PromptFailed)
    assert (failed.iteration, failed.error) == (2, "observe.md does not exist")
    assert failed.suggestion
    assert len(scenario.requests) == 1


def test_echo_of_the_prompt_is_no_signal(scenario: Scenario) -> None:
    echo = Agent(stdout=b"say <promise>SUCCESS</promise> when done\n")
    ended = scenario.run(echo, maximum=1, phases=phases(Part(TextPart("look"))))
    assert ended.status is Status.MAX_ITERS


def test_agent_gets_the_prompt_without_a_state_folder(scenario: Scenario) -> None:
    place = state_of(scenario.folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("a file where the folder should be")
    scenario.run(GOOD, maximum=1)
    (prompt,) = scenario.prompts
    assert prompt.startswith(b"# OODA Loop Iteration")


def test_truncation_is_reported_per_stream(scenario: Scenario) -> None:
    scenario.run(
        Agent(stdout=b"x" * 2048, dropped=1000), maximum=1, settings={MAX_OUTPUT_BUFFER: 2048}
    )
    assert scenario.only(OutputTruncated) == OutputTruncated(1, "stdout", 3048, 2048)
    assert scenario.only(IterationEnded).facts.truncated


# -- interrupts --------------------------------------------------------------------------------


def test_interrupt_ends_the_run(scenario: Scenario) -> None:
    def ctrl_c() -> None:
        scenario.interrupts.received.append(signal.SIGINT)

    ended = scenario.run(
        Agent(seconds=2.0),
        Agent(Interrupted(signal.SIGINT), SUCCESS, seconds=3.0, meanwhile=ctrl_c),
    )
    assert (ended.status, ended.facts.exit_code, ended.facts.signal) == (
        Status.INTERRUPTED,
        130,
        "SIGINT",
    )
    assert ended.facts.iterations == 1, "the interrupted iteration does not count"
    assert (
        stat(ended, "count"),
        stat(ended, "maximum"),
        ended.facts.total,
    ) == (
        2,
        3.0,
        5.0,
    ), "but its time does"
    assert scenario.all(IterationEnded)[-1].facts.number == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_between_iterations_is_reported_and_ends_the_run(
    scenario: Scenario, number: signal.Signals
) -> None:
    ended = scenario.run(Agent(meanwhile=lambda: scenario.interrupts.received.append(number)))
    assert (ended.status, ended.facts.exit_code, ended.facts.iterations) == (
        Status.INTERRUPTED,
        130,
        1,
    )
    assert ended.facts.signal == number.name
    assert scenario.only(InterruptSeen) == InterruptSeen(number.name)
    assert scenario.names()[-3:] == ["ended: success", "InterruptSeen", "RunEnded"]


def test_signal_before_the_first_iteration_starts_no_agent(scenario: Scenario) -> None:
    scenario.interrupts.received.append(signal.SIGINT)
    ended = scenario.run(GOOD)
    assert (ended.status, ended.facts.iterations, stat(ended, "count")) == (
        Status.INTERRUPTED,
        0,
        0,
    )
    assert scenario.requests == []


# -- statistics --------------------------------------------------------------------------------


def test_durations_totals_and_statistics(scenario: Scenario) -> None:
    ended = scenario.run(*(Agent(seconds=seconds) for seconds in (45.2, 38.7, 52.1)), maximum=3)
    durations = [event.facts.duration for event in scenario.all(IterationEnded)]
    assert durations == pytest.approx([45.2, 38.7, 52.1])
    assert ended.facts.total == pytest.approx(136.0)
    assert stat(ended, "count") == 3
    assert stat(ended, "stddev") == pytest.approx(5.47, abs=0.01)


def test_statistics_include_failed_and_timed_out_iterations(scenario: Scenario) -> None:
    ended = scenario.run(
        Agent(Exited(1), seconds=1.0),
        Agent(TimedOut("iteration_timeout", 9.0), seconds=9.0),
        Agent(stdout=SUCCESS, seconds=5.0),
    )
    assert (
        stat(ended, "count"),
        stat(ended, "minimum"),
        stat(ended, "maximum"),
    ) == (
        3,
        1.0,
        9.0,
    )


def test_prompt_file_is_closed_after_its_iteration(scenario: Scenario) -> None:
    scenario.run(GOOD, maximum=3)
    assert all(request.stdin.closed for request in scenario.requests)
