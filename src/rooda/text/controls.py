"""Keep what an untrusted program printed from driving the user's terminal."""

import codecs
import re

# In order: CSI sequences; OSC, DCS, SOS, PM and APC strings with their terminator;
# other escapes; and the control characters that are neither a tab nor a newline.
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_BODY = r"[^\x07\x1b\x90\x98\x9c-\x9f]*"  # no starter in it, so that scanning stays linear
_STRING = rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_BODY}(?:\x07|\x1b\\|\x9c)"
_ESCAPE = r"\x1b[ -/]*[0-~]"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
_ANY = re.compile(_CONTROL)  # every sequence begins with one, and this is fast
_SEQUENCES = re.compile(f"{_CSI}|{_STRING}|{_ESCAPE}|{_CONTROL}")
_NEWLINES = re.compile(r"\r\n?")
# What may still become a sequence when more text arrives.
_UNFINISHED = re.compile(
    rf"(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_BODY}\x1b?"
    r"|\x1b[ -/]*|\r)\Z"
)
_LONGEST_CARRY = 4096


def clean(text: str) -> str:
    """The text without control codes; a lone carriage return is a line end."""
    if _ANY.search(text) is None:
        return text
    return _SEQUENCES.sub("", _NEWLINES.sub("\n", text))


def one_line(text: str) -> str:
    """The same on one line, so that foreign text can't forge a line of ours."""
    return " ".join(clean(text).split("\n")).strip()


class StreamCleaner:
    """Cleans bytes that arrive in pieces, wherever the pieces were cut."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._carry = ""

    def feed(self, data: bytes) -> str:
        """The readable text that is certain by now."""
        text = self._carry + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text, max(0, len(text) - _LONGEST_CARRY))
        cut = unfinished.start() if unfinished else len(text)
        self._carry = text[cut:]
        return clean(text[:cut])

    def finish(self) -> str:
        """What was held back, once nothing more can come."""
        text = self._carry + self._decoder.decode(b"", final=True)
        self._carry = ""
        return clean(text)
