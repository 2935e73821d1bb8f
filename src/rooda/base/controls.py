"""Removes control codes from untrusted output, so that they cannot control the terminal."""

import codecs
import re
import shlex
from collections.abc import Sequence

# In this order: CSI sequences; OSC, DCS, SOS, PM and APC strings with their terminator;
# other escapes; control characters other than tab and newline, and bidirectional ones.
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_BODY = r"[^\x07\x1b\x90\x98\x9c-\x9f]*"  # excludes string starters to keep matching linear
_STRING = rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_BODY}(?:\x07|\x1b\\|\x9c)"
_ESCAPE = r"\x1b[ -/]*[0-~]"
# They change the order in which a terminal shows characters: text would look like other text.
BIDIRECTIONAL = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_CONTROL = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDIRECTIONAL}]"
CONTROLS = re.compile(_CONTROL)  # every sequence starts with one of these, and this search is fast
_SEQUENCES = re.compile(f"{_CSI}|{_STRING}|{_ESCAPE}|{_CONTROL}")
_NEWLINES = re.compile(r"\r\n?")
# The start of a sequence that may continue in the next piece.
_UNFINISHED = re.compile(
    rf"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_BODY}\x1b?"
    r"|\x1b[ -/]*|\r)\Z"
)
_LONGEST_CARRY = 4096
_WORD_START, _WORD_END = 300, 100  # characters that are shown of a long word of a command line


def clean(text: str) -> str:
    """Return the text without control codes; a lone carriage return becomes a newline."""
    if CONTROLS.search(text) is None:
        return text
    return _SEQUENCES.sub("", _NEWLINES.sub("\n", text))


def one_line(text: str) -> str:
    """Return the clean text on one line, so that it cannot imitate a line of rooda's output."""
    return " ".join(clean(text).split("\n")).strip()


def storable(text: str) -> str:
    """Return the text without what a database or JSON refuses: NUL, and lone surrogates.

    A file name that is not UTF-8 has such surrogates.
    """
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def shown_words(words: Sequence[str]) -> str:
    """Return the words of a command line on one line, without the middle of a long word."""
    return shlex.join(_brief(one_line(word)) for word in words)


def _brief(word: str) -> str:
    left_out = len(word) - _WORD_START - _WORD_END
    if left_out <= 0:
        return word
    return f"{word[:_WORD_START]}[... {left_out} characters ...]{word[-_WORD_END:]}"


class StreamCleaner:
    """Cleans bytes that arrive in pieces, which may end inside a sequence or a character."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._carry = ""

    def feed(self, data: bytes) -> str:
        """Return the clean text up to a sequence that may be unfinished."""
        text = self._carry + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_CARRY))
        cut = unfinished.start() if unfinished else len(text)
        self._carry = text[cut:]
        return clean(text[:cut])

    def finish(self) -> str:
        """Return the text that `feed` held back; call this at the end of the stream."""
        text = self._carry + self._decoder.decode(b"", final=True)
        self._carry = ""
        return clean(text)
