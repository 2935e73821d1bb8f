"""What kind of failure a CLI speaks of. Only ever asked about the CLI's own words."""

import re

from rooda.agents.report import FaultKind
from rooda.text.controls import clean

_LONGEST = 300
LONGEST_MESSAGE = 4000  # characters of a message: nobody says it later than that

# The HTTP status as the CLIs write it into their messages.
_STATUS = (
    r"(?:\bstatus(?:[ _]?code)?|\bcode|\bHTTP|\bAPI Error|\berror|\brejected)"
    r"[\"']?\s*[:=(]?\s*\(?([45]\d\d)\b"
)

_BY_STATUS = {
    401: FaultKind.AUTH,
    403: FaultKind.AUTH,
    402: FaultKind.AUTH,  # somebody has to pay
    404: FaultKind.USAGE,
    408: FaultKind.OFFLINE,
    413: FaultKind.CONTEXT,
    429: FaultKind.LIMIT,
}
_SERVER = 500


def _words(*patterns: str) -> str:
    return "|".join(patterns)


def _speaks_of(pattern: str, words: str) -> bool:
    # Compiled when it is first needed: most runs never see a failure.
    return re.search(pattern, words, re.IGNORECASE) is not None


# What a status of 400 may stand for, and what is known whatever the status.
_CONTEXT = _words(
    r"(?:prompt|input|context|request) (?:is )?too (?:long|large)",
    r"context[ _](?:window|length)",
    r"maximum context",
    r"exceeds? the maximum (?:length|number of tokens|allowed)",
    r"ContextOverflow",
    r"too many (?:input )?tokens",
)
_LIMIT = _words(
    r"\b(?:rate|usage|session|weekly|daily|hourly|5-hour|spending|request|message)[ _-]limit",
    r"hit your (?:\w+[ -])?(?:\w+ )?limit",
    r"limit (?:has been )?(?:reached|exceeded|will reset)",
    r"reached your .{0,40}limit",
    r"too many requests",
    r"\bquota\b",
    r"RESOURCE_EXHAUSTED",
    r"exceeded your .{0,60}(?:usage|limit|allowance)",
    r"\bout of (?:extra )?usage\b",
    r"premium requests? .{0,40}(?:exceeded|used up|exhausted)",
)
_CREDIT = _words(r"credit balance is too low", r"insufficient (?:credit|funds|balance)")
_OVERLOADED = _words(
    r"\boverloaded",
    r"service (?:is )?(?:temporarily )?unavailable",
    r"\bUNAVAILABLE\b",
    r"(?:internal )?server[ _]error",
    r"bad gateway",
    r"gateway time-?out",
    r"(?:at|over) capacity",
    r"high demand",
    r"server had an error",
)
_AUTH = _words(
    r"(?:invalid|incorrect|missing|no) (?:\w+ )?api[ _-]?key",
    r"api[ _-]?key (?:is )?(?:not valid|invalid|missing|required|not found|expired|must be set)",
    r"authenticat",
    r"unauthori[sz]ed",
    r"not logged in",
    r"(?:please )?(?:run|use)\W{1,3}(?:\S+ )?(?:/?login|auth login)",
    r"log(?:ged)? ?in (?:again|expired|required)",
    r"(?:access|oauth|bearer|refresh|session)[ _]?token .{0,40}(?:expired|revoked|invalid)",
    r"permission_error",
    r"AuthError",
    r"disabled organization",
    r"missing environment variable",
    r"with your ChatGPT plan",
    r"must (?:specify|set) the \w+_API_KEY",
    r"auth method",
)
_USAGE = _words(
    r"(?:unknown|unrecogni[sz]ed|unexpected|invalid) (?:option|argument|flag|command|model)",
    r"unknown arguments?:",
    r"model\W.{0,80}(?:not found|does not exist|not exist|not supported|unsupported|not available)",
    r"(?:not found|unknown|invalid|no such):? (?:the )?model",
    r"ModelNotFound",
    r"issue with the selected model",
    r"cannot be used with root",
    r"required option",
    r"the following (?:required )?arguments",
)
_OFFLINE = _words(
    r"\bE(?:NOTFOUND|CONNREFUSED|CONNRESET|TIMEDOUT|AI_AGAIN|HOSTUNREACH|NETUNREACH|PIPE)\b",
    r"fetch failed",
    r"(?:unable|failed|cannot|could not|can't) (?:to )?connect",
    r"connection (?:error|refused|reset|closed|timed out|failed|lost)",
    r"ConnectionRefused",
    r"network (?:error|is unreachable|request failed|connection)",
    r"getaddrinfo",
    r"socket hang ?up",
    r"error sending request",
    r"stream (?:disconnected|closed|ended) before",
    r"timed? ?out",
    r"name resolution",
    r"\bDNS\b",
    r"certificate",
)
_EMPTY = _words(r"empty (?:response|answer|reply)", r"no response from the model")
_IN_ORDER = (
    (FaultKind.LIMIT, _LIMIT),
    (FaultKind.OVERLOADED, _OVERLOADED),
    (FaultKind.USAGE, _USAGE),
    (FaultKind.AUTH, _AUTH),
    (FaultKind.OFFLINE, _OFFLINE),
    (FaultKind.EMPTY, _EMPTY),
)


def classify(message: str, status: int | None = None) -> FaultKind | None:
    """The kind of failure that a CLI's own error message speaks of, if it is one of ours."""
    words = message[:LONGEST_MESSAGE]
    if status is None and (found := re.search(_STATUS, words, re.IGNORECASE)):
        status = int(found[1])
    if _speaks_of(_CREDIT, words):
        return FaultKind.AUTH  # waiting does not help, somebody has to pay
    if status in (None, 400, 413, 422) and _speaks_of(_CONTEXT, words):
        return FaultKind.CONTEXT
    if status is not None and status >= _SERVER:
        return FaultKind.OVERLOADED
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return next((kind for kind, pattern in _IN_ORDER if _speaks_of(pattern, words)), None)


def brief(words: str) -> str:
    """A message as evidence: one line, without control codes, not too long."""
    line = " ".join(clean(words[:LONGEST_MESSAGE]).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
