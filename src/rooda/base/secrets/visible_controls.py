"""A filter for a diff: masks secrets, and for a pager makes control codes visible.

Git's colors stay. `--masked` masks the secrets of its environment, `--visible` is for a pager.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from typing import BinaryIO

from rooda.base.controls import BIDIRECTIONAL
from rooda.base.secrets.masking import MASK_NOTHING, ByteStream, Masker

_COLOR = r"\x1b\[([0-9;]*)m"
_PALETTE = re.compile(r"\b[34]8;(?:5;[0-9]+|2;[0-9]+;[0-9]+;[0-9]+)")  # their numbers are colors
_HIDES = re.compile(r"\b0*8\b")  # git never hides text
_CONTROL = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDIRECTIONAL}]"
_PIECE = 64 * 1024
_LONGEST_LINE = 1024 * 1024
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


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """Yield what is there to read, up to the end of a line."""
    rest = b""
    while piece := source.read1(_PIECE):  # type: ignore[attr-defined]  # it is buffered
        whole, newline, rest = (rest + piece).rpartition(b"\n")
        if newline:
            yield whole + newline
        elif len(rest) > _LONGEST_LINE:
            yield rest
            rest = b""
    yield rest


def main() -> None:
    """Copy standard input to standard output."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the user may leave the pager early
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the pager has its own use for Ctrl+C
    flags = sys.argv[1:]
    stream = ByteStream(Masker(os.environ) if "--masked" in flags else MASK_NOTHING)
    for lines in _lines(sys.stdin.buffer):
        shown = lines
        if "--visible" in flags:
            shown = visible(lines.decode(errors="replace")).encode()
        sys.stdout.buffer.write(stream.feed(shown))
        sys.stdout.buffer.flush()
    sys.stdout.buffer.write(stream.finish())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
