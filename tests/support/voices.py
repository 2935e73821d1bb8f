"""Events of the known CLIs, handmade in the format of recorded ones."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

Object = Mapping[str, Any]
SESSION, MODEL = "session-1", "some-model"


def line(event: Object) -> bytes:
    """Return the printed line of an event."""
    return json.dumps(event).encode() + b"\n"


class Voice(Protocol):
    """A CLI that prints events. Each method returns the events that the CLI prints for it."""

    name: str
    command: str

    def begins(self) -> list[Object]:
        """The CLI has started."""

    def says(self, text: str) -> list[Object]:
        """The assistant says this text."""

    def uses(self, tool: str, about: Object) -> list[Object]:
        """The assistant uses a tool."""

    def tool_prints(self, text: str) -> list[Object]:
        """A tool has ended after printing this text."""

    def echoes_prompt(self, text: str) -> list[Object]:
        """The CLI echoes the prompt."""

    def ends(self, answer: str) -> list[Object]:
        """The result is a success with this answer."""

    def fails(self, message: str) -> list[Object]:
        """The result is a failure with this message."""


class Claude:
    name, command = "claude", "claude -p --output-format stream-json --verbose"

    def begins(self) -> list[Object]:
        return [{"type": "system", "subtype": "init", "model": MODEL, "session_id": SESSION}]

    def says(self, text: str) -> list[Object]:
        return [self._assistant({"type": "text", "text": text})]

    def uses(self, tool: str, about: Object) -> list[Object]:
        return [self._assistant({"type": "tool_use", "id": "t", "name": tool, "input": about})]

    def tool_prints(self, text: str) -> list[Object]:
        block = {"type": "tool_result", "tool_use_id": "t", "content": text}
        output = {"stdout": text, "stderr": text}
        return [self._user(block) | {"tool_use_result": output}]

    def echoes_prompt(self, text: str) -> list[Object]:
        return [self._user({"type": "text", "text": text})]

    def ends(self, answer: str) -> list[Object]:
        return [self._result(answer, is_error=False)]

    def fails(self, message: str) -> list[Object]:
        return [self._result(message, is_error=True)]

    def _assistant(self, block: Object) -> dict[str, Any]:
        usage = {"input_tokens": 100, "output_tokens": 1}
        message = {"role": "assistant", "model": MODEL, "content": [block], "usage": usage}
        return {"type": "assistant", "message": message, "session_id": SESSION}

    def _user(self, block: Object) -> dict[str, Any]:
        message = {"role": "user", "content": [block]}
        return {"type": "user", "message": message, "session_id": SESSION}

    def _result(self, words: str, *, is_error: bool) -> dict[str, Any]:
        return {
            "type": "result",
            "subtype": "success",
            "is_error": is_error,
            "result": words,
            "num_turns": 1,
            "session_id": SESSION,
            "total_cost_usd": 0.5,
            "usage": {"input_tokens": 100, "output_tokens": 10},
        }


class Qwen(Claude):
    name, command = "qwen", "qwen --yolo -o stream-json"

    def fails(self, message: str) -> list[Object]:
        words = f"[API Error: {message}]"
        usage = {"input_tokens": 0, "output_tokens": 0}
        message_ = {"content": [{"type": "text", "text": words}], "usage": usage}
        spoken = {"type": "assistant", "message": message_, "session_id": SESSION}
        return [spoken, self._result(words, is_error=False) | {"usage": usage}]


class Cursor(Claude):
    name, command = "cursor-agent", "cursor-agent -p -f --output-format stream-json"

    def uses(self, tool: str, about: Object) -> list[Object]:
        call = {f"{tool}ToolCall": {"args": about}}
        return [{"type": "tool_call", "subtype": "started", "tool_call": call}]

    def tool_prints(self, text: str) -> list[Object]:
        call = {"shellToolCall": {"args": {}, "result": {"success": {"stdout": text}}}}
        return [{"type": "tool_call", "subtype": "completed", "tool_call": call}]


class Codex:
    name, command = "codex", "codex exec --json -"

    def begins(self) -> list[Object]:
        return [{"type": "thread.started", "thread_id": SESSION}, {"type": "turn.started"}]

    def says(self, text: str) -> list[Object]:
        return [self._done({"type": "agent_message", "text": text})]

    def uses(self, tool: str, about: Object) -> list[Object]:
        words = " ".join([tool, *map(str, about.values())])
        item = {"type": "command_execution", "command": words, "status": "in_progress"}
        return [{"type": "item.started", "item": item}]

    def tool_prints(self, text: str) -> list[Object]:
        item = {"type": "command_execution", "command": "it", "exit_code": 1}
        return [self._done(item | {"aggregated_output": text})]

    def echoes_prompt(self, text: str) -> list[Object]:
        return [self._done({"type": "user_message", "text": text})]

    def ends(self, answer: str) -> list[Object]:  # noqa: ARG002 - the result event does not repeat the answer
        return [{"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 10}}]

    def fails(self, message: str) -> list[Object]:
        return [
            {"type": "error", "message": message},
            {"type": "turn.failed", "error": {"message": message}},
        ]

    def _done(self, item: Object) -> Object:
        return {"type": "item.completed", "item": item}


class Gemini:
    name, command = "gemini", "gemini --yolo -o stream-json"

    def begins(self) -> list[Object]:
        return [{"type": "init", "session_id": SESSION, "model": MODEL}]

    def says(self, text: str) -> list[Object]:
        middle = len(text) // 2
        return [self._piece(text[:middle]), self._piece(text[middle:])]

    def uses(self, tool: str, about: Object) -> list[Object]:
        return [{"type": "tool_use", "tool_name": tool, "tool_id": "t", "parameters": about}]

    def tool_prints(self, text: str) -> list[Object]:
        return [{"type": "tool_result", "tool_id": "t", "status": "error", "output": text}]

    def echoes_prompt(self, text: str) -> list[Object]:
        return [{"type": "message", "role": "user", "content": text}]

    def ends(self, answer: str) -> list[Object]:  # noqa: ARG002 - the result event does not repeat the answer
        return [{"type": "result", "status": "success", "stats": self._stats()}]

    def fails(self, message: str) -> list[Object]:
        error = {"type": "unknown", "message": f"[API Error: {message}]"}
        return [{"type": "result", "status": "error", "error": error, "stats": self._stats()}]

    def _piece(self, text: str) -> Object:
        return {"type": "message", "role": "assistant", "content": text, "delta": True}

    def _stats(self) -> Object:
        return {"total_tokens": 110, "input_tokens": 100, "output_tokens": 10, "tool_calls": 0}


class Opencode:
    name, command = "opencode", "opencode run --auto --format json"

    def begins(self) -> list[Object]:
        return [self._event("step_start", {"type": "step-start"})]

    def says(self, text: str) -> list[Object]:
        return [self._event("text", {"type": "text", "text": text})]

    def uses(self, tool: str, about: Object) -> list[Object]:
        state = {"status": "completed", "input": about, "output": "", "title": "it"}
        return [self._event("tool_use", {"type": "tool", "tool": tool, "state": state})]

    def tool_prints(self, text: str) -> list[Object]:
        state = {"status": "error", "input": {}, "output": text, "metadata": {"output": text}}
        part = {"type": "tool", "tool": "bash", "state": state | {"error": text}}
        return [self._event("tool_use", part), self._finish("tool-calls")]

    def echoes_prompt(self, text: str) -> list[Object]:
        return [self._event("user", {"type": "text", "text": text})]

    def ends(self, answer: str) -> list[Object]:  # noqa: ARG002 - the result event does not repeat the answer
        return [self._finish("stop")]

    def fails(self, message: str) -> list[Object]:
        error = {"name": "APIError", "data": {"message": message, "isRetryable": False}}
        return [{"type": "error", "sessionID": SESSION, "error": error}]

    def _finish(self, reason: str) -> Object:
        tokens = {"total": 110, "input": 100, "output": 10}
        part = {"type": "step-finish", "reason": reason, "tokens": tokens, "cost": 0.5}
        return self._event("step_finish", part)

    def _event(self, kind: str, part: Object) -> Object:
        return {"type": kind, "sessionID": SESSION, "part": part}


class Copilot:
    name, command = "copilot", "copilot --allow-all --output-format json"

    def begins(self) -> list[Object]:
        return [
            self._event("session.tools_updated", {"model": MODEL}),
            self._event("assistant.turn_start", {"turnId": "0"}),
            self._event("model.call_start", {"turnId": "0", "model": MODEL}),
        ]

    def says(self, text: str) -> list[Object]:
        middle = len(text) // 2
        return [
            self._event("assistant.message_delta", {"deltaContent": text[:middle]}),
            self._event("assistant.message_delta", {"deltaContent": text[middle:]}),
            self._event("assistant.message", {"model": MODEL, "content": text}),
        ]

    def uses(self, tool: str, about: Object) -> list[Object]:
        return [self._event("tool.execution_start", {"toolName": tool, "arguments": about})]

    def tool_prints(self, text: str) -> list[Object]:
        result = {"content": text, "detailedContent": text}
        return [
            self._event("tool.execution_partial_result", {"partialOutput": text}),
            self._event("tool.execution_complete", {"success": False, "result": result}),
        ]

    def echoes_prompt(self, text: str) -> list[Object]:
        return [self._event("user.message", {"content": text, "transformedContent": text})]

    def ends(self, answer: str) -> list[Object]:  # noqa: ARG002 - the result event does not repeat the answer
        return [
            self._event("assistant.turn_end", {"turnId": "0"}),
            {"type": "result", "sessionId": SESSION, "exitCode": 0, "usage": {}},
        ]

    def fails(self, message: str) -> list[Object]:
        return [
            self._event("session.error", {"errorType": "unknown", "message": message}),
            {"type": "result", "sessionId": SESSION, "exitCode": 1, "usage": {}},
        ]

    def _event(self, kind: str, data: Object) -> Object:
        return {"type": kind, "data": data}


VOICES: tuple[Voice, ...] = (
    Claude(),
    Codex(),
    Gemini(),
    Opencode(),
    Qwen(),
    Copilot(),
    Cursor(),
)
