"""What the user adds to every prompt with `--context`."""

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from rooda.prompts.parts import FilePart, TextPart
from rooda.text.paths import anchored

_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")


@dataclass(frozen=True, slots=True)
class Context:
    """A piece of context; a file is named by a `Source:` line."""

    source: TextPart | FilePart

    def read(self) -> str:
        """The text for the CONTEXT section, read anew every time."""
        text = self.source.read().strip("\r\n")
        if isinstance(self.source, FilePart):
            return f"Source: {self.source.shown}\n\n{text}"
        return text


def looks_like_path(value: str) -> bool:
    """Whether a value was most likely meant as the name of a file."""
    if not value or any(c.isspace() for c in value) or "://" in value:
        return False
    return "/" in value or value.startswith("~") or _EXTENSION.search(value) is not None


def text_or_file(value: str, folder: Path) -> TextPart | FilePart:
    """An existing file is a file, anything else is text.

    A pipe, such as bash's `<(command)`, can be read only once, so it becomes text here. A path
    that may not be looked at raises PermissionError.
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
        pass  # too long for a name, or no such file: so it is text
    return TextPart(value)
