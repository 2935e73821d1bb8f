"""JSON events of agents: only the output of shell commands is searched for test results."""

import json
from typing import Any

import pytest

from rooda.world.testresults.read import read
from support.outputs import counts
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
