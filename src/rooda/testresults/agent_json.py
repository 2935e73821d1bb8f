"""Replaces the JSON events of an agent by the command output in their strings."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from rooda.text.formats import parse_json

_HINTS = ('"type":', '"role":')
_IDS = ("tool_use_id", "tool_call_id", "tool_id", "toolCallId", "callID", "id")
_NAMES = ("name", "tool_name", "toolName", "tool")
_INPUTS = {"input", "arguments", "args", "parameters"}
_OUTPUTS = {"output", "aggregated_output", "stdout", "stderr", "content", "text"}
_TOOLS = re.compile(r"tool|command_execution")
# Other tools show files, web pages or the words of another agent, and not test output.
_COMMANDS = re.compile(r"bash|shell|command|exec|terminal|console|output", re.IGNORECASE)
_BOUNDARY = "$ command"


def unwrapped(text: str) -> str:
    """Return the text with the output of a command in place of each event that contains it."""
    if not text.startswith("{") and "\n{" not in text:
        return text
    events = _Events()
    return "\n".join(events.unwrap(line) for line in text.split("\n"))


class _Context(NamedTuple):
    """The position of a value in an event: in a tool's part or not, which call, which tool."""

    in_tool: bool = False
    call: str = ""
    tool: str = ""


class _Events:
    """Remembers the tool of each call, because the output of a call is in a later event."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def unwrap(self, line: str) -> str:
        """Return the command output in the line if it is such an event, else the line itself."""
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
        """Return the context of the values in an object, and remember the name of its tool."""
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
