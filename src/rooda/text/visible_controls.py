"""A filter in front of a pager: control codes in a diff become visible, git's colors stay."""

import re
import signal
import sys

from rooda.text.controls import BIDIRECTIONAL

_COLOR = r"\x1b\[([0-9;]*)m"
_PALETTE = re.compile(r"\b[34]8;(?:5;[0-9]+|2;[0-9]+;[0-9]+;[0-9]+)")  # their numbers are colors
_HIDES = re.compile(r"\b0*8\b")  # git never hides text
_CONTROL = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDIRECTIONAL}]"
_SPACE, _DELETE, _CARET = 0x20, 0x7F, 0x40
_FOUND = re.compile(f"{_COLOR}|{_CONTROL}")


def visible(text: str) -> str:
    """Return the text with control characters in the form of `less`: ^[ or <U+202E>."""
    return _FOUND.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    if found[1] is None:
        return _name(ord(found[0]))
    is_hiding = _HIDES.search(_PALETTE.sub("", found[1]))
    return f"^[{found[0][1:]}" if is_hiding else found[0]


def _name(code: int) -> str:
    if code < _SPACE or code == _DELETE:
        return f"^{chr(code ^ _CARET)}"
    return f"<U+{code:04X}>"


def main() -> None:
    """Copy standard input to standard output, line by line."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the user may leave the pager early
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pager has its own use for Ctrl+C
    for line in sys.stdin.buffer:
        shown = visible(line.decode(errors="replace"))
        sys.stdout.buffer.write(shown.encode())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
