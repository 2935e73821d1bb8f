"""JSON events of agents: only the output of shell commands is searched for test results."""

import json
from typing import Any

import pytest

from rooda.world.testresults.read import read, read_outputs
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

PRINTED = "\x1b[31mFAILED t.py::test_b - no\x1b[0m\n=== 1 failed, 2 passed in 0.12s ===\n"
TALK = "It will say:\n\n99 passed in 0.10s\n"


def lines(*events: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(event)}\n" for event in events)


def claude(tool: str, printed: str) -> str:
    call = {"type": "tool_use", "id": "t1", "name": tool, "input": {"command": TALK}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": printed}
    return lines(
        {"type": "system", "subtype": "init"},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": TALK}, call]}},
        {"type": "user", "message": {"content": [result]}, "tool_use_result": {"stdout": printed}},
        {"type": "result", "result": TALK},
    )


def claude_in_parts(tool: str, printed: str) -> str:
    call = {"type": "tool_use", "id": "t1", "name": tool, "input": {}}
    parts = [{"type": "text", "text": printed}]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": parts}
    return lines(
        {"type": "assistant", "message": {"content": [call]}},
        {"type": "user", "message": {"content": [result]}},
    )


def gemini(tool: str, printed: str) -> str:
    return lines(
        {"type": "message", "role": "user", "content": TALK},
        {"type": "message", "role": "assistant", "content": TALK},
        {"type": "tool_use", "tool_name": tool, "tool_id": "1", "parameters": {"content": TALK}},
        {"type": "tool_result", "tool_id": "1", "status": "success", "output": printed},
    )


def opencode(tool: str, printed: str) -> str:
    state = {"input": {"content": TALK}, "output": printed, "metadata": {"output": printed}}
    part = {"type": "tool", "tool": tool, "callID": "c1", "state": state}
    return lines(
        {"type": "text", "part": {"type": "text", "text": TALK}},
        {"type": "tool_use", "part": part},
    )


def copilot(tool: str, printed: str) -> str:
    start = {"toolCallId": "c1", "toolName": tool, "arguments": {"content": TALK}}
    end = {"toolCallId": "c1", "result": {"content": printed, "detailedContent": printed}}
    return lines(
        {"type": "assistant.message", "data": {"content": TALK}},
        {"type": "tool.execution_start", "data": start},
        {"type": "tool.execution_complete", "data": end},
    )


def kimi(tool: str, printed: str) -> str:
    call = {"type": "function", "id": "c1", "function": {"name": tool, "arguments": TALK}}
    return lines(
        {"role": "assistant", "content": TALK, "tool_calls": [call]},
        {"role": "tool", "content": printed, "tool_call_id": "c1"},
    )


AGENTS = each_row(
    "agent",
    [claude, claude_in_parts, gemini, opencode, copilot, kimi],
    ids=lambda agent: agent.__name__,
)


@AGENTS
@pytest.mark.parametrize("shell", ["Bash", "run_shell_command", "exec_command"])
def test_results_are_read_from_the_output_of_shell_commands(agent: Any, shell: str) -> None:
    results = read(agent(shell, PRINTED))
    assert counts(results) == (3, 2, 1, 0)
    assert results is not None
    assert [detail.name for detail in results.details] == ["t.py::test_b"]


@AGENTS
@pytest.mark.parametrize("tool", ["Read", "grep_search", "Task", "WebFetch"])
def test_results_in_the_output_of_other_tools_are_ignored(agent: Any, tool: str) -> None:
    assert read(agent(tool, PRINTED)) is None


def test_results_are_read_from_codex_command_executions() -> None:
    command = {"type": "command_execution", "command": "pytest", "aggregated_output": PRINTED}
    text = lines(
        {"type": "item.completed", "item": {"type": "agent_message", "text": TALK}},
        {"type": "item.started", "item": {"id": "1", **command, "aggregated_output": ""}},
        {"type": "item.completed", "item": {"id": "1", **command}},
    )
    assert counts(read(text)) == (3, 2, 1, 0)


def test_runs_in_separate_commands_do_not_add_up() -> None:
    binary = "test result: ok. 1 passed; 0 failed; 0 ignored\n"
    assert counts(read(claude("Bash", binary * 2))) == (2, 2, 0, 0)
    assert counts(read(claude("Bash", binary * 2) + claude("Bash", binary))) == (1, 1, 0, 0)


def test_json_events_of_test_runners_are_not_unwrapped() -> None:
    events = [
        {"Action": "run", "Package": "m", "Test": "TestA"},
        {"Action": "pass", "Package": "m", "Test": "TestA", "type": "x"},
        {"Action": "pass", "Package": "m"},
    ]
    assert counts(read(lines(*events))) == (1, 1, 0, 0)


@each_row(
    "line",
    [
        '{"type":',
        '{"type":"tool_result","output":7}',
        '{"type":"tool_result","output":{"output":null}}',
        '{"type":["tool_result"],"role":{},"name":[],"id":3,"content":"1 passed in 0.10s"}',
        '{"type":"tool_result","id":"x","name":"Bash"}',
        '{"type":' + "[" * 100_000,
        "[]",
        "{}",
    ],
    ids=range(8),
)
def test_malformed_event_does_not_hide_later_results(line: str) -> None:
    after = "=== 2 passed in 0.10s ===\n"
    assert counts(read(f"{line}\n{after}")) == (2, 2, 0, 0)


# The outputs of one iteration: the agent's two streams and the output of verify.


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
