"""The outputs of one iteration: the agent's two streams and the output of verify."""

import pytest

from rooda.world.testresults.read import read_outputs
from rooda.world.testresults.results import LIMIT, may_have_results
from support.outputs import (
    RECORDED,
    Counts,
    Output,
    counts,
    handwritten_outputs,
    other_recorded_outputs,
    recorded_outputs,
)
from support.tables import each_row

ALL = [
    output
    for cases in (recorded_outputs(), other_recorded_outputs(), handwritten_outputs())
    for output, _ in cases
]

PYTEST = "===== 1 failed, 2 passed in 0.10s =====\n"
GREEN_PYTEST = "===== 3 passed in 0.10s =====\n"
EMPTY_PYTEST = "===== no tests ran in 0.01s =====\n"
JEST = "Test Suites: 1 passed, 1 total\nTests:       4 passed, 4 total\n"
GO = "ok  \texample.com/{}\t0.01s\n"
UNITTEST = "Ran 5 tests in 0.001s\n\nFAILED (failures=1)\n"
CARGO = (
    "    Finished test [unoptimized] target(s) in 0.1s\n"
    "     Running src/lib.rs (target/a-1)\ntest result: ok. 2 passed; 0 failed; 1 ignored\n"
    "     Running src/main.rs (target/b-2)\ntest result: ok. 3 passed; 0 failed; 0 ignored\n"
    "   Doc-tests a\ntest result: ok. 1 passed; 0 failed; 0 ignored\n"
)
LIB_ONLY = (
    "    Finished test [unoptimized] target(s) in 0.1s\n"
    "     Running src/lib.rs (target/a-1)\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n"
)
TOX = f"a: commands[0]> pytest\n{GREEN_PYTEST}b: commands[0]> pytest\n{PYTEST}"


@each_row(
    "outputs,expected",
    [
        pytest.param([], None, id="no outputs"),
        pytest.param(["", "", ""], None, id="nothing printed"),
        pytest.param([PYTEST, "", GREEN_PYTEST], (3, 3, 0, 0), id="pytest in both"),
        pytest.param(
            [GREEN_PYTEST, "", PYTEST], (3, 2, 1, 0), id="pytest in both, verify with a failure"
        ),
        pytest.param([GREEN_PYTEST, "", EMPTY_PYTEST], (0, 0, 0, 0), id="verify ran no tests"),
        pytest.param([PYTEST, "", "lint: all is well\n"], (3, 2, 1, 0), id="pytest, then a linter"),
        pytest.param([JEST, "", PYTEST], (7, 6, 1, 0), id="jest, then pytest"),
        pytest.param(
            [PYTEST + JEST, "", GREEN_PYTEST], (7, 7, 0, 0), id="verify ran one of two runners"
        ),
        pytest.param([PYTEST, UNITTEST, JEST], (12, 10, 2, 0), id="three runners"),
        pytest.param(["", UNITTEST, UNITTEST], (5, 4, 1, 0), id="unittest, on standard error"),
        pytest.param([JEST, JEST, ""], (4, 4, 0, 0), id="same runner on both streams"),
        pytest.param([CARGO, "", CARGO], (7, 6, 0, 1), id="cargo binaries in both"),
        pytest.param([CARGO, "", LIB_ONLY], (2, 1, 1, 0), id="all cargo binaries, then one"),
        pytest.param([LIB_ONLY, "", CARGO], (7, 6, 0, 1), id="one cargo binary, then all"),
        pytest.param(
            [GO.format("a") + GO.format("b"), "", GO.format("a") + GO.format("b")],
            (2, 2, 0, 0),
            id="go packages in both",
        ),
        pytest.param([GO.format("a"), "", GO.format("b")], (1, 1, 0, 0), id="another go package"),
        pytest.param([TOX, "", TOX], (6, 5, 1, 0), id="tox environments in both"),
        pytest.param([TOX, "", GREEN_PYTEST], (3, 3, 0, 0), id="tox, then pytest alone"),
    ],
)
def test_verify_results_replace_agent_results_of_the_same_runner(
    outputs: list[str], expected: Counts | None
) -> None:
    assert counts(read_outputs(*(output.encode() for output in outputs))) == expected


def test_outputs_are_parsed_separately() -> None:
    """Neither a line nor a run continues from one output into the next."""
    assert counts(read_outputs(b"Ran 5 tests in 0.001s\n", b"\nOK\n")) is None
    inner = b"=== test session starts ===\n"
    assert counts(read_outputs(inner, JEST.encode(), PYTEST.encode())) == (7, 6, 1, 0)


def test_details_come_from_the_runs_that_count() -> None:
    agent = Output(RECORDED / "pytest_mixed_tb_short.txt").data
    verify = b"FAILED t.py::test_last - no\n=== 1 failed in 0.10s ===\n"
    results = read_outputs(agent, Output(RECORDED / "jest_ok.txt").data, verify)
    assert counts(results) == (4, 3, 1, 0)
    assert results is not None
    assert [detail.name for detail in results.details] == ["t.py::test_last"]


def test_later_recorded_output_replaces_an_earlier_one_of_the_same_runner() -> None:
    pairs = [("twice_jest", "jest_mixed"), ("cargo_workspace_fail_fast", "cargo_workspace_ok")]
    pairs += [("go_panic_v", "go_multi_plain"), ("tox_two_envs", "pytest_subtests")]
    for first, second in pairs:
        agent, verify = (Output(RECORDED / f"{name}.txt") for name in (first, second))
        assert counts(read_outputs(agent.data, b"", verify.data)) == counts(verify.read())


def test_read_outputs_uses_only_the_last_megabytes_of_each_output() -> None:
    noise = (b"compiling" * 100 + b"\n") * (LIMIT // 900)
    assert counts(read_outputs(noise + PYTEST.encode(), JEST.encode() + noise)) == (3, 2, 1, 0)


@each_row("output", ALL, ids=lambda output: output.path.name)
def test_may_have_results_is_true_for_every_output_with_results(output: Output) -> None:
    if output.path.suffix != ".xml" and output.read() is not None:
        assert may_have_results(output.data)


def test_may_have_results_is_false_for_output_without_test_words() -> None:
    assert not may_have_results(b"working, line by line\n" * 100_000)
