"""A whole night in fast motion: fake agents misbehave, and only the waits move the clock."""

import json
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rooda.base.event import Event
from rooda.loop.events.agent import AgentChanged, WaitStarted
from rooda.loop.events.emitter import Emitter, Listener, Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.events.run import RunEnded
from rooda.loop.loop import run_loop
from rooda.plan.plan import Plan
from rooda.plan.prepare import RunRequest, prepare
from rooda.plan.world import World
from rooda.run import resume as resuming
from rooda.run.services.recording import Recording
from rooda.world.git.pin import Pin
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.runner import Runner
from rooda.world.state.folder import make_state_folder
from support.builders import built_services
from support.happenings import stat
from support.recorded import git, within
from support.states import own_state_home, state_of
from support.workspace import PROCEDURE, Workspace

pytestmark = pytest.mark.real

EVENING = datetime(2026, 11, 15, 23, 0, tzinfo=UTC)


def event(**fields: Any) -> str:
    return json.dumps(fields)


def result(words: str, **fields: Any) -> str:
    """Return the last event of claude."""
    usual = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1}
    return event(**(usual | {"result": words, "session_id": "s1"} | fields))


def failed(words: str, status: int) -> str:
    return result(words, is_error=True, api_error_status=status, total_cost_usd=0)


INIT = event(type="system", subtype="init", model="opus", session_id="s1")
LIMIT = "You've hit your limit · resets 3:30am (UTC)"
USAGE = {"input_tokens": 100, "output_tokens": 20}
GOOD = result("One task done.", total_cost_usd=0.5, usage=USAGE)
DONE = result("All done.\n\n<promise>SUCCESS</promise>", total_cost_usd=0.25, usage=USAGE)


@dataclass
class Night:
    """A workspace with a scripted `claude`, and a simulated clock."""

    workspace: Workspace
    now: datetime = EVENING
    happened: list[Event] = field(default_factory=list)
    interrupts: Interrupts = field(default_factory=Interrupts)
    listeners: list[Listener] = field(default_factory=list)
    rest: Callable[[float], None] | None = None  # replaces the default, which only moves the clock
    asleep: timedelta = timedelta()  # how long the machine slept; only the wall clock includes it

    def script(self, name: str, *acts: str) -> None:
        """Install a program that plays one act at each start, and then repeats the last one."""
        folder = self.workspace.path / "bin"
        count = folder / f"{name}.count"
        cases = "\n".join(f"{n}) {act};;" for n, act in enumerate(acts[:-1], 1))
        self.workspace.write(
            f"bin/{name}",
            f'#!/bin/sh\necho x >> "{count}"; n=$(wc -l < "{count}"); n=$((n))\n'
            f"case $n in\n{cases}\n*) {acts[-1]};;\nesac\n",
        ).chmod(0o755)

    def plan(self, folder: Path | None = None, /, **flags: str) -> Plan:
        """Return the plan of a run that starts in the folder; without one, in the workspace."""
        self.workspace.config(PROCEDURE)
        path = f"{self.workspace.path / 'bin'}:{os.environ['PATH']}"
        environ = {"PATH": path, "HOME": str(self.workspace.home), **own_state_home()}
        given = {"ai_cmd_alias": "claude"} | flags
        request = RunRequest("work", {key: (f"--{key}", text) for key, text in given.items()})
        prepared = prepare(request, World(folder or self.workspace.path, environ))
        assert prepared.valid, prepared.all_problems()
        assert prepared.plan is not None
        return prepared.plan

    def run(
        self, plan: Plan, name: str = "20261115-230000-abcdef", *, resume: bool = False
    ) -> RunEnded:
        """Run the plan with a real record and real child processes; only the clock is simulated."""
        make_state_folder(state_of(plan.workspace))
        with ExitStack() as closing:
            recording = Recording.open(plan, is_alone=True)
            closing.callback(recording.close)
            resumed = resuming.resume(plan, "") if resume else None
            runner = closing.enter_context(Runner(name))
            listeners = [self._note, *self.listeners]
            emitter = Emitter(listeners, now=lambda: self.now, monotonic=self._seconds)
            closing.callback(recording.listen(emitter, name, resumed))
            pin = Pin.of(plan.working_dir, plan.tools)
            if pin is not None:
                closing.callback(pin.close)
            edge = built_services(
                emitter,
                self.interrupts,
                runner.run,
                monotonic=self._seconds,
                run=name,
                tracker=recording.tracker(name),
                history=recording.history(resumed),
                now=lambda: self.now,
                tools=plan.tools,
                pin=pin,
                rest=self.rest or self._advance,
                chance=lambda: 1.0,
            )
            ended = run_loop(plan, edge, resumed.state if resumed else None)
            assert emitter.failures == []
            return ended

    def waits(self) -> list[tuple[str, str, float]]:
        return [
            (str(one.kind), one.what, one.seconds)
            for one in self.happened
            if isinstance(one, WaitStarted)
        ]

    def output_of(self, *args: str) -> str:
        """Return what `rooda ARGS` prints."""
        done = self.workspace.rooda(*args)
        assert done.code == 0, done.err
        return done.out

    def show(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.output_of("show", "--json"))
        return shown

    def _note(self, stamped: Stamped) -> None:
        self.happened.append(stamped.event)

    def _seconds(self) -> float:
        return (self.now - EVENING - self.asleep).total_seconds()

    def _advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def prints(*lines: str, code: int = 0) -> str:
    """Return a shell command that prints the lines and exits."""
    quoted = " ".join("'" + line.replace("'", "'\\''") + "'" for line in lines)
    return f"printf '%s\\n' {quoted}; exit {code}"


@pytest.fixture
def night(workspace: Workspace) -> Night:
    return Night(workspace)


def test_run_survives_a_night_of_failures_and_explains_each_stop(night: Night) -> None:
    night.script(
        "claude",
        prints(INIT, failed(LIMIT, 429), code=1),
        prints(INIT, failed("API Error: 529 Overloaded.", 529), code=1),
        prints(INIT, GOOD),
        "exec sleep 600",
        "kill -SEGV $$",
        prints(INIT, failed("OAuth token has expired · Please run /login", 401), code=1),
        prints(INIT, GOOD),
        prints(INIT, DONE),
    )
    plan = night.plan(iteration_timeout="1", default_max_iterations="9")
    ended = night.run(plan)

    # 1: limit until half past three, then overloaded, then good; 2: hung; 3: crashed; 4: no login.
    assert (ended.status, ended.rule, ended.facts.exit_code) == ("aborted", "auth", 1)
    assert night.waits() == [
        ("limit", "claude", 4.5 * 3600 + 5),
        ("outage", "claude", 10.0),
        ("backoff", "crash", 10.0),
    ]
    kinds = [(one["number"], one["kind"], one["status"]) for one in night.show()["iterations"]]
    assert kinds == [
        (1, None, "completed"),
        (2, "timeout", "timed_out"),
        (3, "crash", "failed"),
        (4, "auth", "failed"),
    ]
    first = night.show()["iterations"][0]
    assert [(one["kind"], one["status"]) for one in first["earlier_attempts"]] == [
        ("limit", "interrupted"),
        ("overloaded", "interrupted"),
    ]

    why = night.output_of("why")
    assert "Rule: auth." in why
    assert "OAuth token has expired" in why
    assert "Try: Run `claude /login`" in why
    assert "Waited: for the usage limit of claude" in why
    assert LIMIT in why
    assert "529 Overloaded" in night.output_of("why", "1")
    assert "limit: You've hit your limit" in night.output_of("why", "1")
    assert "a time limit ran out" in night.output_of("why", "2")
    assert "killed by SIGSEGV" in night.output_of("why", "3")

    # In the morning the user logs in, and resumes the run to its end.
    ended = night.run(plan, resume=True)
    assert (ended.status, ended.facts.exit_code, ended.facts.iterations) == ("success", 0, 6)
    assert ended.facts.cost == pytest.approx(0.5 + 0.5 + 0.25)
    assert "the work is done" in night.output_of("why")
    run = night.show()
    assert (run["cost"], run["tokens"]) == (pytest.approx(1.25), 360)
    assert run["iterations"][-1]["model"] == "opus"


def test_limit_counts_neither_as_failure_nor_as_iteration(night: Night) -> None:
    limited = prints(INIT, failed(LIMIT, 429), code=1)
    night.script("claude", limited, prints(INIT, DONE))
    ended = night.run(night.plan(default_max_iterations="1", failure_threshold="1"))
    assert (ended.status, ended.facts.iterations, stat(ended, "count")) == (
        "success",
        1,
        1,
    )
    assert night.now >= datetime(2026, 11, 16, 3, 30, tzinfo=UTC)


def test_limit_without_reset_time_is_waited_for_longer_each_time(night: Night) -> None:
    limited = prints(INIT, failed("API Error: RunRequest rejected (429)", 429), code=1)
    night.script("claude", limited, limited, limited, prints(INIT, DONE))
    ended = night.run(night.plan(limit_wait="60"))
    assert ended.status == "success"
    assert [seconds for _, _, seconds in night.waits()] == [60.0, 120.0, 240.0]


def test_run_waits_at_most_max_limit_wait_and_then_tries_once_more(night: Night) -> None:
    limited = prints(INIT, failed(LIMIT, 429), code=1)
    night.script("claude", limited)
    ended = night.run(night.plan(max_limit_wait="1h"))
    assert (ended.status, ended.rule, ended.facts.exit_code) == ("aborted", "limit", 1)
    assert [seconds for _, _, seconds in night.waits()] == [3600.0]
    assert "max_limit_wait" in ended.reason
    assert "max_limit_wait" in night.output_of("why")


def test_run_without_wait_for_limits_aborts_at_once(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1))
    ended = night.run(night.plan(wait_for_limits="false"))
    assert (ended.status, ended.rule, night.waits()) == ("aborted", "limit", [])
    assert LIMIT in ended.reason
    assert night.now == EVENING


def test_resumed_run_remembers_the_limit(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1), prints(INIT, DONE))
    plan = night.plan()

    night.rest = lambda _: night.interrupts.received.append(signal.SIGINT)
    assert night.run(plan).status == "interrupted"
    night.rest, night.interrupts = None, Interrupts()
    ended = night.run(plan, resume=True)
    assert ended.status == "success"
    assert night.now >= datetime(2026, 11, 16, 3, 30, tzinfo=UTC)


def test_limit_belongs_to_its_agent_and_not_to_another_agent_of_the_resumed_run(
    night: Night,
) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1))
    night.script("helper", "echo '<promise>SUCCESS</promise>'")
    night.rest = lambda _: night.interrupts.received.append(signal.SIGINT)
    assert night.run(night.plan()).status == "interrupted"
    night.rest, night.interrupts = None, Interrupts()
    waits = night.waits()
    ended = night.run(night.plan(ai_cmd="helper"), resume=True)
    assert (ended.status, night.waits()) == ("success", waits)


def test_resumed_run_without_wait_for_limits_aborts_at_once(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1))
    night.rest = lambda _: night.interrupts.received.append(signal.SIGINT)
    assert night.run(night.plan()).status == "interrupted"
    night.rest, night.interrupts = None, Interrupts()
    ended = night.run(night.plan(wait_for_limits="false"), resume=True)
    assert (ended.rule, len(night.waits())) == ("limit", 1)
    assert LIMIT in ended.reason


def test_fallback_that_cannot_be_started_does_not_end_the_run(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1), prints(INIT, DONE))
    night.workspace.write("bin/gone", "#!/no/such/interpreter\n").chmod(0o755)
    ended = night.run(night.plan(ai_cmd_fallbacks="gone"))
    assert (ended.status, ended.facts.iterations) == ("success", 1)
    assert night.waits() == [("limit", "claude", 4.5 * 3600 + 5)]


def test_interrupted_wait_is_shown_with_the_time_that_was_waited(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1))
    night.rest = lambda _: night.interrupts.received.append(signal.SIGINT)
    night.run(night.plan())
    (wait,) = night.show()["waits"]
    assert (wait["waited"], wait["seconds"]) == (0.0, 4.5 * 3600 + 5)
    assert "0.0s of 4h30m05s" in night.output_of("why")


@pytest.mark.long
def test_fallback_takes_over_and_the_first_agent_comes_back(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1), prints(INIT, DONE))
    night.script("helper", "sleep 0.01")
    plan = night.plan(ai_cmd_fallbacks="helper", default_max_iterations="9")
    agents: list[str | None] = []

    def takes_two_hours(stamped: Stamped) -> None:
        if isinstance(stamped.event, IterationEnded):
            agents.append(stamped.event.facts.agent)
            if stamped.event.facts.agent == "helper":
                night.now += timedelta(hours=2)

    night.listeners.append(takes_two_hours)
    ended = night.run(plan)
    assert ended.status == "success"
    assert agents == ["claude", "helper", "helper", "helper", "claude"]
    assert night.waits() == []
    changes = [(e.before, e.agent) for e in night.happened if isinstance(e, AgentChanged)]
    assert changes == [("claude", "helper"), ("helper", "claude")]
    assert [one["agent"] for one in night.show()["iterations"]] == [
        "helper",
        "helper",
        "helper",
        "claude",
    ]


def test_if_all_agents_have_a_limit_the_run_waits_for_the_first_that_is_free(night: Night) -> None:
    soon = "You've hit your limit · resets 1am (UTC)"
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1), prints(INIT, DONE))
    night.script(
        "codex",
        prints(event(type="turn.failed", error={"message": f"{soon} (429)"}), code=1),
        prints(
            event(type="item.completed", item={"type": "agent_message", "text": "I go on"}),
            event(type="turn.completed", usage={"input_tokens": 7, "output_tokens": 1}),
        ),
    )
    plan = night.plan(ai_cmd_fallbacks="codex", default_max_iterations="2")
    night.run(plan)
    assert night.waits()[0] == ("limit", "codex", 2 * 3600 + 5)
    assert [one["agent"] for one in night.show()["iterations"]] == ["codex", "codex"]


def test_fallback_that_is_not_logged_in_does_not_end_the_run(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1), prints(INIT, DONE))
    night.script(
        "codex",
        prints(event(type="turn.failed", error={"message": "401 Unauthorized"}), code=1),
    )
    ended = night.run(night.plan(ai_cmd_fallbacks="codex"))
    assert (ended.status, ended.facts.iterations) == ("success", 1)
    assert night.waits() == [("limit", "claude", 4.5 * 3600 + 5)]
    assert "auth: 401 Unauthorized" in night.output_of("why", "1")


def test_backoff_grows_up_to_its_cap_and_ends_at_the_threshold(night: Night) -> None:
    night.script("claude", "echo 'no such thing' >&2; exit 1")  # fails before its first event
    ended = night.run(
        night.plan(failure_threshold="5", default_max_iterations="9", max_backoff="35")
    )
    assert (ended.status, ended.rule) == ("aborted", "failure-threshold")
    assert [seconds for _, _, seconds in night.waits()] == [10.0, 30.0, 35.0, 35.0]
    tries = [one.tries for one in night.happened if isinstance(one, WaitStarted)]
    assert tries == [1, 2, 3, 4]
    assert "The same failure 5 times in a row" in night.output_of("why", "5")


def test_fast_failures_of_a_known_cli_wait_and_count_toward_the_threshold(night: Night) -> None:
    refused = prints(INIT, failed("API Error: 400 Bad request", 400), code=1)
    night.script("claude", refused, refused, prints(INIT, GOOD), refused, refused, refused)
    ended = night.run(night.plan(default_max_iterations="30", max_duration="8h"))
    assert (ended.rule, ended.facts.iterations) == ("failure-threshold", 6)
    first, second = ("backoff", "exit", 10.0), ("backoff", "exit", 30.0)
    assert night.waits() == [first, second, first, second]
    waited = (
        "Waited: before the next try (exit), 4 waits of 1m20s, the last 30.0s of 30.0s: it reports"
    )
    assert waited in night.output_of("why")
    assert night.show()["iterations"][0]["kind"] == "exit"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "command,settings,waits",
    [
        ("bin/helper", {}, []),
        ("bin/helper", {"backoff": "20"}, [20.0, 60.0]),
        ("bin/helper", {"backoff": "0"}, []),
        ("claude -p", {}, [10.0, 30.0]),
        ("claude -p", {"backoff": "0"}, []),
    ],
)
def test_other_commands_wait_only_if_backoff_is_set(
    night: Night, command: str, settings: dict[str, str], waits: list[float]
) -> None:
    night.script("claude", "exit 1")
    night.script("helper", "exit 1")
    ended = night.run(night.plan(ai_cmd=command, **settings))
    assert ended.rule == "failure-threshold"
    assert [seconds for _, _, seconds in night.waits()] == waits


def test_known_cli_without_a_login_that_exits_with_0_ends_the_run_at_once(night: Night) -> None:
    night.script("claude", prints("Invalid API key · Please run /login"))
    for command in ("claude -p --output-format stream-json --verbose", "claude -p"):
        ended = night.run(night.plan(ai_cmd=command))
        assert (ended.status, ended.rule, ended.facts.iterations) == ("aborted", "auth", 1)
        assert "Try: Run `claude /login`" in night.output_of("why")


def test_no_wait_after_the_last_iteration(night: Night) -> None:
    night.script("claude", "echo 'no such thing' >&2; exit 1")
    ended = night.run(night.plan(default_max_iterations="1"))
    assert (ended.status, night.waits()) == ("max-iters", [])


def test_max_duration_ends_a_wait(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1))
    ended = night.run(night.plan(max_duration="1h"))
    assert (ended.status, ended.rule) == ("aborted", "max-duration")
    assert night.now < EVENING + timedelta(hours=1, minutes=1)


def test_on_wait_hook_receives_the_wait(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1), prints(INIT, DONE))
    stdin_file = night.workspace.path / "stdin_file"
    plan = night.plan(
        **{"hooks.on_wait": f"cat > {stdin_file}; echo $ROODA_STATUS >> {stdin_file}"}
    )
    night.run(plan)
    first, status = stdin_file.read_text().rsplit("\n", 2)[:2]
    received = json.loads(first)
    assert (received["kind"], received["until"][:16], status) == (
        "limit",
        "2026-11-16T03:30",
        "waiting",
    )


def test_sleep_of_the_machine_shortens_the_wait(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1), prints(INIT, DONE))
    rests: list[float] = []

    def sleeps(seconds: float) -> None:
        rests.append(seconds)
        night.now += timedelta(hours=9)  # the lid was closed

    night.rest = sleeps
    assert night.run(night.plan()).status == "success"
    assert len(rests) == 1


@pytest.mark.parametrize(
    "flags,status,rule,iterations",
    [
        ({"max_cost": "1.2"}, "aborted", "max-cost", 3),
        ({"max_tokens": "200"}, "aborted", "max-tokens", 2),
        ({"max_cost": "99"}, "max-iters", "max-iterations", 4),
    ],
)
def test_budget_ends_the_run_before_the_next_iteration(
    night: Night, flags: dict[str, str], status: str, rule: str, iterations: int
) -> None:
    night.script("claude", prints(INIT, GOOD))
    ended = night.run(night.plan(default_max_iterations="4", **flags))
    assert (ended.status, ended.rule, ended.facts.iterations) == (status, rule, iterations)


def test_budget_stops_an_agent_that_reports_its_usage_in_its_stream(night: Night) -> None:
    step = {"tokens": {"input": 1000, "output": 10}, "cost": 0.75, "reason": "tool-calls"}
    line = event(type="step_finish", sessionID="s", part=step)
    work = f"echo $$ > pid; printf '%s\\n' '{line}' '{line}'; exec sleep 600"
    night.script("opencode", work)
    ended = night.run(night.plan(ai_cmd_alias="opencode", max_cost="1"))
    assert (ended.status, ended.rule, ended.facts.cost) == ("aborted", "max-cost", 1.5)
    (one,) = night.show()["iterations"]
    assert (one["kind"], one["status"], one["cost"]) == ("budget", "failed", 1.5)
    assert "max_cost" in one["evidence"]
    pid = int((night.workspace.path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


# -- outages ---------------------------------------------------------------------------------

OVERLOADED = prints(INIT, failed("API Error: 529 Overloaded.", 529), code=1)
OFFLINE = prints(INIT, failed("API Error: Connection error.", 0), code=1)
CRASH = "kill -SEGV $$"


def make_tries_last(night: Night, minutes: float, agent: str = "claude") -> None:
    """Make each try of an agent last that many minutes."""

    def tries(stamped: Stamped) -> None:
        if isinstance(stamped.event, IterationStarted) and stamped.event.agent == agent:
            night.now += timedelta(minutes=minutes)

    night.listeners.append(tries)


def test_outage_counts_neither_as_failure_nor_as_iteration(night: Night) -> None:
    night.script("claude", OVERLOADED, OFFLINE, OVERLOADED, OVERLOADED, OFFLINE, prints(INIT, DONE))
    make_tries_last(night, 3)
    ended = night.run(night.plan(default_max_iterations="1", failure_threshold="1"))
    assert (ended.status, ended.facts.iterations, stat(ended, "count")) == (
        "success",
        1,
        1,
    )
    assert ended.facts.consecutive_failures == 0
    assert night.waits() == [("outage", "claude", 10.0 * 2**n) for n in range(5)]
    waits = [one for one in night.happened if isinstance(one, WaitStarted)]
    assert [one.tries for one in waits] == [1, 2, 3, 4, 5]
    assert [one.outage for one in waits[:2]] == ["overloaded", "offline"]
    assert [one.lasted for one in waits] == [0, 190, 390, 610, 870]
    (one,) = night.show()["iterations"]
    assert (one["status"], one["attempt"]) == ("completed", 6)
    assert {(e["status"], e["agent"]) for e in one["earlier_attempts"]} == {
        ("interrupted", "claude")
    }


@pytest.mark.long
def test_outage_longer_than_max_outage_wait_ends_the_run(night: Night) -> None:
    night.script("claude", OVERLOADED)
    make_tries_last(night, 3)
    ended = night.run(night.plan())
    assert (ended.status, ended.rule, ended.facts.exit_code) == ("aborted", "max-outage-wait", 1)
    assert (ended.facts.iterations, ended.facts.consecutive_failures) == (0, 0)
    assert "outage of claude (overloaded)" in ended.reason
    assert "max_outage_wait" in ended.reason
    assert "529" in ended.reason
    # Three minutes for the first try, two hours for the outage, and one more try at its end.
    waited = night.now - EVENING - timedelta(minutes=3)
    assert timedelta(hours=2) <= waited <= timedelta(hours=2, minutes=3)
    *_, last = [one for one in night.happened if isinstance(one, WaitStarted)]
    assert last.lasted is not None
    assert (last.capped, last.lasted + last.seconds) == (True, 7200)

    why = night.output_of("why")
    assert "Rule: max-outage-wait." in why
    assert "A resumed run waits as long again." in why
    assert "this is not a failure" in why
    assert why.count("Waited: for the outage of claude") == 1  # one line for the whole outage
    assert "in an outage of 2h00m00s" in why
    assert "max_outage_wait" in night.output_of("history")
    assert "outage of claude" in night.output_of("show")


def test_outage_may_last_forever_without_max_outage_wait(night: Night) -> None:
    night.script("claude", *[OVERLOADED] * 6, prints(INIT, DONE))
    ended = night.run(night.plan(max_outage_wait="none", backoff="3h", max_backoff="4h"))
    assert ended.status == "success"
    assert night.now - EVENING == timedelta(hours=23)


def test_max_outage_wait_of_0_ends_the_run_at_once(night: Night) -> None:
    night.script("claude", OFFLINE)
    ended = night.run(night.plan(max_outage_wait="0"))
    assert (ended.rule, night.waits(), night.now) == ("max-outage-wait", [], EVENING)
    assert "offline" in ended.reason


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("between", [CRASH, prints(INIT, GOOD), prints(INIT, failed(LIMIT, 429))])
def test_any_other_outcome_ends_an_outage(night: Night, between: str) -> None:
    outage_acts = [OVERLOADED] * 5  # 310 seconds
    night.script("claude", *outage_acts, between, *outage_acts, prints(INIT, DONE))
    ended = night.run(night.plan(max_outage_wait="6m"))
    assert ended.status == "success"
    waits = [one for one in night.happened if isinstance(one, WaitStarted)]
    outages = [one for one in waits if one.kind == "outage"]
    assert [one.tries for one in outages] == [1, 2, 3, 4, 5] * 2
    assert [one.lasted for one in outages] == [0, 10, 30, 70, 150] * 2


def test_consecutive_failures_are_counted_across_an_outage(night: Night) -> None:
    night.script("claude", CRASH, OVERLOADED, OVERLOADED, CRASH, OFFLINE, prints(INIT, DONE))
    ended = night.run(night.plan(failure_threshold="3"))
    assert (ended.status, ended.facts.iterations) == ("success", 3)
    night.script("claude", CRASH, OVERLOADED, OVERLOADED, CRASH, OFFLINE, CRASH)
    (night.workspace.path / "bin" / "claude.count").unlink()
    ended = night.run(night.plan(failure_threshold="3"), "20261116-010000-abcdef")
    assert (ended.rule, ended.facts.consecutive_failures) == ("failure-threshold", 3)


def test_resume_after_max_outage_wait_starts_a_new_allowance(night: Night) -> None:
    night.script("claude", *[OVERLOADED] * 4, *[OVERLOADED] * 3, prints(INIT, DONE))
    plan = night.plan(max_outage_wait="1m")
    assert night.run(plan).rule == "max-outage-wait"
    assert [seconds for _, _, seconds in night.waits()] == [10, 20, 30]
    at = night.now
    ended = night.run(plan, resume=True)
    assert (ended.status, ended.facts.iterations) == ("success", 1)
    assert [seconds for _, _, seconds in night.waits()[3:]] == [10, 20, 30]
    assert night.now - at == timedelta(minutes=1)  # so the first try came at once
    assert "4 waits" not in night.output_of("why")


def test_resume_of_a_run_that_was_interrupted_in_an_outage_tries_at_once(night: Night) -> None:
    night.script("claude", OVERLOADED, prints(INIT, DONE))
    night.rest = lambda _: night.interrupts.received.append(signal.SIGTERM)
    assert night.run(night.plan()).status == "interrupted"
    night.rest, night.interrupts = None, Interrupts()
    assert night.run(night.plan(), resume=True).status == "success"
    assert night.now == EVENING


def test_wait_lasts_as_long_as_the_service_asks_for(night: Night) -> None:
    words = "API Error: RunRequest rejected (429) · Too many requests, retry after 45 seconds"
    night.script("claude", prints(INIT, failed(words, 429), code=1), prints(INIT, DONE))
    assert night.run(night.plan(failure_threshold="1")).status == "success"
    assert night.waits() == [("outage", "claude", 45.0)]


@pytest.mark.long
def test_rate_limit_is_waited_for_as_an_outage(night: Night) -> None:
    words = "API Error: RunRequest rejected (429) · rate limit of 30,000 input tokens per minute."
    night.script("claude", prints(INIT, failed(words, 429), code=1))
    ended = night.run(night.plan(max_outage_wait="5m"))
    assert (ended.rule, ended.facts.iterations) == ("max-outage-wait", 0)
    assert {kind for kind, _, _ in night.waits()} == {"outage"}


def test_sleep_of_the_machine_does_not_count_as_outage(night: Night) -> None:
    night.script("claude", OFFLINE, OFFLINE, OFFLINE, prints(INIT, DONE))

    def sleeps(seconds: float) -> None:
        night.now += timedelta(seconds=seconds)
        if not night.asleep:
            night.asleep = timedelta(hours=8)
            night.now += night.asleep

    night.rest = sleeps
    assert night.run(night.plan()).status == "success"
    # The first try after the sleep came before the network was there; the sleep does not count.
    waits = [one for one in night.happened if isinstance(one, WaitStarted)]
    assert [one.seconds for one in waits] == [10, 20, 40]
    assert all(one.lasted is not None and one.lasted < 60 for one in waits)


def test_max_duration_ends_a_wait_for_an_outage(night: Night) -> None:
    night.script("claude", OVERLOADED)
    ended = night.run(night.plan(max_duration="15m"))
    assert (ended.status, ended.rule) == ("aborted", "max-duration")
    assert night.now - EVENING <= timedelta(minutes=15, seconds=2)


def test_cost_of_tries_in_an_outage_counts_toward_the_budget(night: Night) -> None:
    costly = result("529 Overloaded", is_error=True, api_error_status=529, total_cost_usd=0.5)
    night.script("claude", prints(INIT, costly, code=1))
    ended = night.run(night.plan(max_cost="1.5"))
    assert (ended.rule, ended.facts.cost, ended.facts.iterations) == ("max-cost", 1.5, 0)
    assert len(night.waits()) == 2


def test_fallback_takes_over_in_an_outage_and_the_first_agent_comes_back(night: Night) -> None:
    night.script("claude", OVERLOADED, OVERLOADED, prints(INIT, DONE))
    night.script("helper", "sleep 0.01")
    make_tries_last(night, 30, "helper")
    plan = night.plan(ai_cmd_fallbacks="helper", default_max_iterations="9", max_outage_wait="1m")
    ended = night.run(plan)
    assert (ended.status, night.waits()) == ("success", [])
    agents = [one.facts.agent for one in night.happened if isinstance(one, IterationEnded)]
    assert agents == ["claude", "helper", "claude", "helper", "claude"]
    assert [one["number"] for one in night.show()["iterations"]] == [1, 2, 3]


def test_if_all_agents_have_an_outage_the_run_waits_for_the_first_agent(night: Night) -> None:
    night.script("claude", OVERLOADED, OVERLOADED, prints(INIT, DONE))
    offline = prints(event(type="turn.failed", error={"message": "error sending request"}), code=1)
    night.script("codex", offline)
    ended = night.run(night.plan(ai_cmd_fallbacks="codex"))
    assert (ended.status, ended.facts.iterations) == ("success", 1)
    assert night.waits() == [("outage", "claude", 10.0), ("outage", "claude", 20.0)]


def test_outage_of_the_fallback_does_not_end_a_run_that_waits_for_a_limit(night: Night) -> None:
    night.script("claude", prints(INIT, failed(LIMIT, 429), code=1), prints(INIT, DONE))
    offline = prints(event(type="turn.failed", error={"message": "error sending request"}), code=1)
    night.script("codex", offline)
    ended = night.run(night.plan(ai_cmd_fallbacks="codex", max_outage_wait="10m"))
    assert (ended.status, ended.facts.iterations) == ("success", 1)
    assert night.now >= datetime(2026, 11, 16, 3, 30, tzinfo=UTC)
    # Ten minutes of tries; then rooda does not try codex again before the limit is over.
    kinds = [kind for kind, _, _ in night.waits()]
    assert (kinds.count("outage"), kinds[-1]) == (6, "limit")


def test_on_wait_hook_receives_the_outage(night: Night) -> None:
    night.script("claude", OFFLINE, prints(INIT, DONE))
    stdin_file = night.workspace.path / "stdin_file"
    night.run(night.plan(**{"hooks.on_wait": f"cat > {stdin_file}"}))
    received = json.loads(stdin_file.read_text())
    assert (received["kind"], received["what"], received["outage"]) == (
        "outage",
        "claude",
        "offline",
    )
    assert (received["seconds"], received["lasted"], received["until"][:19]) == (
        10,
        0,
        "2026-11-15T23:00:10",
    )


# -- everything in one night -----------------------------------------------------------------

SECRET = "hunter2-is-my-token"


def plants_git(night: Night, marker: Path) -> str:
    """Return what an agent does to plant a git in a folder of the work tree that is on PATH."""
    planted = night.workspace.path / "bin" / "git"
    return f"printf '#!/bin/sh\\necho ran >> {marker}\\nexit 1\\n' > {planted}; chmod +x {planted}"


def test_night_with_an_outage_a_secret_a_git_init_and_a_planted_git_ends_well(
    night: Night,
) -> None:
    workspace, marker = night.workspace, night.workspace.home / "planted-git-ran"
    app = within(workspace, "app")
    (workspace.home / ".gitconfig").write_text("[user]\nname = A User\nemail = u@example.org\n")
    git(workspace, "init", "-q", "-b", "main")
    workspace.write(".gitignore", "bin/*.count\n")
    works = prints(INIT, GOOD)
    night.script(
        "claude",
        f"echo 1 > one.py; {works}",
        *[OFFLINE] * 9,
        f"echo 2 > two.py; echo TOKEN={SECRET} > .env; {works}",
        f"git init -q .; echo 3 > three.py; {works}",
        f"rm -rf .git; echo 4 > four.py; {works}",
        f"{plants_git(night, marker)}; echo 5 > five.py; {works}",
        f"echo 6 > six.py; {prints(INIT, DONE)}",
    )
    for folder in (workspace, app):
        folder.config(PROCEDURE)
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "the evening")
    make_tries_last(night, 5)
    plan = night.plan(app.path, **{"git.commit": "true"}, default_max_iterations="9")
    ended = night.run(plan)

    assert (ended.status, ended.facts.exit_code, ended.facts.iterations) == ("success", 0, 6)
    outage = [one for one in night.happened if isinstance(one, WaitStarted)]
    assert [one.outage for one in outage] == ["offline"] * 9
    assert outage[-1].lasted is not None
    assert outage[-1].lasted + outage[-1].seconds >= 3600
    assert not marker.exists(), "rooda ran the planted git"

    night.workspace = app  # the user looks at it where the run began
    run = night.show()
    found = [(one["number"], one["status"], one["kind"]) for one in run["iterations"]]
    assert found == [
        (1, "completed", None),
        (2, "completed", None),
        (3, "failed", "commit"),
        (4, "completed", None),
        (5, "completed", None),
        (6, "completed", None),
    ]
    assert len(run["iterations"][1]["earlier_attempts"]) == 9
    assert run["cost"] == pytest.approx(5 * 0.5 + 0.25)
    tracked = git(workspace, "ls-tree", "-r", "--name-only", "main").splitlines()
    names = ("one", "two", "three", "four", "five", "six")
    assert {f"app/{name}.py" for name in names} <= set(tracked)
    assert git(workspace, "status", "--porcelain", "--", "app/*.py") == ""

    assert "the work is done" in night.output_of("why")
    assert "outage of claude" in night.output_of("why")
    assert "the repository changed" in night.output_of("why", "3")
    assert ".env" not in git(workspace, "log", "--branches", "--format=", "--name-only")
