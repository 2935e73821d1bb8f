"""Finds the test command in AGENTS.md.

An assignment (`TEST_COMMAND="pytest -q"`) wins over every label, because its author wrote it for a
program. Otherwise the first label in the document that has a command wins: `Test:`, `**Tests**:`,
`Test command:`, or a heading of that name, each with inline code, plain words or code below.
No command is better than a wrong one.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

from rooda.base.markdown import LineKind, MarkdownLine, label_of, lines_of, plain
from rooda.front.ralph.config_file import read_value

_LINES_BELOW = 50  # lines below a label that may contain the command
_END = 20  # characters at the end of a line that may contain a colon

_ASSIGNMENT = re.compile(
    r"[ \t]*+(?:[-*+][ \t]++)?(?P<tick>`?)(?:\$[ \t]++)?(?:export[ \t]++)?"
    r"TEST_COMMAND[ \t]*+[?:]?=(?P<value>.*)(?P=tick)[ \t]*"
)
_TESTS = r"(?:unit )?tests?(?: suite)?(?: commands?)?"
_LABEL = re.compile(rf"(?:run(?:ning)? (?:the |all )?)?{_TESTS}|testing|test_command")
_LABEL_KINDS = (LineKind.TEXT, LineKind.CODE, LineKind.HEADING)
_DECORATION = re.compile(r"^[\W\d_]+|[\W_]+$")  # around a heading: numbers, signs
_INTRODUCTION = re.compile(r":[*_]*\s*$")

_LONGEST = 4000  # characters of a command; longer text is an attack or an accident
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")

_CODE = re.compile(r"(?P<ticks>`+)(?P<code>[^`]+)(?P=ticks)(?!`)")
_ITEM_WITH_CODE = re.compile(
    rf"[ \t]*+(?:(?:[-*+]|\d{{1,9}}[.)])[ \t]++)?{_CODE.pattern}(?P<rest>.*)"
)
_REMARK_AFTER_CODE = re.compile(r"\s*[-\u2013\u2014:(#.].*")  # people write all three dashes
_LEAD = re.compile(r"(?:(?:please|just|always)\s+)?(?:run|use|execute)\s+", re.IGNORECASE)
_BOLD = re.compile(r"(\*\*|__)(.+)\1")
_REMARK = re.compile(r"\s[\u2014\u2013]\s.*$|(?<![&|;(])\s\([^()]*\)\W*$")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")

_PROGRAM = re.compile(r"[a-z_./~$@('\"]|[A-Z_][A-Z0-9_]*=|R(?:script)?\s")
_OPENERS = re.compile(  # no command begins with one of these words
    r"(?:no|none|all|any|some|most|new|unit|integration|write|add|ensure|never|always|lives?"
    r"|located|covered|todo|run|use)(?!\S)"
)
_PROSE = re.compile(  # no command has one of these words outside of quotes
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

# The languages of fences whose lines are commands.
_TEXTS = frozenset({"", "text", "txt", "plain", "plaintext"})
_SHELLS = _TEXTS | {
    *("sh", "bash", "shell", "zsh", "console", "terminal"),
    *("shell-session", "shellsession", "sh-session", "bash-session"),
}

_PROMPT = re.compile(r"[$%][ \t]+")
_GOES_ON = re.compile(r"(?:\\|&&|\|\|?)$")
_HALF = re.compile(r"(?:\b(?:do|then|else)|[{(\\&|])$|<<")  # the command continues in later lines
_PREPARES = re.compile(
    r"(?:cd|pushd|export|set|unset|source|\.)[ \t][^;&|]*"
    r"|[A-Za-z_]\w*=(?:[^;&|\s]*|\"[^\"]*\"|'[^']*')"
)
_SOURCE = re.compile(r"source(?=[ \t])")


def find_test_command(text: str) -> str | None:
    """Return the command that runs the tests; "" if an empty one is assigned; None without one."""
    lines = list(lines_of(text))
    for found in (map(_assigned, lines), _labelled(lines)):
        for command in found:
            if command is not None:
                return command
    return None


def _assigned(line: MarkdownLine) -> str | None:
    if "TEST_COMMAND" not in line.text or line.kind not in (LineKind.CODE, LineKind.TEXT):
        return None
    match = _ASSIGNMENT.fullmatch(line.text)
    value = read_value(match["value"].strip()) if match else None
    if value is None or value.trouble:
        return None
    return _as_command(value.text) if value.text.strip() else ""


def _labelled(lines: Sequence[MarkdownLine]) -> Iterator[str | None]:
    language = ""
    for at, line in enumerate(lines):
        if line.kind is LineKind.OPENING:
            language = line.text
        label = label_of(line.text) if line.kind in _LABEL_KINDS else None
        if label is not None and _LABEL.fullmatch(label.name):
            if line.kind is not LineKind.CODE or language in _TEXTS:
                yield _command_in(label.value) if label.value else _below(lines, at)
        elif line.kind is LineKind.HEADING and _LABEL.fullmatch(_bare(line.text)):
            yield _below(lines, at)
        if line.kind is LineKind.CLOSING:
            language = ""


def _bare(heading: str) -> str:
    return _DECORATION.sub("", plain(heading).lower())


def _below(lines: Sequence[MarkdownLine], at: int) -> str | None:
    """Return the command below a label; below a heading, an introduction may precede it."""
    nearby = _after_blanks(lines[at + 1 : at + 1 + _LINES_BELOW])
    if lines[at].kind is LineKind.HEADING:
        nearby = _after_introduction(nearby)
    if not nearby:
        return None
    first = nearby[0]
    if first.kind is LineKind.TEXT:
        return _code_alone(first.text)
    if first.kind not in (LineKind.OPENING, LineKind.CODE):
        return None
    is_fenced = first.kind is LineKind.OPENING
    code = takewhile(lambda line: line.kind is LineKind.CODE, nearby[is_fenced:])
    command = _first_command([line.text for line in code], first.text if is_fenced else "")
    return None if command is None else _as_command(command)


def _after_introduction(lines: Sequence[MarkdownLine]) -> Sequence[MarkdownLine]:
    """Return the lines after a paragraph such as `Run the tests with:`."""
    paragraph = list(takewhile(lambda line: line.kind is LineKind.TEXT, lines))
    if paragraph and _INTRODUCTION.search(paragraph[-1].text[-_END:]):
        return _after_blanks(lines[len(paragraph) :])
    return lines


def _after_blanks(lines: Sequence[MarkdownLine]) -> Sequence[MarkdownLine]:
    return list(dropwhile(lambda line: line.kind is LineKind.BLANK, lines))


# -- a command in words -------------------------------------------------------------------------


def _command_in(value: str) -> str | None:
    """Return the command after a label: inline code, or plain words that look like a command."""
    lead = _LEAD.match(value)
    value = value[lead.end() :] if lead else value
    code = _CODE.match(value)
    if code is not None:
        return _as_command(code["code"])
    return None if "`" in value else _plain_command(value)


def _code_alone(text: str) -> str | None:
    """Return the command in a line of inline code, which a remark may follow."""
    found = _ITEM_WITH_CODE.fullmatch(text)
    if found is None:
        return None
    # A single word with a remark can be a folder, a fixture or a tool.
    is_remarked = _REMARK_AFTER_CODE.fullmatch(found["rest"]) and " " in found["code"].strip()
    return _as_command(found["code"]) if not found["rest"].strip() or is_remarked else None


def _as_command(text: str) -> str | None:
    """Return the text as a command; None for a placeholder, a file name or text with controls."""
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
    return None if _OPENERS.match(words) or _PROSE.search(words) else _as_command(value)


# -- a command in a block of code ---------------------------------------------------------------


def _first_command(rows: Sequence[str], language: str) -> str | None:
    """Return the first command, and the `cd` or `export` lines before it that it needs."""
    if language not in _SHELLS:
        return None
    prepared: list[str] = []
    for command in _commands(rows):
        # `sh` runs the command, and only bash knows `source`.
        prepared.append(_SOURCE.sub(".", command, count=1) if command[:6] == "source" else command)
        if not _PREPARES.fullmatch(command):
            return None if _HALF.search(command) else " && ".join(prepared)
    return None


def _commands(rows: Sequence[str]) -> Iterator[str]:
    """Yield each command without prompt and comment.

    If some lines have a prompt, lines without one are output.
    """
    with_prompts = any(_PROMPT.match(row.strip()) for row in rows)
    begun = ""
    for row in rows:
        text = row.strip()
        prompt = _PROMPT.match(text)
        if with_prompts and not prompt and not begun:
            continue
        text = _without_comment(f"{begun}{text[prompt.end() :] if prompt else text}")
        begun = f"{text.removesuffix(chr(92)).rstrip()} " if _GOES_ON.search(text) else ""
        if text and not begun and not text.startswith("#"):
            yield text
    if begun:
        yield begun.rstrip()


def _without_comment(command: str) -> str:
    value = read_value(command)
    return command if value.trouble else value.written
