"""Reads ralph's `config`: lines of KEY=VALUE, which ralph parses and never runs.

The values are those that a shell would get from the file, with two differences: ralph expands
nothing, and a value of several words needs no quotes (a shell would run the second word).
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from rooda.base.lookup import did_you_mean

# Reads the VALUE of `KEY=VALUE` as a shell reads it, but runs and expands nothing.


_PIECE = re.compile(
    r"""
      '(?P<single>[^']*+)'
    | "(?P<double>(?:[^"\\]++|\\.)*+)"
    | \\(?P<escaped>.)
    | (?P<blank>[ \t]++)
    | (?P<plain>[^'"\\ \t]++)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r'\\([$`"\\])')  # in double quotes, `\` before any other character stays
_ANY_ESCAPE = re.compile(r"\\.", re.DOTALL)
_EXPANSION = re.compile(r"\$[\w{(@*#?!$-]|`")


class ShellValue(Struct, frozen=True):
    """A value: `text` is one word without its quotes, or several words with their quotes.

    `written`: the value with its quotes and without the comment.
    `is_detached`: a blank precedes the value, so a shell would run it as a command.
    `expands`: a shell would expand a part of the value.
    `trouble`: why the value can't be read; `text` is empty then.
    """

    text: str
    written: str = ""
    is_one_word: bool = True
    is_detached: bool = False
    expands: bool = False
    trouble: str = ""


def read_value(written: str) -> ShellValue:
    """Return the value in the rest of a line, without a ` # comment` at its end."""
    pieces = list(_pieces(written))
    if pieces and pieces[-1] is None:
        return ShellValue("", trouble=_trouble(written))
    found = [piece for piece in pieces if piece is not None]
    solid = [piece for piece in found if piece.lastgroup != "blank"]
    if not solid:
        return ShellValue("")
    first, last = solid[0].start(), solid[-1].end()
    is_one_word = not any(p.lastgroup == "blank" and first < p.start() < last for p in found)
    return ShellValue(
        "".join(map(_unquoted, solid)) if is_one_word else written[first:last],
        written[first:last],
        is_one_word,
        is_detached=first > 0,
        expands=any(map(_expands, solid)),
    )


def _pieces(written: str) -> Iterator[re.Match[str] | None]:
    """Yield the pieces up to a comment; None for a piece that is not closed."""
    position, after_blank = 0, False
    while position < len(written):
        if after_blank and written[position] == "#":
            return
        piece = _PIECE.match(written, position)
        yield piece
        if piece is None:
            return
        position, after_blank = piece.end(), piece.lastgroup == "blank"


def _trouble(written: str) -> str:
    if written.endswith("\\"):
        return "ends with a backslash, but a value is one line"
    return "has a quote that is not closed"


def _unquoted(piece: re.Match[str]) -> str:
    text = piece[piece.lastgroup or 0]
    return _ESCAPE.sub(r"\1", text) if piece.lastgroup == "double" else text


def _expands(piece: re.Match[str]) -> bool:
    if piece.lastgroup == "double":
        return _EXPANSION.search(_ANY_ESCAPE.sub("", piece["double"])) is not None
    return piece.lastgroup == "plain" and _EXPANSION.search(piece["plain"]) is not None


LARGEST_FILE = 1024 * 1024
MOST_FINDINGS = 100

_TEXTS = ("PROJECT_ROOT", "SPECS_DIR", "AGENT_CLI", "AGENT_ARGS", "DONE_WHEN", "TEST_COMMAND")
_NUMBERS = ("DEFAULT_MAX_ITERATIONS", "MAX_RETRIES")
KEYS = (*_TEXTS[:-1], *_NUMBERS, "TEST_COMMAND")
_LARGEST_NUMBER = 10**9
_LONGEST_QUOTE = 60  # characters of a value in a message

_NEWLINE = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_LINE = re.compile(
    r"(?:export[ \t]+)?(?P<key>[A-Za-z_]\w*+)(?P<before>[ \t]*+)=(?P<value>.*)", re.ASCII
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class RalphConfig(Struct, frozen=True):
    """The values in the file; None if not set. An empty TEST_COMMAND ("") means no tests."""

    project_root: str | None = None
    specs_dir: str | None = None
    agent_cli: str | None = None
    agent_args: str | None = None
    default_max_iterations: int | None = None
    max_retries: int | None = None
    test_command: str | None = None
    done_when: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)  # the line that sets each key


class ConfigFinding(Struct, frozen=True):
    """A mistake in the file: where it is, and what to write. A warning leaves the file usable."""

    line: int
    key: str
    message: str
    suggestion: str
    is_error: bool
    file: str = ""


class _LineError(Exception):
    """What is wrong with a line, and what to write. Raised if the line can't be used."""

    def __init__(self, message: str, suggestion: str, key: str = "") -> None:
        super().__init__(message)
        self.message, self.suggestion, self.key = message, suggestion, key


def read_config(data: bytes, shown: str) -> tuple[RalphConfig, list[ConfigFinding]]:
    """Return the values in the file and all mistakes in it; `shown` is its name in messages.

    Values in lines without errors are there even if other lines have errors. An empty value
    means that the key is not set, except for TEST_COMMAND.
    """
    reading = _Reading(shown)
    if len(data) > LARGEST_FILE:
        large = _LineError(f"the file is larger than {LARGEST_FILE:,} bytes", "Make it smaller")
        reading.find(1, large)
        return RalphConfig(), reading.findings
    for number, line in enumerate(_NEWLINE.split(data.removeprefix(_BOM)), 1):
        if len(reading.findings) >= MOST_FINDINGS:
            unread = _LineError("too much is wrong; the rest was not read", "Correct these first")
            reading.find(number, unread)
            break
        reading.take(number, line)
    return reading.config(), reading.findings


class _Reading:
    """The values and mistakes in the lines read so far."""

    def __init__(self, shown: str) -> None:
        self.findings: list[ConfigFinding] = []
        self._shown = shown
        self._texts: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._lines: dict[str, int] = {}

    def config(self) -> RalphConfig:
        """Return the values in all lines that can be used."""
        texts, numbers = self._texts, self._numbers
        return RalphConfig(
            texts.get("PROJECT_ROOT") or None,
            texts.get("SPECS_DIR") or None,
            texts.get("AGENT_CLI") or None,
            texts.get("AGENT_ARGS") or None,
            numbers.get("DEFAULT_MAX_ITERATIONS"),
            numbers.get("MAX_RETRIES"),
            texts.get("TEST_COMMAND"),
            texts.get("DONE_WHEN") or None,
            self._lines,
        )

    def take(self, number: int, line: bytes) -> None:
        """Read the next line."""
        try:
            parsed = _parsed(line)
            if parsed is not None:
                self._set(number, *parsed)
        except _LineError as wrong:
            self.find(number, wrong)

    def _set(self, number: int, key: str, value: ShellValue) -> None:
        if key not in KEYS:
            known = f"Remove it; known keys: {', '.join(KEYS)}"
            raise _LineError("is not a known key", did_you_mean(key, KEYS) or known, key)
        for warning in _warnings(key, value, self._lines.get(key)):
            self.find(number, warning, is_error=False)
        self._lines[key] = number
        if key in _TEXTS:
            self._texts[key] = value.text.strip()
            return
        self._numbers.pop(key, None)
        if value.text:
            self._numbers[key] = _number(key, value.text)

    def find(self, number: int, wrong: _LineError, *, is_error: bool = True) -> None:
        """Add a mistake in a line."""
        self.findings.append(
            ConfigFinding(number, wrong.key, wrong.message, wrong.suggestion, is_error, self._shown)
        )


def _parsed(line: bytes) -> tuple[str, ShellValue] | None:
    """Return the key and the value of a line; None for a blank line or a comment."""
    try:
        text = line.decode().strip(" \t")
    except UnicodeDecodeError:
        raise _LineError("is not valid UTF-8", "Save the file as UTF-8") from None
    if not text or text.startswith("#"):
        return None
    if _CONTROL.search(text):
        raise _LineError("has a control character", "Remove it")
    match = _LINE.fullmatch(text)
    if match is None:
        raise _LineError(f"is no KEY=VALUE line: {_brief(text)}", "Write KEY=VALUE, or # in front")
    key, value = match["key"], read_value(match["value"])
    if match["before"]:
        raise _LineError("has a blank before its =", f"Write {key}=VALUE without blanks", key)
    if value.trouble:
        raise _LineError(value.trouble, "Put the whole value in quotes on this line", key)
    if value.is_detached:
        # A shell would set an empty value here. An empty TEST_COMMAND turns the tests off, so
        # the user has to say which value is meant.
        raise _LineError("has a blank after its =", f"Write {key}=VALUE without blanks", key)
    return key, value


def _warnings(key: str, value: ShellValue, earlier: int | None) -> Iterator[_LineError]:
    if earlier is not None:
        yield _LineError(f"is set twice; line {earlier} has no effect", "Remove one of them", key)
    if not value.is_one_word:
        yield _LineError("has several words without quotes", "Put quotes around the value", key)
    # The shell that runs the command expands it.
    if value.expands and key not in ("TEST_COMMAND", "DONE_WHEN"):
        message = "is taken as it is written: $ and ` are not expanded"
        yield _LineError(message, "Write out what you mean", key)


def _number(key: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,30}", text) is None:
        raise _LineError(f"must be a whole number, not {_brief(text)}", "Write it in digits", key)
    if not 1 <= int(text) <= _LARGEST_NUMBER:
        most = f" and at most {_LARGEST_NUMBER}" if int(text) else ""
        raise _LineError(
            f"must be 1 or more{most}, not {_brief(text)}", f"Set to 1 or more{most}", key
        )
    return int(text)


def _brief(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 3]}...")
