"""The parts of a prompt: text, files, built-in texts, context. Each iteration rereads them."""

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.base.numbers import format_size
from rooda.base.paths import anchored
from rooda.base.templates import DOLLAR, fill, names_in
from rooda.plan.prompts import builtin
from rooda.world.files.plain_files import NotPlainFileError
from rooda.world.files.sight import OutOfSightError, Sight, read_named

PHASES = ("observe", "orient", "decide", "act")

_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")


class PromptError(Exception):
    """A part cannot be used: the message says why, and `hint` says what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class PromptTooLargeError(PromptError):
    """A part, or the whole prompt, is larger than `max_prompt_size`."""

    def __init__(self, what: str, most: int) -> None:
        super().__init__(
            f"{what} is larger than max_prompt_size ({format_size(most)})",
            hint="Make it shorter, name the file in the prompt instead, or raise --max-prompt-size",
        )


class TextPart(Struct, frozen=True):
    """Text that the user wrote in the config or on the command line."""

    text: str
    name: str = "inline text"

    def read(self, most: int | None = None) -> str:
        """Return the text as written; raise PromptError if it has more than `most` bytes."""
        if most is not None and size_of(self.text) > most:
            raise PromptTooLargeError(self.name, most)
        return self.text


class FilePart(Struct, frozen=True):
    """A file of the user; `shown` is its name as the user wrote it.

    In a sandbox, `sight` is what the agent can see: rooda follows no link of the agent beyond that.
    """

    path: Path
    shown: str
    sight: Sight | None = None

    @property
    def name(self) -> str:
        """The name of the part in messages."""
        return self.shown

    def read(self, most: int | None = None) -> str:
        """Return the text; raise PromptError if it can't be read or has more than `most` bytes."""
        return read_text_file(self.path, self.shown, most, self.sight)


class BuiltinPart(Struct, frozen=True):
    """A built-in text, which the user names as `builtin:prompts/NAME.md`."""

    resource: str

    @property
    def name(self) -> str:
        """The name of the part in messages."""
        return f"{builtin.PREFIX}{self.resource}"

    def read(self, most: int | None = None) -> str:  # noqa: ARG002 - built-in texts are short
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

    def read(self, most: int | None = None) -> str:
        """Return the text; unknown `${...}` are kept, because prompts contain shell code."""
        text = self.source.read(most)
        if self.parameters:
            text = fill(text, self.parameters, DOLLAR)
        refuse_empty(text, self.source.name)
        return text.strip("\r\n")

    def unused_parameters(self, most: int | None = None) -> list[str]:
        """Return the parameters that do not occur in the text, which are probably typos."""
        used = names_in(self.source.read(most), DOLLAR)
        return [name for name in self.parameters if name not in used]


def refuse_empty(text: str, name: str) -> None:
    """Raise PromptError if the text of a prompt has nothing but white space."""
    if not text.strip():
        hint = "Write the prompt into it, or name another file"
        raise PromptError(f"{name} is empty", hint=hint)


def size_of(text: str) -> int:
    """Return the size of a text in bytes, as the agent reads it."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def read_text_file(
    path: Path, shown: str, most: int | None = None, sight: Sight | None = None
) -> str:
    """Return the text of a prompt file; raise PromptError with the reason if that fails.

    Of a file with more than `most` bytes, rooda reads no more than that.
    """
    try:
        data = read_named(path, None if most is None else most + 1, sight)
        if most is not None and len(data) > most:
            raise PromptTooLargeError(shown, most)
        if b"\0" in data:
            raise PromptError(f"{shown} is not text: it has a zero byte", hint="Name a text file")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptError(
            f"{shown} is not UTF-8 text (byte {error.start})",
            hint="Save the file as UTF-8",
        ) from None
    except OutOfSightError as error:
        hint = (
            "Remove the link and put the file itself there. Or, if the link is yours: name the "
            "file itself"
        )
        if sight is None or sight.of_sandbox:
            hint += ", or add it to sandbox.readable"
        raise PromptError(f"{shown} {error.strerror}", hint=hint) from None
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

    def read(self, most: int | None = None) -> str:
        """Return the text for the CONTEXT section; a file is reread on every call."""
        text = self.source.read(most).strip("\r\n")
        if isinstance(self.source, FilePart):
            return f"Source: {self.source.shown}\n\n{text}"
        return text


_Part = TypeVar("_Part", Part, Context)


def in_sight(part: _Part, sight: Sight) -> _Part:
    """Return a part whose file is read for an agent that sees only this."""
    if not isinstance(part.source, FilePart):
        return part
    return replace(part, source=replace(part.source, sight=sight))


def looks_like_path(value: str) -> bool:
    """Return whether the value is probably meant as a file name."""
    if not value or any(c.isspace() for c in value) or "://" in value:
        return False
    return "/" in value or value.startswith("~") or _EXTENSION.search(value) is not None


def text_or_file(value: str, folder: Path, most: int | None = None) -> TextPart | FilePart:
    """Return a FilePart if the value names an existing file, else a TextPart.

    A pipe, such as bash's `<(command)`, can be read only once, so its content becomes text here:
    one byte more than `most`, so that reading the part reports it as too large. A pipe below the
    folder is a FilePart, which can't be read.
    Raises PermissionError for a path that the user has no permission to access.
    """
    if "\n" in value or "\0" in value:
        return TextPart(value)
    try:
        path = anchored(folder, value)
        mode = path.stat().st_mode
        # rooda would wait forever for a pipe that an agent made and that no program writes to.
        is_odd = stat.S_ISFIFO(mode) and path.resolve().is_relative_to(folder.resolve())
        if stat.S_ISREG(mode) or is_odd:
            return FilePart(path, value)
        if stat.S_ISFIFO(mode):
            return TextPart(_read_pipe(path, most).decode("utf-8", "replace"), name=value)
    except PermissionError:
        if looks_like_path(value):
            raise
    except (OSError, ValueError):
        pass  # no such file, or too long for a file name, so the value is text
    return TextPart(value)


def _read_pipe(path: Path, most: int | None) -> bytes:
    with path.open("rb") as pipe:
        return pipe.read(-1 if most is None else most + 1)
