"""Tell a command from prose, in the words after a label. No command is better than a wrong one."""

import re

_LONGEST = 4000  # characters; a longer one is an attack or an accident
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")

_CODE = re.compile(r"(?P<ticks>`+)(?P<code>[^`]+)(?P=ticks)(?!`)")
_ITEM_WITH_CODE = re.compile(
    rf"[ \t]*+(?:(?:[-*+]|\d{{1,9}}[.)])[ \t]++)?{_CODE.pattern}(?P<rest>.*)"
)
_REMARK_AFTER_CODE = re.compile(r"\s*[-–—:(#.].*")  # noqa: RUF001  (dashes as people write them)
_LEAD = re.compile(r"(?:(?:please|just|always)\s+)?(?:run|use|execute)\s+", re.IGNORECASE)
_BOLD = re.compile(r"(\*\*|__)(.+)\1")
_REMARK = re.compile(r"\s[—–]\s.*$|(?<![&|;(])\s\([^()]*\)\W*$")  # noqa: RUF001  (likewise)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")

_PROGRAM = re.compile(r"[a-z_./~$@('\"]|[A-Z_][A-Z0-9_]*=|R(?:script)?\s")
_OPENERS = re.compile(  # no command begins with one of them
    r"(?:no|none|all|any|some|most|new|unit|integration|write|add|ensure|never|always|lives?"
    r"|located|covered|todo|run|use)(?!\S)"
)
_PROSE = re.compile(  # and none has one of them outside of quotes
    r"(?<!\S)(?:an?|the|and|or|not|is|are|be|was|were|has|have|must|should|will|can|may|we|you|they"
    r"|its?|this|that|these|those|there|each|every|both|in|on|of|to|by|as|for|from|with|without"
    r"|when|if|before|after|only|also|see|via|using|please|sure|certain)(?!\S)"
)
_PLACEHOLDER = re.compile(
    r"(?:none|n/?a|tbd|todo|fixme|xxx|unknown|command|(?:not?|your|insert|fill|put|replace)\b.*"
    r"|-+|\.{2,}|…|\?+|\([^&|;()]*\)|\[\S[^\[\]]*\]|<[^<>]*>|\{\{?[^{}]*\}\}?)\W*",
    re.IGNORECASE,
)
_FILE = re.compile(r"[\w-][\w./-]*(?:/|\.(?:md|txt|py|js|ts|json|toml|ya?ml|cfg|ini))")


def command_in(value: str) -> str | None:
    """The command in what stands after a label: inline code, or plain words that can be one."""
    lead = _LEAD.match(value)
    value = value[lead.end() :] if lead else value
    code = _CODE.match(value)
    if code is not None:
        return as_command(code["code"])
    return None if "`" in value else _plain_command(value)


def code_alone(text: str) -> str | None:
    """The command in a line that is inline code, or begins with it and goes on with a remark."""
    found = _ITEM_WITH_CODE.fullmatch(text)
    if found is None:
        return None
    # A single word with a remark may be anything: a folder, a fixture, a tool.
    is_remarked = _REMARK_AFTER_CODE.fullmatch(found["rest"]) and " " in found["code"].strip()
    return as_command(found["code"]) if not found["rest"].strip() or is_remarked else None


def as_command(text: str) -> str | None:
    """The text as a command; None if it is a placeholder, a file's name or no text for a shell."""
    text = text.strip()
    if not text or len(text) > _LONGEST or _CONTROL.search(text):
        return None
    return None if _PLACEHOLDER.fullmatch(text) or _FILE.fullmatch(text) else text


def _plain_command(value: str) -> str | None:
    if len(value) > _LONGEST:
        return None
    bold = _BOLD.fullmatch(value)
    value = _REMARK.sub("", bold[2] if bold else value).strip()
    if re.search(r"\w\.$", value):
        value = value[:-1]
    words = _QUOTED.sub("", value).lower()
    if not _PROGRAM.match(value) or ", " in value or re.search(r"\w[!?:;,]$", value):
        return None
    return None if _OPENERS.match(words) or _PROSE.search(words) else as_command(value)
