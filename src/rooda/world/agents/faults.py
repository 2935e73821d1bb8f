"""Finds the error message of a CLI in the end of its output, and classifies it.

Only the CLI's own messages are classified, never the assistant's answer or the output of a tool:
both may quote error messages.
"""

import re
from datetime import UTC, datetime

from rooda.base.controls import clean
from rooda.world.agents.agent_report import Fault
from rooda.world.agents.failure_kinds import FailureKind

_LONGEST = 300
LONGEST_MESSAGE = 4000  # characters; the reason is near the beginning of a message

# The HTTP status in the various forms in which CLIs print it.
_STATUS = (
    r"(?:\bstatus(?:[ _]?code)?|\bcode|\bHTTP(?:/\d(?:\.\d)?)?|\bAPI Error|\berror|\brejected"
    r"|\b(?:returned|received|responded with|failed with|failed:))"
    r"[\"']?\s*[:=(]?\s*\(?([45]\d\d)\b"
)

_BY_STATUS = {
    401: FailureKind.AUTH,
    403: FailureKind.AUTH,
    402: FailureKind.AUTH,  # payment required: the user has to act
    404: FailureKind.USAGE,
    408: FailureKind.OFFLINE,
    413: FailureKind.CONTEXT,
}
_TOO_MANY, _SERVER = 429, 500
_ANY_TIME = datetime(2001, 2, 3, tzinfo=UTC)
_SHORT = 600.0  # seconds; a limit that ends sooner limits requests, not usage


def _any_of(*patterns: str) -> str:
    return "|".join(patterns)


def _mentions(pattern: str, words: str) -> bool:
    # Compiled on first use, because most runs see no failure.
    return re.search(pattern, words, re.IGNORECASE) is not None


# A status of 400 may mean a context that is too long.
_CONTEXT = _any_of(
    r"(?:prompt|input|context|request) (?:is )?too (?:long|large)",
    r"context[ _](?:window|length)",
    r"maximum context",
    r"exceeds? the maximum (?:length|number of tokens|allowed)",
    r"ContextOverflow",
    r"too many (?:input )?tokens",
)
_THROTTLED = r"\bthrottl"
_HIT = r"hit your (?:[\w'\u2019]+[ -]){0,3}(?:limit|budget)\b"
_LIMIT = _any_of(
    r"\b(?:rate|usage|session|weekly|daily|hourly|5-hour|spending|request|message)[ _-]limit",
    _HIT,
    r"limit (?:has been )?(?:reached|exceeded|will reset)",
    r"reached your .{0,40}limit",
    r"too many requests",
    r"\bquota\b",
    r"RESOURCE_EXHAUSTED",
    r"exceeded your .{0,60}(?:usage|limit|allowance)",
    r"\bout of (?:extra )?usage\b",
    r"premium requests? .{0,40}(?:exceeded|used up|exhausted)",
    _THROTTLED,
    r"(?:tokens|requests) (?:per|a) (?:min|sec)",
    r"temporarily limiting",
)
# These patterns distinguish a usage limit (hours, days) from a request limit (seconds, minutes).
# They are checked in this order.
_NOT_USAGE = r"not your usage"
_OF_USAGE = _any_of(
    r"\b(?:usage|session|weekly|daily|hourly|monthly|spending|message|plan)[ _-](?:\w+ )?"
    r"(?:limit|quota|cap\b|allowance)",
    r"\b(?:\d+|five)[ -]hours? limit",
    _HIT,
    r"\b(?:per|a|each|every)[ -]?(?:hour|day|week|month)\b|PerDay|\b[RT]PD\b",
    r"(?<!connection )\breset(?:s|ting)?(?:At|Time)?\b",
    r"exceeded your .{0,60}(?:usage|allowance)",
    r"\bout of (?:extra )?usage\b",
    r"premium requests?",
)
_OF_REQUESTS = r"\b(?:per|a|each|every)[ -]?(?:min|sec)|PerMinute|\b[RT]PM\b"
_OF_QUOTA = r"\bquota\b(?! increase)|insufficient_quota"
_OF_RATE = _any_of(
    r"too many (?:requests|tokens|concurrent)",
    r"rate[ _-]?limit(?:ed|ing)\b",
    r"rate[ _-]?limit[ _-](?:reached|exceeded|error|hit)",
    _THROTTLED,
    r"\bconcurren",
    r"slow(?:ing)? down",
)
_CREDIT = _any_of(
    r"credit balance is too low",
    r"insufficient (?:credit|funds|balance)",
    r"out of credits\b",
)
_OVERLOADED = _any_of(
    r"\boverload",
    r"\bUNAVAILABLE\b",
    r"ServiceUnavailable",
    r"temporarily (?:\w+ )?(?:not available|down|offline|disabled)",
    r"(?:not|currently) (?:currently )?available (?:right now|at the moment)",
    r"(?:internal )?server[ _]error",
    r"Internal(?:Server|Failure|ServiceError)",
    r"\b(?:an )?internal error\b",
    r'"status": ?"INTERNAL"|\[internal\]',
    r"\bapi_error\b",
    r"bad[ _]?gateway",
    r"gateway[ _]?time-?out",
    r"deadline[ _]exceeded",
    r"upstream (?:connect|error|request|server|prematurely|timed|is )|no healthy upstream",
    r"(?:at|over|no|out of|insufficient|limited|exhausted your) capacity",
    r"capacity[ _](?:issue|constraint|limit|exhausted)",
    r"(?:high|heavy|increased|unusual(?:ly)?(?: high)?|peak) (?:demand|load|traffic|volume)",
    r"(?:server|service|model|api|system)s? (?:is|are) (?:\w+ )?(?:too )?(?:busy|down)\b",
    r"server had an error",
    r"\b(?:service )?outage\b|service (?:disruption|interruption)",
    r"(?:under|for|undergoing|scheduled) maintenance",
    r"\btransient (?:\w+ )?(?:error|failure)",
    r"is having trouble responding",
)
_AUTH = _any_of(
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
    r"disabled organization|organization has been disabled|account is on hold",
    r"token could not be refreshed",
    r"missing environment variable",
    r"with your ChatGPT plan",
    r"must (?:specify|set) the \w+_API_KEY",
    r"auth method",
)
_USAGE = _any_of(
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
# Errors of the network itself. They take precedence over the words about the failed operation.
_NETWORK = _any_of(
    r"\bE(?:NOTFOUND|CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|AI_\w+|NETDOWN)\b",
    r"\bE(?:HOST|NET)(?:UNREACH|DOWN)\b",
    r"\bERR_(?:NETWORK|INTERNET|NAME_NOT|CONNECTION|SOCKET|TIMED_OUT|PROXY)\w*|\bUND_ERR_\w+",
    r"fetch failed",
    r"getaddrinfo",
    r"name resolution|name or service not known|nodename nor servname",
    r"(?:could not|couldn't|cannot|can't|unable to|failed to) (?:resolve|look ?up) "
    r"(?:the )?(?:host|proxy|address|domain|dns|ip|url)",
    r"\bDNS (?:error|lookup|resolution|failure|server)",
    r"(?:network|host|server|internet)(?: is|:)? (?:unreachable|down)",
    r"no route to host",
    r"connection refused|ConnectionRefused",
)
_OFFLINE = _any_of(
    r"\bEPIPE\b",
    r"(?:unable|failed|cannot|could not|couldn't|can't) (?:to )?(?:connect|reach)\b",
    r"connection ?(?:error|reset|closed|timed out|time-?out|failed|lost|aborted|dropped|stalled"
    r"|interrupted|terminated|(?:was |is )?(?:unexpectedly |forcibly )?(?:closed|reset|lost))",
    r"clos(?:ed|es) (?:the )?(?:network )?connection",
    r"\bConnect(?:ion)?(?:Error|Timeout|Reset|Closed)|\bReadTimeout|RemoteProtocolError",
    r"network (?:error|request failed|connection|failure|problem|issue|changed|unavailable)",
    r"(?:no|check your|lost) (?:internet|network)",
    r"socket (?:hang ?up|error|closed|connection|disconnected|time-?out)|other side closed",
    r"error sending request|error decoding response body|dispatch failure|transport error",
    r"stream (?:disconnected|error|reset|interrupted|(?:was )?(?:closed|ended) (?:before|unexp))",
    r"premature(?:ly)? clos|incomplete chunked|broken pipe|Error: terminated",
    r"\b(?:TLS|SSL)\b.{0,40}(?:handshake|error|fail|clos)|handshake (?:fail|error|time)",
    r"timed? ?out",
    r"\bDNS\b",
    r"proxy (?:error|connection)|tunneling socket",
    r"certificate",
)
_EMPTY = _any_of(r"empty (?:response|answer|reply)", r"no response from the model")
_IN_ORDER = (
    (FailureKind.OFFLINE, _NETWORK),
    (FailureKind.LIMIT, _LIMIT),
    (FailureKind.OVERLOADED, _OVERLOADED),
    (FailureKind.USAGE, _USAGE),
    (FailureKind.AUTH, _AUTH),
    (FailureKind.OFFLINE, _OFFLINE),
    (FailureKind.EMPTY, _EMPTY),
)


def classify(
    message: str, status: int | None = None, left: float | None = None
) -> FailureKind | None:
    """Return the kind of failure that a CLI's error message reports, or None if unknown.

    `left` is the remaining time of a limit in seconds, if the CLI gives it outside the message.
    """
    words = message[:LONGEST_MESSAGE]
    if status is None and (found := re.search(_STATUS, words, re.IGNORECASE)):
        status = int(found[1])
    if _mentions(_CREDIT, words):
        return FailureKind.AUTH  # waiting does not help: the user has to pay
    is_busy = _mentions(_THROTTLED, words)  # Bedrock reports short throttling as "too many tokens"
    if status in (None, 400, 413, 422) and not is_busy and _mentions(_CONTEXT, words):
        return FailureKind.CONTEXT
    if status is not None and status >= _SERVER:
        return FailureKind.OVERLOADED
    if status == _TOO_MANY:
        return _limited(words, left)
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    kind = next((kind for kind, pattern in _IN_ORDER if _mentions(pattern, words)), None)
    return _limited(words, left) if kind is FailureKind.LIMIT else kind


def _limited(words: str, left: float | None) -> FailureKind:
    """Return LIMIT for a usage limit, OVERLOADED for a request limit.

    In doubt, return LIMIT, because the run waits longer for the end of a usage limit.
    """
    if _mentions(_NOT_USAGE, words):
        return FailureKind.OVERLOADED
    if _mentions(_OF_USAGE, words):
        return FailureKind.LIMIT
    if left is None:
        from rooda.world.agents.resets import requested_delay, reset_time  # noqa: PLC0415 - rarely needed

        left = requested_delay(words)
        if left is None and reset_time(words, _ANY_TIME) is not None:
            return FailureKind.LIMIT  # the limit ends at a time of day
    if left is not None and left > _SHORT:
        return FailureKind.LIMIT
    if _mentions(_OF_REQUESTS, words):
        return FailureKind.OVERLOADED
    if _mentions(_OF_QUOTA, words):
        return FailureKind.LIMIT
    is_short = left is not None or _mentions(_OF_RATE, words)
    return FailureKind.OVERLOADED if is_short else FailureKind.LIMIT


def brief(words: str) -> str:
    """Return a message as evidence: one short line without control codes."""
    line = " ".join(clean(words[:LONGEST_MESSAGE]).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


# -- errors at the end of the output ---------------------------------------------------------

# The start of an error message in common programs.
_BEGINNING = re.compile(
    r"\s*(?:\[?(?:fatal |api |critical |unexpected )?(?:error|failed|failure)\b|✗|✘|⚠|×"
    r"|[\w.$]{1,60}(?:error|exception)\b(?=:)"
    r"|unknown (?:argument|option|command|flag)s?\b)",
    re.IGNORECASE,
)


# How the messages begin that the known CLIs print in place of an answer. If a CLI exits with 0
# after an error, only these words reveal the error, so no answer may begin with them.
_KNOWN_WORDS = _any_of(
    r"unexpected status [45]\d\d\b",
    r"exceeded retry limit, last status",
    r"[45]\d\d (?:Incorrect|Invalid|Unauthorized|Forbidden|Too Many|Overloaded|You |\{)",
    # AUTH
    r"(?:Invalid|Incorrect) API key(?: provided\b| *[·∙.:]|$)",
    r"API key not valid\b",
    r"(?:You are not|Not) logged in(?: *[·∙.,:]|$)",
    r"(?:Login|Session) expired *[·∙.]",
    r"Please run /login\b",
    r"Please set an Auth method\b",
    r"Authentication required *[·∙.:]",
    r"Authentication failed with provider\b",
    r"Failed to authenticate *[·∙.:]",
    r"No authentication information found\b",
    r"OAuth token (?:has |is )?(?:expired|revoked|invalid)\b",
    r"Your (?:access token|authentication session) could not be refreshed\b",
    r"(?:Your|This) organization has (?:been )?disabled\b",
    r"Your (?:organization|account) does not have access to Claude\b",
    r"Your account is on hold\b",
    r"(?:You['\u2019]re|Your (?:org|organization|workspace|team) is) out of credits\b",
    r"Credit balance is too low\b",
    # LIMIT
    r"You['\u2019]ve (?:hit|reached) your\b.{0,40}\b(?:limit|budget)\b",
    r"(?:You['\u2019]re|Your (?:org|organization|workspace|team) is) out of (?:extra )?usage\b",
    r"You have exhausted your\b",
    r"You (?:have )?exceeded your current quota\b",
    r"Claude (?:AI )?usage limit reached\b",
    r"(?:(?:Opus|Sonnet) )?(?:Usage|Session|Daily|Weekly|Monthly|5-hour|Opus|Sonnet)"
    r"(?: usage)? limit reached"
    r"(?! · wrapping)(?: *[·∙|.]|$)",
    r"This request would exceed your\b",
    r"Quota exceeded *[.:]",
    # OVERLOADED and OFFLINE
    r"Overloaded\b *(?:[.:·]|$)",
    r"(?:Claude|Codex|Gemini)\b.{0,30} is currently (?:unavailable|experiencing)\b",
    r"(?:Kiro|Amazon Q) is having trouble responding\b",
    r"Failed to get response from the AI model\b",
    r"stream disconnected before completion\b",
    r"Policy-restricted capacity is unavailable\b",
    r"Unable to connect to (?:(?:the )?(?:\w+ )?API|Anthropic services)\b",
    r"(?:Connection error|Request timed out|fetch failed)\.?$",
    r"Please check your (?:internet|network) connection\b",
)
_IN_PLACE = rf"\[?API Error(?:: | \()|(?:Error(?: when talking to \w+ API)?: ?)?(?:{_KNOWN_WORDS})"
_IN_PLACE_KINDS = (
    FailureKind.AUTH,
    FailureKind.LIMIT,
    FailureKind.OVERLOADED,
    FailureKind.OFFLINE,
)
_LONGEST_ERROR, _MOST_LINES = 2000, 5  # a longer text is an answer


def known_error(words: str) -> Fault | None:
    """Return the login failure, limit or outage in the last line, if a known CLI words it so."""
    line = last_plain_line(words)
    fault = fault_in(line) if re.match(_IN_PLACE, line, re.IGNORECASE) else None
    return fault if fault is not None and fault.kind in _IN_PLACE_KINDS else None


def error_as_answer(answer: str) -> Fault | None:
    """Return the same for text that may be the assistant's answer, which may quote such an error.

    In a long text, and after a line that ends with a colon, the error is a quotation.
    """
    stripped = (line.strip() for line in answer.splitlines())
    lines = [line for line in stripped if line and not line.startswith("<")]
    is_long = len(lines) > _MOST_LINES or sum(map(len, lines)) > _LONGEST_ERROR
    is_quoted = len(lines) > 1 and lines[-2].endswith(":")
    return None if is_long or is_quoted else known_error(answer)


def last_line(words: str) -> str:
    """Return the last line that is not empty."""
    return next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "")


def last_plain_line(words: str) -> str:
    """Return the last line that is neither empty nor markup.

    Some CLIs print the HTML error page of a proxy after an error message.
    """
    lines = (line.strip() for line in reversed(words.splitlines()))
    return next((line for line in lines if line and not line.startswith("<")), "")


def last_lines(words: str, most: int) -> str:
    """Return the last `most` non-empty lines, joined."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return " ".join(lines[-most:])


def complaint(stderr: str) -> str:
    """Return the last line of stderr that starts like an error message, else the last line."""
    found = (line.strip() for line in reversed(stderr.splitlines()) if is_complaint(line))
    return next(found, last_line(stderr))


def is_complaint(line: str) -> bool:
    """Return whether a line starts like an error message."""
    return _BEGINNING.match(line) is not None


def fault_in(
    words: str, status: int | None = None, retry_after: float | None = None
) -> Fault | None:
    """Return the failure that a message of a CLI reports, or None if its kind is unknown."""
    kind = classify(words, status, retry_after)
    if kind is None:
        return None
    return Fault(kind, brief(words), words=words[:LONGEST_MESSAGE], retry_after=retry_after)
