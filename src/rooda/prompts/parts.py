"""What a prompt is made of. Every part is read anew for every iteration."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rooda.prompts import builtin

PHASES = ("observe", "orient", "decide", "act")

_PARAMETER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


class PromptError(Exception):
    """A part of the prompt can't be used; the message says why and `hint` what to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class TextPart:
    """Words written in the config or on the command line."""

    text: str
    name: str = "inline text"

    def read(self) -> str:
        """The words as they are."""
        return self.text


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file of the user's; `shown` is its name as the user wrote it."""

    path: Path
    shown: str

    @property
    def name(self) -> str:
        """How the part is called in messages."""
        return self.shown

    def read(self) -> str:
        """The file's text, or a PromptError that says what is wrong with the file."""
        return read_text_file(self.path, self.shown)


@dataclass(frozen=True, slots=True)
class BuiltinPart:
    """One of rooda's own texts, written `builtin:prompts/NAME.md`."""

    resource: str

    @property
    def name(self) -> str:
        """How the part is called in messages."""
        return f"{builtin.PREFIX}{self.resource}"

    def read(self) -> str:
        """The text with its fragments put in place."""
        try:
            return builtin.read(self.resource)
        except KeyError:
            raise PromptError(
                f"there is no built-in prompt {self.name!r}",
                hint=builtin.suggestion(self.resource),
            ) from None


Source = TextPart | FilePart | BuiltinPart


@dataclass(frozen=True, slots=True)
class Part:
    """A source and the values for `${name}` in it."""

    source: Source
    parameters: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> str:
        """The part's text; an unknown `${...}` stays, prompts are full of shell."""
        text = self.source.read()
        if self.parameters:
            text = _PARAMETER.sub(lambda m: self.parameters.get(m[1], m[0]), text)
        if not text.strip():
            raise PromptError(
                f"{self.source.name} is empty",
                hint="Write the prompt into it, or name another file",
            )
        return text.strip("\r\n")

    def unused_parameters(self) -> list[str]:
        """Parameters that the text never asks for: most likely a typing error."""
        asked = set(_PARAMETER.findall(self.source.read()))
        return [name for name in self.parameters if name not in asked]


def read_text_file(path: Path, shown: str) -> str:
    """Read a prompt file, with one clear message for each way in which that can fail."""
    try:
        if path.is_dir():
            raise PromptError(f"{shown} is a folder, not a file", hint="Name a file")
        if not path.exists():
            raise PromptError(f"{shown} does not exist", hint="Create the file or correct the path")
        if not path.is_file():
            raise PromptError(f"{shown} is not a regular file", hint="Name a file")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptError(
            f"{shown} is not UTF-8 text (byte {error.start})",
            hint="Save the file as UTF-8",
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PromptError(
            f"{shown} can't be read: {reason}", hint="Check the path and its mode"
        ) from None
