"""Agents that print JSON: the output of the commands they ran is in the strings of their events."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from rooda.testresults.reports import loaded

_HINTS = ('"type":', '"role":')
_IDS = ("tool_use_id", "tool_call_id", "tool_id", "toolCallId", "callID", "id")
_NAMES = ("name", "tool_name", "toolName", "tool")
_INPUTS = {"input", "arguments", "args", "parameters"}
_OUTPUTS = {"output", "aggregated_output", "stdout", "stderr", "content", "text"}
_TOOLS = re.compile(r"tool|command_execution")
# What other tools show (files, the web, another agent's words) is no output of a test runner.
_COMMANDS = re.compile(r"bash|shell|command|exec|terminal|console|output", re.IGNORECASE)
_BOUNDARY = "$ command"


def unwrapped(text: str) -> str:
    """The text, in which each event of a command has become what the command printed."""
    if not text.startswith("{") and "\n{" not in text:
        return text
    events = _Events()
    return "\n".join(events.unwrap(line) for line in text.split("\n"))


class _Context(NamedTuple):
    """Where in an event a value is."""

    in_tool: bool = False
    call: str = ""
    tool: str = ""


class _Events:
    """Knows which tool was called, since its output comes in a later event."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def unwrap(self, line: str) -> str:
        """What a command printed, if the line is such an event; else the line itself."""
        if not line.startswith("{") or not any(hint in line for hint in _HINTS):
            return line
        printed = dict.fromkeys(self._printed(loaded(line)))  # some events say it twice
        return "\n".join([_BOUNDARY, *printed]) if printed else line

    def _printed(self, event: Any) -> Iterator[str]:
        rest: list[tuple[Any, _Context]] = [(event, _Context())]
        while rest:
            value, context = rest.pop()
            if isinstance(value, list):
                rest += [(item, context) for item in reversed(value)]
            elif isinstance(value, dict):
                context = self._entered(value, context)
                yield from _outputs(value, context)
                inner = reversed([item for key, item in value.items() if key not in _INPUTS])
                rest += [(item, context) for item in inner]

    def _entered(self, value: dict[str, Any], context: _Context) -> _Context:
        """The context of what is in an object; takes note of a tool's name."""
        kind = f"{value.get('type')} {value.get('role')}"
        call = _first(value, _IDS) or context.call
        tool = _first(value, _NAMES) or self._tools.get(call, context.tool)
        if call and tool:
            self._tools[call] = tool
        return _Context(context.in_tool or _TOOLS.search(kind) is not None, call, tool)


def _outputs(value: dict[str, Any], context: _Context) -> Iterator[str]:
    if context.in_tool and (not context.tool or _COMMANDS.search(context.tool)):
        for key, item in value.items():
            if key in _OUTPUTS and isinstance(item, str) and item:
                yield item


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((value[key] for key in keys if isinstance(value.get(key), str)), "")
