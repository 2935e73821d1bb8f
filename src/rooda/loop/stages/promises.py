"""Find `<promise>` signals in what an agent printed.

A tag inside an echo of the prompt is no signal: the prompt names the tags, and several agents
print it back. An echo is a line of the prompt that has more than the tag, or two or more
consecutive lines of the prompt, quoted or not, also if they were wrapped again. A lone bare tag
counts even where the prompt has the same bare line.
"""

import io
import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from rooda.base.controls import clean
from rooda.plan.prompts.compose import promise_tag

_ANSI = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-;=-Z\\^-~])"
)
# What people and programs put around a line that they quote: > | │ # * - " ' ` and spaces.
_BEFORE = b" \t\r>|#*-+\"'`:.,;!()[]{}=~_\xe2\x94\x82\x83"
_AFTER = _BEFORE.replace(b">", b"")  # a line may end with a tag
_LONGEST_LINE = 300  # characters of a line that is shown as evidence
_LONGEST_PARAGRAPH = 2000  # bytes before the tag
_NARROWEST = 72  # columns, at which programs break lines
_LONGEST_BROKEN = 500  # bytes of a line that an agent has wrapped
_FARTHEST = 64  # lines without words between two lines that still count as consecutive
# A listing's line number: `12: `, `12 | `, `12→`.
_NUMBER = re.compile(rb"\s*\d{1,7}\s*(?:[:|\t]|\xe2\x86\x92|\xe2\x94\x82)")
_TAG = re.compile(rb"<promise>[A-Za-z0-9_.-]+</promise>")
_ESCAPED = re.compile(rb'\\(?:n|r|t|")')
_UNESCAPED = {b"\\n": b"\n", b"\\r": b"", b"\\t": b"\t", b'\\"': b'"'}
_WORD = re.compile(rb"\w|[^\x00-\x7f]")


class Words(Struct, frozen=True):
    """The words that mean success and failure; None where the policy has no such word."""

    success: str | None
    failure: str | None
    last_line_only: bool = False


class Promises(Struct, frozen=True):
    """Which signals the agent gave, and the lines that gave them.

    `blocked` is the paragraph before the failure's tag: what the agent says about it.
    """

    success: bool = False
    failure: bool = False
    lines: tuple[str, ...] = ()
    blocked: str = ""

    def __or__(self, other: "Promises") -> "Promises":
        lines = self.lines + other.lines
        blocked = other.blocked or self.blocked
        return Promises(
            self.success or other.success, self.failure or other.failure, lines, blocked
        )


def scan(output: bytes, words: Words, prompt: "Prompt", *, truncated: bool = False) -> Promises:
    """The signals on one stream. `truncated`: the output starts in the middle of a line."""
    output = _plain(output)
    success = _said(output, words.success, words, prompt, truncated=truncated)
    failure = _said(output, words.failure, words, prompt, truncated=truncated)
    lines = tuple(_shown(line) for line in (success, failure) if line is not None)
    blocked = "" if failure is None else _paragraph_before(output, failure, words, prompt)
    return Promises(success is not None, failure is not None, lines, blocked)


def _paragraph_before(output: bytes, line: bytes, words: Words, prompt: "Prompt") -> str:
    """Return the paragraph that ends at the tag in the line, as one line; lines of the prompt not.

    A tag on a line of its own belongs to the paragraph above it.
    """
    tag = promise_tag(words.failure or "").encode()
    end = output.rfind(line)
    if end == -1:  # the text was inside of JSON
        start, text = 0, line
    else:
        start = max(0, end - _LONGEST_PARAGRAPH)
        text = output[start : end + len(line)]
    found: list[bytes] = []
    for one in reversed(text[: text.rfind(tag)].split(b"\n")):
        if _WORD.search(_TAG.sub(b"", one)) is None:
            if found:
                break
        elif not prompt.has(_normal(one)):
            found.append(_TAG.sub(b"", one))
    paragraph = clean(b" ".join(reversed(found)).decode("utf-8", "replace"))
    return " ".join(paragraph.split())[-_LONGEST_LINE:]


def _shown(line: bytes) -> str:
    """A line as evidence; of a long one what stands around the tag."""
    tag = _TAG.search(line)
    start = max(0, tag.start() - _LONGEST_LINE // 2) if tag is not None else 0
    return clean(line[start : start + _LONGEST_LINE].decode("utf-8", "replace")).strip()


class Prompt:
    """The prompt, prepared for telling whether a line is an echo of it."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    @cached_property
    def _lines(self) -> list[bytes]:
        return [line for line in map(_normal, _plain(self._text).split(b"\n")) if line]

    @cached_property
    def _known(self) -> frozenset[bytes]:
        return frozenset(self._lines)

    @cached_property
    def _pairs(self) -> frozenset[tuple[bytes, bytes]]:
        return frozenset(zip(self._lines, self._lines[1:], strict=False))

    def has(self, line: bytes) -> bool:
        """Whether this is a line of the prompt."""
        return line in self._known

    @cached_property
    def _telling(self) -> frozenset[bytes]:
        """The lines that have a tag and more: the ones that say how to signal."""
        return frozenset(line for line in self._known if _TAG.search(line) and not is_bare(line))

    @cached_property
    def _lengths(self) -> frozenset[int]:
        return frozenset(map(len, self._telling))

    def is_end_of_echo(self, line: bytes) -> bool:
        """Whether the line ends with one that says how to signal, whatever stands in front."""
        return any(line[-length:] in self._telling for length in self._lengths)

    def has_pair(self, line: bytes, before: bytes, after: bytes) -> bool:
        """Whether the line follows one or precedes the other in the prompt too."""
        return (before, line) in self._pairs or (line, after) in self._pairs

    @cached_property
    def _running(self) -> bytes:
        """The whole text as one line."""
        return b" ".join(_plain(self._text).split())

    def has_wrapped(self, first: bytes, second: bytes) -> bool:
        """Whether these lines are a piece of the prompt that an agent has wrapped.

        Only where the next word had no room on the first: what an agent says in two lines of its
        own may well stand in the prompt on one.
        """
        words = second.split(None, 1)
        if not words or len(first.strip()) + 1 + len(words[0]) < _NARROWEST:
            return False
        joined = _normal(b" ".join((first + b" " + second).split()))
        return joined in self._running

    def ends_with(self, fragment: bytes) -> bool:
        """Whether the fragment is the end of a line of the prompt that has more than a tag."""
        return any(line.endswith(fragment) and not is_bare(line) for line in self._lines)


def is_bare(line: bytes) -> bool:
    """Whether a line says nothing but tags."""
    return _WORD.search(_TAG.sub(b"", line)) is None


def _said(
    output: bytes, word: str | None, words: Words, prompt: Prompt, *, truncated: bool
) -> bytes | None:
    """The line that says the word, if one does."""
    if word is None:
        return None
    wanted = promise_tag(word).encode()
    if words.last_line_only:
        start, end = _last_line(output)
        line = output[start:end].strip()
        is_echo = line == wanted and _is_echo(output, start, end, prompt, truncated=truncated)
        return line if line == wanted and not is_echo else None
    return _anywhere(output, wanted, prompt, truncated=truncated)


def _anywhere(output: bytes, wanted: bytes, prompt: Prompt, *, truncated: bool) -> bytes | None:
    for start, end in _lines_with(output, wanted):
        line = output[start:end]
        if _ESCAPED.search(line):
            # JSON has a whole text on one line; each line of that text is judged by itself.
            text = _ESCAPED.sub(lambda match: _UNESCAPED[match[0]], line)
            text = text.replace(b"\\", b"")  # so that this happens once
            found = _anywhere(text, wanted, prompt, truncated=False)
            if found is not None:
                return found
        elif not _is_echo(output, start, end, prompt, truncated=truncated):
            return line
    return None


def _is_echo(output: bytes, start: int, end: int, prompt: Prompt, *, truncated: bool) -> bool:
    line = _normal(output[start:end])
    if prompt.is_end_of_echo(line) or (truncated and start == 0 and prompt.ends_with(line)):
        return True
    if prompt.has(line):
        return prompt.has_pair(line, *_neighbours(output, start, end))
    return any(prompt.has_wrapped(*pair) for pair in _with_next_lines(output, start, end))


def _lines_with(output: bytes, wanted: bytes) -> Iterator[tuple[int, int]]:
    """Start and end of every line that has the tag."""
    found = output.find(wanted)
    while found != -1:
        start, end = _line_around(output, found)
        yield start, end
        found = output.find(wanted, end)


def _line_around(output: bytes, place: int) -> tuple[int, int]:
    start = output.rfind(b"\n", 0, place) + 1
    end = output.find(b"\n", place)
    return start, len(output) if end == -1 else end


def _last_line(output: bytes) -> tuple[int, int]:
    """Start and end of the last line that is not empty."""
    start = end = len(output.rstrip())
    for _ in range(_FARTHEST):
        start = output.rfind(b"\n", 0, end) + 1
        if start == 0 or output[start:end].strip():
            break
        end = start - 1
    return start, end


def _neighbours(output: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    """The nearest lines that have words, before and after."""
    before = after = b""
    for _ in range(_FARTHEST):
        if start <= 0 or before:
            break
        start, previous_end = output.rfind(b"\n", 0, start - 1) + 1, start - 1
        before = _normal(output[start:previous_end])
    for _ in range(_FARTHEST):
        if end >= len(output) or after:
            break
        next_end = output.find(b"\n", end + 1)
        next_end = len(output) if next_end == -1 else next_end
        after, end = _normal(output[end + 1 : next_end]), next_end
    return before, after


def _with_next_lines(output: bytes, start: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    """The line with the one before it, and with the one after it, where they are not too long."""
    if end - start > _LONGEST_BROKEN:
        return
    line = output[start:end]
    before = output[max(0, start - 1 - _LONGEST_BROKEN) : max(0, start - 1)]
    after = output[end + 1 : end + 1 + _LONGEST_BROKEN]
    yield before.rpartition(b"\n")[2], line
    yield line, after.partition(b"\n")[0]


def _normal(line: bytes) -> bytes:
    """A line without what stands around a quotation."""
    if number := _NUMBER.match(line):
        line = line[number.end() :]
    return line.lstrip(_BEFORE).rstrip(_AFTER)


def _plain(text: bytes) -> bytes:
    """Without control sequences. Piece by piece: `re.sub` would hold millions of them at once."""
    if b"\x1b" not in text:
        return text
    plain, start = io.BytesIO(), 0
    for found in _ANSI.finditer(text):
        plain.write(text[start : found.start()])
        start = found.end()
    plain.write(text[start:])
    return plain.getvalue()
