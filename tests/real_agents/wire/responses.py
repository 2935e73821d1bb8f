"""The responses API, used by codex."""

import json
from collections.abc import Iterator

from real_agents.scenarios import Refusal, Refuse, Run, Say
from real_agents.wire.dialect import (
    CACHED,
    INPUT,
    OUTPUT,
    Answer,
    Asked,
    Dialect,
    Json,
    document,
    offered,
    pieces,
    stream,
)

_ERRORS = {
    Refusal.AUTH: (401, "invalid_api_key", "Incorrect API key provided: dummy."),
    Refusal.CONTEXT: (
        400,
        "context_length_exceeded",
        "Your input exceeds the context window of this model.",
    ),
    Refusal.LIMIT: (429, "usage_limit_reached", "The usage limit has been reached"),
    Refusal.OVERLOADED: (503, "server_is_overloaded", "Our servers are currently overloaded."),
    Refusal.RATE: (429, "rate_limit_exceeded", "Rate limit reached, please try again in 1s."),
}
_USAGE = {
    "input_tokens": INPUT,
    "input_tokens_details": {"cached_tokens": CACHED},
    "output_tokens": OUTPUT,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": INPUT + OUTPUT,
}


def _tool_has_run(body: Json) -> bool:
    return any(item.get("type") == "function_call_output" for item in body.get("input", []))


def _item(asked: Asked, reply: Say | Run) -> Json:
    if isinstance(reply, Say):
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    name = offered(asked.body.get("tools", []), "exec_command", "shell_command", "shell")
    call: Json = {"command": ["bash", "-lc", reply.command]}
    if name == "exec_command":
        call = {"cmd": reply.command, "yield_time_ms": 30_000}
    if name == "shell_command":
        call = {"command": reply.command}
    return {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": name or "shell",
        "arguments": json.dumps(call),
    }


def _events(item: Json) -> Iterator[Json]:
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    if item["type"] == "message":
        started = {**item, "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": started}
        for piece in pieces(item["content"][0]["text"]):
            place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
            yield {"type": "response.output_text.delta", **place, "delta": piece}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "usage": _USAGE}}


def _speak(asked: Asked, reply: Say | Run) -> Answer:
    return stream(_events(_item(asked, reply)))


def _refuse(asked: Asked, reply: Refuse) -> Answer:
    status, code, message = _ERRORS[reply.why]
    error: Json = {"type": code, "code": code, "message": message, "param": None}
    if reply.why is Refusal.LIMIT:
        error |= {"plan_type": "plus", "resets_at": asked.resets_at}
    return document({"error": error}, status)


DIALECT = Dialect(("/responses",), _tool_has_run, _speak, _refuse)
