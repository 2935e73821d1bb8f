"""Ralph's `config`: lines of KEY=VALUE, parsed and never executed.

Whoever sourced such a file with a shell finds the same values, with two differences. Nothing is
expanded. And a value of several words needs no quotes: a shell would run the second one.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rooda.ralph.reading.assignment import Value, read_value
from rooda.text.nearmiss import did_you_mean

LARGEST_FILE = 1024 * 1024
MOST_FINDINGS = 100

_TEXTS = ("PROJECT_ROOT", "SPECS_DIR", "AGENT_CLI", "AGENT_ARGS", "TEST_COMMAND")
_NUMBERS = ("DEFAULT_MAX_ITERATIONS", "MAX_RETRIES")
KEYS = (*_TEXTS[:-1], *_NUMBERS, "TEST_COMMAND")
_LARGEST_NUMBER = 10**9

_NEWLINE = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_LINE = re.compile(
    r"(?:export[ \t]+)?(?P<key>[A-Za-z_]\w*+)(?P<before>[ \t]*+)=(?P<value>.*)", re.ASCII
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class RalphConfig:
    """What the file sets, None being not set. An empty TEST_COMMAND ("") means no tests."""

    project_root: str | None = None
    specs_dir: str | None = None
    agent_cli: str | None = None
    agent_args: str | None = None
    default_max_iterations: int | None = None
    max_retries: int | None = None
    test_command: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)  # where each key was set


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to change, and where. Warnings leave the file usable, errors don't."""

    line: int
    key: str
    message: str
    suggestion: str
    is_error: bool
    file: str = ""


class _Wrong(Exception):  # noqa: N818  (it is no error of the program)
    """What is wrong with a line, and what to write. Raised where the line can't be used."""

    def __init__(self, message: str, suggestion: str, key: str = "") -> None:
        super().__init__(message)
        self.message, self.suggestion, self.key = message, suggestion, key


def read(data: bytes, shown: str) -> tuple[RalphConfig, list[Finding]]:
    """The settings in the file, and all that is wrong with it; `shown` is its name in messages.

    What can be used is there even beside errors. A key that is set to nothing counts as not set,
    but for TEST_COMMAND.
    """
    reading = _Reading(shown)
    if len(data) > LARGEST_FILE:
        reading.find(
            1, _Wrong(f"the file is larger than {LARGEST_FILE:,} bytes", "Make it smaller")
        )
        return RalphConfig(), reading.findings
    for number, line in enumerate(_NEWLINE.split(data.removeprefix(_BOM)), 1):
        if len(reading.findings) >= MOST_FINDINGS:
            reading.find(
                number, _Wrong("too much is wrong; the rest was not read", "Write it anew")
            )
            break
        reading.take(number, line)
    return reading.config(), reading.findings


class _Reading:
    """The file as far as it was read."""

    def __init__(self, shown: str) -> None:
        self.findings: list[Finding] = []
        self._shown = shown
        self._texts: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._lines: dict[str, int] = {}

    def config(self) -> RalphConfig:
        """What can be used of it."""
        texts, numbers = self._texts, self._numbers
        return RalphConfig(
            texts.get("PROJECT_ROOT") or None,
            texts.get("SPECS_DIR") or None,
            texts.get("AGENT_CLI") or None,
            texts.get("AGENT_ARGS") or None,
            numbers.get("DEFAULT_MAX_ITERATIONS"),
            numbers.get("MAX_RETRIES"),
            texts.get("TEST_COMMAND"),
            self._lines,
        )

    def take(self, number: int, line: bytes) -> None:
        """Read one more line."""
        try:
            parsed = _parsed(line)
            if parsed is not None:
                self._set(number, *parsed)
        except _Wrong as wrong:
            self.find(number, wrong)

    def _set(self, number: int, key: str, value: Value) -> None:
        if key not in KEYS:
            known = f"Remove it; known keys: {', '.join(KEYS)}"
            raise _Wrong("is not a known key", did_you_mean(key, KEYS) or known, key)
        for warning in _warnings(key, value, self._lines.get(key)):
            self.find(number, warning, is_error=False)
        self._lines[key] = number
        if key in _TEXTS:
            self._texts[key] = value.text.strip()
            return
        self._numbers.pop(key, None)
        if value.text:
            self._numbers[key] = _number(key, value.text)

    def find(self, number: int, wrong: "_Wrong", *, is_error: bool = True) -> None:
        """Note what is wrong in a line."""
        self.findings.append(
            Finding(number, wrong.key, wrong.message, wrong.suggestion, is_error, self._shown)
        )


def _parsed(line: bytes) -> tuple[str, Value] | None:
    """The key and the value of a line; None for a blank or a comment."""
    try:
        text = line.decode().strip(" \t")
    except UnicodeDecodeError:
        raise _Wrong("is not valid UTF-8", "Save the file as UTF-8") from None
    if not text or text.startswith("#"):
        return None
    if _CONTROL.search(text):
        raise _Wrong("has a control character", "Remove it")
    match = _LINE.fullmatch(text)
    if match is None:
        raise _Wrong(f"is no KEY=VALUE line: {_brief(text)}", "Write KEY=VALUE, or # in front")
    key, value = match["key"], read_value(match["value"])
    if match["before"]:
        raise _Wrong("has a blank before its =", f"Write {key}=VALUE without blanks", key)
    if value.trouble:
        raise _Wrong(value.trouble, "Put the whole value in quotes on this line", key)
    if value.is_detached:
        # Empty or not? For a test command that makes a difference, so nobody should guess.
        raise _Wrong("has a blank after its =", f"Write {key}=VALUE without blanks", key)
    return key, value


def _warnings(key: str, value: Value, earlier: int | None) -> Iterator[_Wrong]:
    if earlier is not None:
        yield _Wrong(f"is set twice; line {earlier} has no effect", "Remove one of them", key)
    if not value.is_one_word:
        yield _Wrong("has several words without quotes", "Put quotes around the value", key)
    # The tests' shell expands what it runs, when it runs it.
    if value.expands and key != "TEST_COMMAND":
        message = "is taken as it is written: $ and ` are not expanded"
        yield _Wrong(message, "Write out what you mean", key)


def _number(key: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,30}", text) is None:
        raise _Wrong(f"must be a whole number, not {_brief(text)}", "Write it in digits", key)
    if not 1 <= int(text) <= _LARGEST_NUMBER:
        most = f" and at most {_LARGEST_NUMBER}" if int(text) else ""
        raise _Wrong(f"must be 1 or more{most}, not {_brief(text)}", f"Set to 1 or more{most}", key)
    return int(text)


def _brief(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")  # noqa: PLR2004  (fits a line)
