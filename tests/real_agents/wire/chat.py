"""The chat completions API, used by opencode."""

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
    Refusal.AUTH: (401, "invalid_api_key", "Incorrect API key provided: dummy."),
    Refusal.CONTEXT: (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens.",
    ),
    Refusal.LIMIT: (429, "insufficient_quota", "You exceeded your current quota."),
    Refusal.OVERLOADED: (503, "server_is_overloaded", "The server is overloaded."),
    Refusal.RATE: (429, "rate_limit_exceeded", "Rate limit reached, please try again in 1s."),
}
_USAGE = {
    "prompt_tokens": INPUT,
    "completion_tokens": OUTPUT,
    "total_tokens": INPUT + OUTPUT,
    "prompt_tokens_details": {"cached_tokens": CACHED},
}


def _tool_has_run(body: Json) -> bool:
    return any(message.get("role") == "tool" for message in body.get("messages", []))


def _call(reply: Run) -> Json:
    arguments = json.dumps({"command": reply.command, "description": "Do it"})
    function = {"name": "bash", "arguments": arguments}
    return {"index": 0, "id": "call_1", "type": "function", "function": function}


def _deltas(reply: Say | Run) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    if isinstance(reply, Run):
        yield {"tool_calls": [_call(reply)]}
        return
    for piece in pieces(reply.text):
        yield {"content": piece}


def _chunk(asked: Asked, choices: list[Json], **more: Json) -> Json:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": asked.body.get("model", "scripted"),
        "choices": choices,
        **more,
    }


def _events(asked: Asked, reply: Say | Run) -> Iterator[Json]:
    for delta in _deltas(reply):
        yield _chunk(asked, [{"index": 0, "delta": delta, "finish_reason": None}])
    reason = "stop" if isinstance(reply, Say) else "tool_calls"
    yield _chunk(asked, [{"index": 0, "delta": {}, "finish_reason": reason}])
    yield _chunk(asked, [], usage=_USAGE)


def _speak(asked: Asked, reply: Say | Run) -> Answer:
    return stream(_events(asked, reply), named=False, end="data: [DONE]\n\n")


def _refuse(_: Asked, reply: Refuse) -> Answer:
    status, code, message = _ERRORS[reply.why]
    error = {"message": message, "type": code, "param": None, "code": code}
    # opencode retries eight times and doubles the delay, unless the server sends one.
    return document({"error": error}, status, retry_after_ms="50")


DIALECT = Dialect(("/chat/completions",), _tool_has_run, _speak, _refuse)
