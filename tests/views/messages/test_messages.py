"""The texts of messages: outcome, reason, numbers, the next command; and nothing that acts."""

from datetime import UTC, datetime

from msgspec.structs import replace

from rooda.loop.events.run import TasksLeft
from rooda.loop.next_steps import NextCommand
from rooda.loop.stops import StopRule
from rooda.views.messages.message import (
    Named,
    blocked_message,
    end_message,
    failure_message,
    inert,
    killed_message,
    trial_message,
    waiting_message,
)
from rooda.views.model.summary import (
    IterationSummary,
    Proof,
    ProofState,
    RunSummary,
    TestCounts,
)
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.tasks.standing import TaskCount
from support.happenings import ABORTED, BLOCKED, EVIL, FAILURE, SUCCEEDED, WAIT, failed, with_facts
from support.nights import iteration, night
from support.tables import each_row

RUN = "20260301-230000-abcdef"
NAMED = Named("shop", "build", RUN, f"rooda resume {RUN}")
ONE = IterationSummary(
    row=iteration(3, headline="Implemented the basket"),
    started_at="2026-03-01T23:00:00+00:00",
    cost=12.5,
)
SUMMARY = RunSummary(
    row=night(
        run=RUN,
        procedure="build",
        workspace="/home/ada/shop",
        status="success",
        exit_code=0,
        started_at="2026-03-01T23:00:00+00:00",
    ),
    rule_text="The agent signaled SUCCESS in iteration 3 of at most 20.",
    seconds=27540.0,
    good=1,
    iterations=(ONE,),
    tests_first=TestCounts(4, 0, 0, 4, 1),
    tests_last=TestCounts(26, 0, 0, 26, 3),
    cost=12.5,
    proof=Proof(ProofState.PASSED, "make test", 3, commit="c0ffee1"),
    next_commands=(NextCommand("Read the commit", "git log --oneline --stat a1..c0"),),
)


def test_end_has_outcome_reason_numbers_and_the_next_command() -> None:
    message = end_message(NAMED, SUCCEEDED, SUMMARY)
    assert (message.title, message.kind) == ("rooda: shop: build: ended as success", "success")
    assert message.body.splitlines() == [
        "shop: build ended as success (exit code 0) after 7h39m.",
        "The agent signaled SUCCESS in iteration 3 of at most 20.",
        "Iterations: 1 (1 good, 0 failed)",
        "Tests: 4 to 26 passed",
        "Proof: verify passed after iteration 3: commit c0ffee1 (make test)",
        "Cost: $12.50",
        "Done last: Implemented the basket",
        "Read the commit: git log --oneline --stat a1..c0",
        f"See all of it as one page: rooda report {RUN}",
    ]


def test_end_without_a_record_has_what_rooda_knows_itself() -> None:
    ended = with_facts(ABORTED, rule=str(StopRule.MIN_FREE_DISK), reason="disk full")
    message = end_message(NAMED, ended, None)
    assert message.title == "rooda: shop: build: ended as aborted"
    assert message.kind == "failure"
    assert message.body.splitlines()[0].startswith("ERROR: Aborting: disk full (3 iterations")


def test_failure_says_which_iteration_why_and_how_to_read_it() -> None:
    event = with_facts(
        failed(4, 20, 5.0, 2, 3, FAILURE), kind=FailureKind.VERIFY, reason="3 tests failed"
    )
    message = failure_message(NAMED, event, 2)
    assert message.title == "rooda: shop: build: iteration 4 failed"
    assert message.body.splitlines() == [
        "Iteration 4 failed (verify): 3 tests failed",
        "Failures in a row: 2 of 3",
        "Since the last message of this kind: 2 more",
        f"Read it: rooda show {RUN} 4",
    ]


def test_blocked_says_what_the_agent_says_and_how_to_answer() -> None:
    event = with_facts(
        failed(4, 20, 5.0, 1, 3, BLOCKED), signal="FAILURE", headline="The key is missing"
    )
    message = blocked_message(NAMED, event, 0)
    assert message.title == "rooda: shop: build: the agent is blocked"
    assert message.body.splitlines() == [
        "The agent signaled FAILURE in iteration 4: it needs you.",
        "Agent says: The key is missing",
        "Failures in a row: 1 of 3",
        f"Read it: rooda show {RUN} 4",
        "Write a note for the next prompt: rooda tell TEXT",
    ]


def test_waiting_says_for_what_and_until_when() -> None:
    message = waiting_message(Named("", "build", RUN), WAIT, 0)
    assert message.title == "rooda: build: the run waits"
    first, reason, *_ = message.body.splitlines()
    words = "The run waits for the usage limit of claude: 4h00m00s, until 2026-03-02 03:00."
    assert first == words
    assert reason == "Reason: You've hit your limit · resets 3am (UTC)"


def test_killed_says_how_to_continue() -> None:
    message = killed_message(NAMED)
    assert message.title == "rooda: shop: build: ended without a result"
    assert message.body.splitlines()[-1] == f"Continue it: rooda resume {RUN}"
    assert "Continue" not in killed_message(Named("shop", "build", RUN)).body


def test_trial_says_that_it_is_one() -> None:
    assert "test message" in trial_message(datetime(2026, 3, 1, tzinfo=UTC)).body


@each_row(
    "hostile,shown",
    [
        (EVIL, 'ab ERROR forged="x" z \\'),
        ("see https://evil.example/x", "see https:/ /evil.example/x"),
        ("[click](https://evil.example)", "[click] (https:/ /evil.example)"),
        (
            "@everyone <!channel> <@U1> <b>x</b>",
            "\uff20everyone \u2039!channel\u203a \u2039\uff20U1\u203a \u2039b\u203ax\u2039/b\u203a",
        ),
        ("a\u202eb\u200bc\u2028d\U000e0041e", "ab c d e"),
        ("&lt;b&gt; `x`", "\uff06lt;b\uff06gt; 'x'"),
    ],
)
def test_hostile_text_becomes_one_inert_line(hostile: str, shown: str) -> None:
    assert inert(hostile) == shown


def test_a_line_of_megabytes_is_cut() -> None:
    assert inert("x" * 10_000_000) == "x" * 297 + "..."
    message = failure_message(
        Named("p" * 1000, "build", RUN),
        with_facts(failed(1, 2, 5.0, 1, 3, FAILURE), reason="\n" * 10**6 + "y" * 10**6),
        0,
    )
    assert len(message.title) <= 120
    assert len(message.body) < 1000


def test_success_with_open_tasks_is_a_warning() -> None:
    tasks, left = TaskCount(14, 20), TasksLeft((EVIL, "@all http://x", "C", "D"), (), "PLAN.md")
    row = replace(SUMMARY.row, rule="signal", tasks=tasks, tasks_left=left)
    run = replace(SUMMARY, row=row)
    message = end_message(NAMED, with_facts(SUCCEEDED, tasks=tasks), run)
    assert message.title == "rooda: shop: build: ended as success, 14 of 20 tasks"
    assert message.kind == "warning"
    lines = message.body.splitlines()
    (line,) = [one for one in lines if one.startswith("Tasks: ")]
    assert line.startswith("Tasks: 14 of 20 tasks; 6 open in PLAN.md: a")
    assert line.endswith("\uff20all http:/ /x, C, 3 more")
    assert line == inert(line)
    assert "Agent says: Implemented the basket" in lines
    assert end_message(NAMED, with_facts(SUCCEEDED, tasks=tasks), None).kind == "warning"


def test_success_with_all_tasks_done_is_a_success() -> None:
    tasks = TaskCount(20, 20)
    run = replace(SUMMARY, row=replace(SUMMARY.row, rule="signal", tasks=tasks))
    message = end_message(NAMED, with_facts(SUCCEEDED, tasks=tasks), run)
    assert (message.title, message.kind) == ("rooda: shop: build: ended as success", "success")
    assert "Tasks: 20 of 20 tasks" in message.body.splitlines()
