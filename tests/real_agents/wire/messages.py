"""The messages API, used by claude."""

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
    pieces,
    stream,
)

_ERRORS = {
    Refusal.AUTH: (401, "authentication_error", "invalid x-api-key"),
    Refusal.CONTEXT: (
        400,
        "invalid_request_error",
        "prompt is too long: 250000 tokens > 200000 maximum",
    ),
    Refusal.LIMIT: (
        429,
        "rate_limit_error",
        "This request would exceed your account's rate limit.",
    ),
    Refusal.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    Refusal.RATE: (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 30,000 input tokens a minute.",
    ),
}
_USAGE = {
    "input_tokens": INPUT - CACHED,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": CACHED,
    "output_tokens": OUTPUT,
}


def _tool_has_run(body: Json) -> bool:
    contents = [message.get("content") for message in body.get("messages", [])]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(part.get("type") == "tool_result" for part in parts)


def _block(reply: Say | Run) -> Json:
    if isinstance(reply, Say):
        return {"type": "text", "text": reply.text}
    call = {"command": reply.command, "description": "Do it"}
    return {"type": "tool_use", "id": "toolu_01Scripted", "name": "Bash", "input": call}


def _whole(asked: Asked, reply: Say | Run) -> Json:
    return {
        "id": "msg_01Scripted",
        "type": "message",
        "role": "assistant",
        "model": asked.body.get("model", "scripted"),
        "content": [_block(reply)],
        "stop_reason": "end_turn" if isinstance(reply, Say) else "tool_use",
        "stop_sequence": None,
        "usage": _USAGE,
    }


def _events(whole: Json) -> Iterator[Json]:
    (block,) = whole["content"]
    started = {**whole, "content": [], "stop_reason": None, "usage": {**_USAGE, "output_tokens": 1}}
    yield {"type": "message_start", "message": started}
    empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    for delta in _deltas(block):
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": OUTPUT}}
    yield {"type": "message_stop"}


def _deltas(block: Json) -> list[Json]:
    if block["type"] == "text":
        return [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    return [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]


def _speak(asked: Asked, reply: Say | Run) -> Answer:
    whole = _whole(asked, reply)
    return stream(_events(whole)) if asked.streaming else document(whole)


def _refuse(asked: Asked, reply: Refuse) -> Answer:
    status, kind, message = _ERRORS[reply.why]
    content = {"type": "error", "error": {"type": kind, "message": message}}
    headers = {"request_id": "req_scripted"}
    if reply.why is Refusal.RATE:
        headers["retry_after"] = "1"
    if reply.why is Refusal.LIMIT:
        headers |= _limit(asked.resets_at)
    return document(content, status, **headers)


def _limit(resets_at: int) -> dict[str, str]:
    """Return the headers for a subscription account, which claude trusts more than the text."""
    name = "anthropic_ratelimit_unified_"
    overall = {"status": "rejected", "reset": str(resets_at), "representative_claim": "five_hour"}
    five_hours = {"5h_status": "rejected", "5h_reset": str(resets_at), "5h_utilization": "1.0"}
    return {name + key: value for key, value in (overall | five_hours).items()} | {
        "x_should_retry": "false"
    }


DIALECT = Dialect(("/v1/messages",), _tool_has_run, _speak, _refuse)
