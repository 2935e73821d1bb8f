"""The generateContent and streamGenerateContent API, used by gemini."""

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
    Refusal.AUTH: (401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    Refusal.CONTEXT: (
        400,
        "INVALID_ARGUMENT",
        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    Refusal.LIMIT: (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota."),
    Refusal.OVERLOADED: (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    Refusal.RATE: (429, "RESOURCE_EXHAUSTED", "Too many requests. Please retry in 1s."),
}
_USAGE = {
    "promptTokenCount": INPUT,
    "cachedContentTokenCount": CACHED,
    "candidatesTokenCount": OUTPUT,
    "totalTokenCount": INPUT + OUTPUT,
}
_TYPES = "type.googleapis.com/google.rpc."


def _tool_has_run(body: Json) -> bool:
    parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    return any("functionResponse" in part for part in parts)


def _parts(reply: Say | Run) -> list[Json]:
    if isinstance(reply, Say):
        return [{"text": piece} for piece in pieces(reply.text)]
    call = {"command": reply.command, "description": "Do it"}
    return [{"functionCall": {"name": "run_shell_command", "args": call}}]


def _chunk(parts: list[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    return {"candidates": [candidate], "usageMetadata": _USAGE, "modelVersion": "gemini-2.5-pro"}


def _speak(asked: Asked, reply: Say | Run) -> Answer:
    parts = _parts(reply)
    if not asked.streaming:
        return document(_chunk(parts, last=True))
    last = len(parts) - 1
    chunks = [_chunk([part], last=number == last) for number, part in enumerate(parts)]
    return stream(chunks, named=False)


def _refuse(_: Asked, reply: Refuse) -> Answer:
    code, status, message = _ERRORS[reply.why]
    details = _DETAILS.get(reply.why, [])
    error = {"code": code, "message": message, "status": status, "details": details}
    return document({"error": error}, code)


def _quota(period: str) -> Json:
    metric = f"GenerateRequestsPer{period}PerProjectPerModel"
    return {"@type": f"{_TYPES}QuotaFailure", "violations": [{"quotaId": metric}]}


_DETAILS = {
    Refusal.LIMIT: [_quota("Day")],
    Refusal.RATE: [_quota("Minute"), {"@type": f"{_TYPES}RetryInfo", "retryDelay": "1s"}],
}

DIALECT = Dialect((":streamGenerateContent", ":generateContent"), _tool_has_run, _speak, _refuse)
