"""Masks secrets in what rooda shows: the values of secret variables, and known kinds of tokens.

All views use it: logs, the terminal, commands that read the record, reports, and texts that rooda
publishes. The record and its transcripts keep what programs wrote.
"""

import codecs
import re
from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.controls import CONTROLS, StreamCleaner, clean
from rooda.base.secrets.secret_values import forms_of, secret_values
from rooda.base.secrets.token_formats import (
    MASK,
    hint_of,
    may_be_in_key,
    open_end,
    opens_key,
    without_named_values,
    without_tokens,
)

_T = TypeVar("_T")
_LONGEST_HELD = 32 * 1024  # characters of a stream that wait for what follows
# Fields by which rooda finds things again: they have no words of a program.
_IDENTITY = frozenset({"run", "workspace", "repository", "given"})
_LONGEST_SPLIT = 512  # characters of a value that is found in two pieces; its lines are shorter


class Masker:
    """Masks secrets in texts. `environ` are variables, of which those with secrets are found.

    `is_on`: false for the owner who wants to see everything.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self._masks: dict[str, str] = {}
        self._words: dict[str, re.Pattern[str]] = {}
        self._beginnings: set[str] = set()
        self._longest = 0
        self.learn(environ or {})

    def learn(self, environ: Mapping[str, str]) -> None:
        """Mask the secrets among these variables, too."""
        new = [one for one in secret_values(environ) if one not in self._masks]
        if not new:
            return
        masks = dict(self._masks)
        for value in new:
            mask = hint_of(value) + MASK
            masks |= {form: mask for form in forms_of(value) if form not in masks}
        # The longest first: a shorter value may be a part of a longer one.
        self._masks = {form: masks[form] for form in sorted(masks, key=lambda one: -len(one))}
        self._words = {form: _whole_word(form) for form in masks if form.isalpha()}
        split = [form for form in masks if len(form) <= _LONGEST_SPLIT]
        self._beginnings = {form[:size] for form in split for size in range(1, len(form))}
        self._longest = max(map(len, split), default=0)

    def text(self, text: str) -> str:
        """Return the text without secrets. A secret with control codes in it is found, too."""
        if not self.is_on or not text:
            return text
        if CONTROLS.search(text) is None:
            return self._masked(text)
        shown = self._masked(text)
        plain = clean(shown)
        again = self._masked(plain)
        return shown if again == plain else again

    def tree(self, value: _T) -> _T:
        """Return a value, such as an event or a row, with every text in it masked.

        What has no secret is returned as the same object. Fields that identify a run stay.
        """
        if not self.is_on:
            return value
        found: _T = self._tree(value)  # type: ignore[assignment]  # of the same kind
        return found

    def stream(self) -> "StreamMasker":
        """Return a masker for one text that arrives in pieces."""
        return StreamMasker(self)

    def lines(self) -> "LineMasker":
        """Return a masker for lines, each of which is shown before the next one is known."""
        return LineMasker(self)

    def cleaner(self) -> "SafeStream":
        """Return what cleans and masks the bytes of one stream."""
        return SafeStream(self)

    def held_back(self, text: str) -> int:
        """Return up to where a text can be shown before the next piece of it is known."""
        if not self.is_on:
            return len(text)
        end = min(open_end(text), self._open_value(text))
        return end if len(text) - end <= _LONGEST_HELD else len(text)

    def _masked(self, text: str) -> str:
        for value, mask in self._masks.items():
            if value in text:
                word = self._words.get(value)
                text = text.replace(value, mask) if word is None else word.sub(mask, text)
        return without_named_values(without_tokens(text))

    def _open_value(self, text: str) -> int:
        """Return where the beginning of a secret value is at the end of a text."""
        size, beginnings = len(text), self._beginnings
        first = max(0, size - self._longest + 1)
        return next((at for at in range(first, size) if text[at:] in beginnings), size)

    def _tree(self, value: object) -> object:
        if type(value) is str:
            return self.text(value)
        if isinstance(value, Struct):
            names = (name for name in value.__struct_fields__ if name not in _IDENTITY)
            pairs = [(name, getattr(value, name)) for name in names]
            masked = {name: new for name, old in pairs if (new := self._tree(old)) is not old}
            return replace(value, **masked) if masked else value
        if type(value) in (list, tuple):
            items = [self._tree(one) for one in value]  # type: ignore[attr-defined]
            is_same = all(new is old for new, old in zip(items, value, strict=True))  # type: ignore[call-overload]
            return value if is_same else type(value)(items)  # type: ignore[call-arg]
        if type(value) is dict:
            return {name: self._tree(one) for name, one in value.items()}
        return value


class StreamMasker:
    """Masks a text that arrives in pieces, which may end inside of a secret."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the masked text up to what may be the beginning of a secret."""
        text = self._held + text
        end = self._masker.held_back(text)
        self._held = text[end:]
        return self._masker.text(text[:end])

    def finish(self) -> str:
        """Return the text that `feed` held back; call this at the end of the stream."""
        text, self._held = self._held, ""
        return self._masker.text(text)


class LineMasker:
    """Masks lines one by one, the lines of a private key too."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._is_in_key = False

    def __call__(self, line: str) -> str:
        """Return the next line without secrets. It may be several lines at once."""
        if not self._masker.is_on:
            return line
        self._is_in_key = self._is_in_key and may_be_in_key(line)
        if self._is_in_key:
            return MASK if line.strip() else line
        self._is_in_key = opens_key(line)
        return self._masker.text(line)


class SafeStream:
    """Removes control codes and secrets from bytes that arrive in pieces."""

    def __init__(self, masker: Masker) -> None:
        self._cleaner = StreamCleaner()
        self._masker = masker.stream()

    def feed(self, data: bytes) -> str:
        """Return the text for a terminal or a log, up to what may be the start of something."""
        return self._masker.feed(self._cleaner.feed(data))

    def finish(self) -> str:
        """Return the text that `feed` held back; call this at the end of the stream."""
        return self._masker.feed(self._cleaner.finish()) + self._masker.finish()


class ByteStream:
    """Masks bytes that arrive in pieces; all others stay as they are."""

    def __init__(self, masker: Masker) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._masker = masker.stream()

    def feed(self, data: bytes) -> bytes:
        """Return the bytes up to what may be the start of a secret."""
        return _encoded(self._masker.feed(self._decoder.decode(data)))

    def finish(self) -> bytes:
        """Return the bytes that `feed` held back; call this at the end of the stream."""
        rest = self._masker.feed(self._decoder.decode(b"", final=True))
        return _encoded(rest + self._masker.finish())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _whole_word(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")


MASK_NOTHING = Masker(is_on=False)
