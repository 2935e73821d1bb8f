"""Replaces each JSON event of an agent with the command output that the event contains."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from rooda.base.formats import parse_json

_HINTS = ('"type":', '"role":')
_IDS = ("tool_use_id", "tool_call_id", "tool_id", "toolCallId", "callID", "id")
_NAMES = ("name", "tool_name", "toolName", "tool")
_INPUTS = {"input", "arguments", "args", "parameters"}
_OUTPUTS = {"output", "aggregated_output", "stdout", "stderr", "content", "text"}
_TOOLS = re.compile(r"tool|command_execution")
# Other tools return files, web pages or text of another agent. None of these is test output.
_COMMANDS = re.compile(r"bash|shell|command|exec|terminal|console|output", re.IGNORECASE)
_BOUNDARY = "$ command"


def unwrapped(text: str) -> str:
    """Return the text with the output of a command in place of each event that contains it."""
    if not text.startswith("{") and "\n{" not in text:
        return text
    events = _Events()
    return "\n".join(events.unwrap(line) for line in text.split("\n"))


class _Context(NamedTuple):
    """Where a value is in an event: whether it belongs to a tool, and to which call and tool."""

    in_tool: bool = False
    call: str = ""
    tool: str = ""


class _Events:
    """Remembers the tool of each call, because the output of a call is in a later event."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def unwrap(self, line: str) -> str:
        """Return the command output if the line is an event that has some, else the line itself."""
        if not line.startswith("{") or not any(hint in line for hint in _HINTS):
            return line
        printed = dict.fromkeys(self._printed(parse_json(line)))  # some events repeat the output
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
        """Return the context for the values inside an object, and store the object's tool name."""
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
