"""Kinds of values: numbers, times, sizes; texts are in `text_kinds`.

A kind checks a value, reads it from text, shows it, and has its schema.
"""

import math
import re
from typing import Any, Generic, TypeVar

from msgspec import Struct

from rooda.base.numbers import SIZE_PATTERN, format_size, parse_size
from rooda.base.times import DAY, DURATION_PATTERN, format_seconds, parse_duration

T = TypeVar("T")

Schema = dict[str, Any]

_LONGEST = 1e9  # seconds, some thirty years
_MOST_DOLLARS = 1e9
_LONGEST_TEXT = 60  # characters of a wrong value in a message
_CENT = 0.01


class WrongValue(Exception):
    """A wrong value: the message says what is wrong, `suggestion` what to write."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


class Kind(Struct, Generic[T], frozen=True):
    """How a setting's value is checked, read from text, shown and described."""

    metavar = "TEXT"

    def check(self, raw: object) -> T:
        """Return the value that YAML gave as `raw`; raise WrongValue if it is wrong."""
        raise NotImplementedError

    def from_text(self, text: str) -> T:
        """Return the value that a flag or a variable gives as text."""
        return self.check(text)

    def show(self, value: T) -> str:
        """Return the value as a person reads it."""
        return str(value)

    def plain(self, value: T) -> object:
        """Return the value as YAML and JSON have it."""
        return value

    def schema(self) -> Schema:
        """Return the kind as JSON Schema."""
        raise NotImplementedError


class Boolean(Kind[bool], frozen=True):
    """`true` or `false`."""

    metavar = "BOOL"
    _WORDS = {"true": True, "false": False, "1": True, "0": False}
    _OLD_WORDS = {"yes": "true", "on": "true", "no": "false", "off": "false"}

    @classmethod
    def words(cls) -> tuple[str, ...]:
        """Return the words for a flag or a variable."""
        return (*cls._WORDS, *cls._OLD_WORDS)

    def check(self, raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        old = self._OLD_WORDS.get(str(raw).lower())
        raise WrongValue(
            f"must be true or false, not {brief(raw)}",
            f"Write {old}" if old else "Write true or false",
        )

    def from_text(self, text: str) -> bool:
        word = text.strip().lower()
        word = self._OLD_WORDS.get(word, word)  # in a shell, these words are common
        return self._WORDS[word] if word in self._WORDS else self.check(text)

    def show(self, value: bool) -> str:  # noqa: FBT001 - the value itself
        return "true" if value else "false"

    def schema(self) -> Schema:
        return {"type": "boolean"}


class Integer(Kind[int], frozen=True):
    """A whole number from `minimum` to `maximum`."""

    minimum: int
    maximum: int = 10**9
    advised: int | None = None  # the minimum in messages, if another check is stricter
    metavar = "N"

    def check(self, raw: object) -> int:
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)
        if isinstance(raw, bool) or not isinstance(raw, int):
            raise WrongValue(f"must be a whole number, not {brief(raw)}", "Write it in digits")
        if not self.minimum <= raw <= self.maximum:
            least = self.minimum if self.advised is None else self.advised
            most = f" and at most {self.maximum}" if raw > self.maximum else ""
            raise WrongValue(
                f"must be {least} or more{most}, not {brief(raw)}", f"Set to {least} or more{most}"
            )
        return raw

    def from_text(self, text: str) -> int:
        return self.check(int(text.strip()) if re.fullmatch(r"\s*[-+]?\d{1,30}\s*", text) else text)

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


class Seconds(Kind[float], frozen=True):
    """A length of time: a number of seconds, or text such as `90s`, `5m`, `1h30m`."""

    minimum: float = 0.0
    metavar = "DURATION"

    def check(self, raw: object) -> float:
        seconds = self._seconds(raw)
        if seconds is None:
            raise WrongValue(
                f"must be a number of seconds, not {brief(raw)}", "Write 90, '5m' or '1h30m'"
            )
        if seconds > _LONGEST:
            raise WrongValue(
                f"must be {_LONGEST:.0f} or less, not {brief(raw)}", "Remove it to have no limit"
            )
        if seconds < self.minimum:
            least = format_seconds(self.minimum)
            raise WrongValue(f"must be {least} or more, not {seconds:g}", f"Set to {least} or more")
        return seconds

    @staticmethod
    def _seconds(raw: object) -> float | None:
        """Return the number of seconds; None if it is no number."""
        try:
            number = parse_duration(raw) if isinstance(raw, str) else raw
        except ValueError:
            return None
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return None
        return float(number) if _finite(number) else None

    def show(self, value: float) -> str:
        return format_seconds(value)

    def schema(self) -> Schema:
        number: Schema = {"type": "number", "minimum": self.minimum}
        return {"anyOf": [number, {"type": "string", "pattern": DURATION_PATTERN}]}


class Timeout(Seconds, frozen=True):
    """Seconds after which something ends; zero and less have a message of their own."""

    def check(self, raw: object) -> float:
        seconds = self._seconds(raw)
        if seconds is not None and seconds <= 0:
            raise WrongValue(
                f"timeout must be positive, not {brief(raw)}",
                "Set to a positive number of seconds, or remove to disable timeout",
            )
        return super().check(raw)


class Age(Seconds, frozen=True):
    """How long ago; whole days are shown as days."""

    def show(self, value: float) -> str:
        return f"{value // DAY:.0f}d" if value and value % DAY == 0 else super().show(value)


class Dollars(Kind[float], frozen=True):
    """An amount of US dollars."""

    metavar = "USD"

    def check(self, raw: object) -> float:
        is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
        if not is_number or not _finite(raw) or not 0 < raw <= _MOST_DOLLARS:  # type: ignore[arg-type, operator]  # a number, see above
            raise WrongValue(
                f"must be an amount of US dollars, not {brief(raw)}", "Write 5 or 2.50"
            )
        return float(raw)  # type: ignore[arg-type]  # a number, see above

    def from_text(self, text: str) -> float:
        words = text.strip().removeprefix("$")
        return self.check(float(words) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", words) else text)

    def show(self, value: float) -> str:
        return f"${value:.2f}" if value >= _CENT else f"${value:g}"

    def schema(self) -> Schema:
        return {"type": "number", "exclusiveMinimum": 0}


class Size(Kind[int], frozen=True):
    """A number of bytes, or text such as `10MB`."""

    minimum: int
    metavar = "BYTES"

    def check(self, raw: object) -> int:
        try:
            size = parse_size(raw) if isinstance(raw, str) else raw
        except (ValueError, OverflowError):
            size = None
        if isinstance(size, bool) or not isinstance(size, int):
            raise WrongValue(
                f"must be a number of bytes, not {brief(raw)}", "Write 10485760 or '10MB'"
            )
        if size < self.minimum:
            raise WrongValue(
                f"must be {self.minimum} bytes or more, not {brief(raw)}",
                f"Set to {self.minimum} or more",
            )
        return size

    def show(self, value: int) -> str:
        return format_size(value)

    def schema(self) -> Schema:
        number: Schema = {"type": "integer", "minimum": self.minimum}
        return {"anyOf": [number, {"type": "string", "pattern": SIZE_PATTERN}]}


def brief(raw: object) -> str:
    """Return a wrong value, short enough for a message."""
    if isinstance(raw, dict):
        return "a mapping"
    if isinstance(raw, list):
        return "a list"
    if raw is None:
        return "nothing"
    text = str(raw).lower() if isinstance(raw, bool) else repr(raw)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def _finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False
