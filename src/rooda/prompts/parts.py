"""The parts of a prompt: text, files, built-in texts, context. Each iteration rereads them."""

import re
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from rooda.prompts import builtin
from rooda.text.paths import anchored
from rooda.text.plain_files import NotPlainFileError, read_plain_file
from rooda.text.templates import DOLLAR, fill, names_in

PHASES = ("observe", "orient", "decide", "act")

_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")


class PromptError(Exception):
    """A part cannot be used: the message says why, and `hint` says what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class TextPart(Struct, frozen=True):
    """Text that the user wrote in the config or on the command line."""

    text: str
    name: str = "inline text"

    def read(self) -> str:
        """Return the text as written."""
        return self.text


class FilePart(Struct, frozen=True):
    """A file of the user; `shown` is its name as the user wrote it."""

    path: Path
    shown: str

    @property
    def name(self) -> str:
        """The name of the part in messages."""
        return self.shown

    def read(self) -> str:
        """Return the text of the file; raise PromptError if it cannot be read."""
        return read_text_file(self.path, self.shown)


class BuiltinPart(Struct, frozen=True):
    """A built-in text, which the user names as `builtin:prompts/NAME.md`."""

    resource: str

    @property
    def name(self) -> str:
        """The name of the part in messages."""
        return f"{builtin.PREFIX}{self.resource}"

    def read(self) -> str:
        """Return the text with its fragments; raise PromptError if there is no such text."""
        try:
            return builtin.read(self.resource)
        except KeyError:
            raise PromptError(
                f"there is no built-in prompt {self.name!r}",
                hint=builtin.suggestion(self.resource),
            ) from None


Source = TextPart | FilePart | BuiltinPart


class Part(Struct, frozen=True):
    """A source and the values of its `${name}` placeholders."""

    source: Source
    parameters: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> str:
        """Return the text; unknown `${...}` are kept, because prompts contain shell code."""
        text = self.source.read()
        if self.parameters:
            text = fill(text, self.parameters, DOLLAR)
        if not text.strip():
            raise PromptError(
                f"{self.source.name} is empty",
                hint="Write the prompt into it, or name another file",
            )
        return text.strip("\r\n")

    def unused_parameters(self) -> list[str]:
        """Return the parameters that do not occur in the text, which are probably typos."""
        used = names_in(self.source.read(), DOLLAR)
        return [name for name in self.parameters if name not in used]


def read_text_file(path: Path, shown: str) -> str:
    """Return the text of a prompt file; raise PromptError with the reason if that fails."""
    try:
        return read_plain_file(path, None, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptError(
            f"{shown} is not UTF-8 text (byte {error.start})",
            hint="Save the file as UTF-8",
        ) from None
    except NotPlainFileError:
        what = "a folder, not a file" if path.is_dir() else "not a regular file"
        raise PromptError(f"{shown} is {what}", hint="Name a file") from None
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a zero byte
        hint = "Create the file or correct the path"
        raise PromptError(f"{shown} does not exist", hint=hint) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise PromptError(
            f"{shown} can't be read: {reason}", hint="Check the path and its mode"
        ) from None


# -- text or files that the user adds with `--context` ---------------------------------------


class Context(Struct, frozen=True):
    """One `--context` value; the text of a file follows a `Source:` line with its name."""

    source: TextPart | FilePart

    def read(self) -> str:
        """Return the text for the CONTEXT section; a file is reread on every call."""
        text = self.source.read().strip("\r\n")
        if isinstance(self.source, FilePart):
            return f"Source: {self.source.shown}\n\n{text}"
        return text


def looks_like_path(value: str) -> bool:
    """Return whether the value is probably meant as a file name."""
    if not value or any(c.isspace() for c in value) or "://" in value:
        return False
    return "/" in value or value.startswith("~") or _EXTENSION.search(value) is not None


def text_or_file(value: str, folder: Path) -> TextPart | FilePart:
    """Return a FilePart if the value names an existing file, else a TextPart.

    A pipe, such as bash's `<(command)`, can be read only once, so its content becomes text here.
    Raises PermissionError for a path that the user has no permission to access.
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
        pass  # no such file, or too long for a file name, so the value is text
    return TextPart(value)
