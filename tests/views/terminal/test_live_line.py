"""The live line at several widths."""

from rooda.base.widths import width
from rooda.loop.events.iteration import IterationEnded
from rooda.views.terminal.live_line import AgentActivity, Phase, RunStanding, live_line
from rooda.world.tasks.standing import TaskCount
from support.happenings import SAMPLES, with_facts
from support.tables import each_row

STANDING = RunStanding(good=3, failed=1, cost=3.1)
VERIFYING = Phase("verifying", 2460.0, ": make test")
AT_WORK = AgentActivity(printed=34_900, last_output=2464.0, tokens=45_070, cost=0.25)


def shown(phase: Phase, columns: int, agent: AgentActivity | None = None) -> str:
    line = live_line("4/20", phase, STANDING, agent, 2467.0, columns)
    assert width(line) < columns
    return line


def test_line_has_the_phase_first() -> None:
    assert shown(VERIFYING, 160) == (
        "Iteration 4/20 · verifying: make test · 0m07s · total 41m · 3 good, 1 failed · $3.10"
    )


@each_row(
    "columns,expected",
    [
        (160, "verifying: make test · 0m07s · total 41m · 3 good, 1 failed · $3.10"),
        (100, "verifying: make test · 0m07s · total 41m · 3 good, 1 failed · $3.10"),
        (60, "verifying: make test · 0m07s · total 41m"),
        (40, "verifying: make test"),
        (34, "verifying: make…"),
        (30, "verifying"),
    ],
)
def test_narrow_terminal_leaves_out_the_least_important_parts(columns: int, expected: str) -> None:
    assert shown(VERIFYING, columns) == f"Iteration 4/20 · {expected}"


@each_row(
    "columns,expected",
    [
        (
            160,
            (
                "agent ACT: Bash make test · 0m27s · total 41m · 3 good, 1 failed · $3.35 · "
                "45,070 tokens · 34.1 kB of output, last 0m03s ago"
            ),
        ),
        (100, "agent ACT: Bash make test · 0m27s · total 41m · 3 good, 1 failed · $3.35"),
        (84, "agent ACT: Bash make test · 0m27s · total 41m · 3 good, 1 failed"),
        (40, "agent ACT: Bash make…"),
    ],
)
def test_line_of_an_agent_has_its_last_tool(columns: int, expected: str) -> None:
    phase = Phase("agent ACT", 2440.0, ": Bash make test")
    assert shown(phase, columns, AT_WORK) == f"Iteration 4/20 · {expected}"


@each_row("word", ["word ", "字", "🚀", "e\u0301"])
@each_row("columns", [1, 2, 10, 24, 40, 60, 100, 160])
def test_long_words_are_cut_and_never_wrap(word: str, columns: int) -> None:
    line = shown(Phase("agent", 2440.0, f": {word * 300}"), columns, AT_WORK)
    if columns >= 60:
        assert "0m27s" in line, "the time of the phase is more important than the end of its words"


def test_line_of_a_wait_says_until_when() -> None:
    phase = Phase("waiting until 04:10", 2000.0, " for the usage limit of claude", 3000.0)
    assert shown(phase, 160) == (
        "Iteration 4/20 · waiting until 04:10 for the usage limit of claude · 8m53s left · "
        "total 41m · 3 good, 1 failed · $3.10 · Ctrl+C ends it"
    )


def test_line_of_a_resumed_run_has_the_totals_of_the_whole_run() -> None:
    standing = RunStanding(cost=1.5, elapsed_before=3600.0)
    line = live_line("2/3", Phase("agent", 0.0), standing, AT_WORK, 60.0, 60)
    assert line == "Iteration 2/3 · agent · 1m00s · total 1h01m · $1.75"


def test_line_before_the_first_iteration_has_no_number() -> None:
    line = live_line("", Phase("verifying", 0.0, ": make"), RunStanding(), None, 3725.0, 100)
    assert line == "verifying: make · 1h02m05s · total 1h02m"


def test_line_has_the_tasks_before_the_iterations() -> None:
    standing = RunStanding(good=3, cost=3.1, tasks=TaskCount(9, 14))
    line = live_line("4/20", VERIFYING, standing, None, 2467.0, 160)
    assert line.endswith(" · total 41m · 9 of 14 tasks · 3 good · $3.10")


def test_tasks_are_those_after_the_last_iteration() -> None:
    standing = RunStanding(tasks=TaskCount(9, 14))
    ended = next(one for one in SAMPLES if isinstance(one, IterationEnded))
    after = standing.after(with_facts(ended, tasks=TaskCount(10, 14)))
    assert after.tasks == TaskCount(10, 14)
