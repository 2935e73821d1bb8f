"""The text or files that the user adds to every prompt with `--context`."""

import re
import stat
from pathlib import Path

from msgspec import Struct

from rooda.prompts.parts import FilePart, TextPart
from rooda.text.paths import anchored

_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")


class Context(Struct, frozen=True):
    """One `--context` value; a file gets a `Source:` line with its name."""

    source: TextPart | FilePart

    def read(self) -> str:
        """Return the text for the CONTEXT section; a file is read again on every call."""
        text = self.source.read().strip("\r\n")
        if isinstance(self.source, FilePart):
            return f"Source: {self.source.shown}\n\n{text}"
        return text


def looks_like_path(value: str) -> bool:
    """Return whether the user most likely meant the value as the name of a file."""
    if not value or any(c.isspace() for c in value) or "://" in value:
        return False
    return "/" in value or value.startswith("~") or _EXTENSION.search(value) is not None


def text_or_file(value: str, folder: Path) -> TextPart | FilePart:
    """Return a FilePart if the value names an existing file, else a TextPart.

    A pipe, such as bash's `<(command)`, can be read only once, so its content becomes text here.
    Raises PermissionError for a path that the user may not access.
    """
    if "\n" in value or "\0" in value:
        return TextPart(value)
    try:
        path = anchored(folder, value)
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return FilePart(path, value)
        if stat.S_ISFIFO(mode):
            return TextPart(path.read_bytes().decode("utf-8", "replace"), name=value)
    except PermissionError:
        if looks_like_path(value):
            raise
    except (OSError, ValueError):
        pass  # there is no such file, or the value is too long for a name: it is text
    return TextPart(value)
