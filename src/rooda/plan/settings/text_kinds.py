"""Kinds of values that are text: words, paths, commands, templates, lists and names."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rooda.base.lookup import did_you_mean
from rooda.base.paths import anchored, parts_of
from rooda.base.secrets.sensitive import masked_url
from rooda.base.templates import has_lone_brace, names_in, template_pattern
from rooda.plan.settings.kinds import Boolean, Kind, Schema, WrongValue, brief

_DATABASES = ("sqlite:///", "postgresql://", "postgres://", "postgresql+psycopg://")


class OneOf(Kind[str], frozen=True):
    """One of a few words."""

    options: tuple[str, ...]

    @property
    def metavar(self) -> str:  # type: ignore[override]  # the words are the best metavar
        """The words, as the help shows them."""
        return "|".join(self.options)

    def check(self, raw: object) -> str:
        if isinstance(raw, str) and raw in self.options:
            return raw
        words = ", ".join(self.options)
        guess = did_you_mean(raw, self.options) if isinstance(raw, str) else ""
        raise WrongValue(
            f"must be one of {words}, not {brief(raw)}", guess or f"Write one of: {words}"
        )

    def schema(self) -> Schema:
        return {"enum": list(self.options)}


class Text(Kind[str], frozen=True):
    """Words that are not empty."""

    def check(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise WrongValue(f"must be text, not {brief(raw)}", "Put it in quotes")
        if "\0" in raw:
            raise WrongValue("must not contain a NUL character", "Remove it")
        if not raw.strip():
            raise WrongValue("must not be empty", "Write a value, or remove the key")
        return raw

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"\S"}


class PathText(Text, frozen=True):
    """The name of a file or folder, relative to the file that declares it."""

    metavar = "PATH"


class FolderText(PathText, frozen=True):
    """The name of a folder."""


BY_SIGNAL, BY_TASKS = "signal", "tasks"


class DoneWhen(Text, frozen=True):
    """What decides that the work is done: a word, or `command: CMD`."""

    metavar = "signal|tasks|'command: CMD'"
    _form = re.compile(r"(signal|tasks)|command:\s*(\S.*)", re.DOTALL)

    def check(self, raw: object) -> str:
        is_text = isinstance(raw, str) and "\0" not in raw
        found = self._form.fullmatch(str(raw).strip()) if is_text else None
        if found is None:
            message = f"must be signal, tasks or 'command: CMD', not {brief(raw)}"
            raise WrongValue(message, "Write one of them, such as 'command: ./all-done.sh'")
        return found[1] or f"command: {found[2]}"

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"^\s*(signal|tasks|command:\s*\S[\s\S]*)\s*$"}


def done_command(value: str) -> str | None:
    """Return the command in a value of `done_when`; None if something else decides."""
    return None if value in (BY_SIGNAL, BY_TASKS) else value.removeprefix("command: ")


class ShellCommand(Text, frozen=True):
    """A command for `sh -c`: one text, which rooda does not split into words."""

    metavar = "CMD"

    def check(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise WrongValue(
                f"must be a command, not {brief(raw)}", "Write it as one text, such as 'make test'"
            )
        return super().check(raw)


_HOST = re.compile(r"(\[[^\]]*\]|[^:@]*)(:\d*)?")


class DatabaseUrl(Text, frozen=True):
    """The URL of a database; its password is never shown."""

    metavar = "URL"

    def check(self, raw: object) -> str:
        text = super().check(raw).strip()
        if not text.startswith(_DATABASES):
            raise WrongValue(
                f"must be the URL of a database, not {masked_url(text)!r}",
                "Write postgresql://USER@HOST/DATABASE, or sqlite:///FILE",
            )
        if not text.startswith("sqlite:"):
            _check_server(text)
        return text

    def show(self, value: str) -> str:
        return masked_url(value)

    def plain(self, value: str) -> object:
        return masked_url(value)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": r"^\s*(sqlite:///|postgres(ql(\+psycopg)?)?://)"}


def _check_server(url: str) -> None:
    """Raise WrongValue if a driver would take a part of the password for the host."""
    user, _, place = url.partition("?")[0].partition("://")[2].rpartition("@")
    if "@" in user:
        raise WrongValue("has a password with an @ in it", "Write %40 for each @ of the password")
    host = place.partition("/")[0]
    if not _HOST.fullmatch(host):
        raise WrongValue(
            f"has a host or a port that can't be read: {masked_url(url)!r}",
            "Write HOST:PORT, and %2F for each / of the password",
        )


class TemplateText(Text, frozen=True):
    """Text with names in braces, for which rooda puts in values (`rooda.base.templates`)."""

    names: tuple[str, ...]

    def check(self, raw: object) -> str:
        text = super().check(raw)
        known = ", ".join(f"{{{name}}}" for name in self.names)
        for name in names_in(text):
            if name not in self.names:
                raise WrongValue(
                    f"{brief(f'{{{name}}}')} can't be filled in",
                    did_you_mean(name, self.names) or f"Use {known}; write {{{{ for a brace",
                )
        if has_lone_brace(text):
            raise WrongValue("has a brace without its partner", "Write {{ or }} for a brace")
        return text

    def show(self, value: str) -> str:
        """Return the text on one line."""
        return value.replace("\n", "\\n")

    def schema(self) -> Schema:
        return {"type": "string", "pattern": template_pattern(self.names)}


class SignalWord(Text, frozen=True):
    """A word for a `<promise>` tag."""

    metavar = "WORD"

    def check(self, raw: object) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", super().check(raw)):
            raise WrongValue(f"must be one word, not {brief(raw)}", "Write a word such as SUCCESS")
        return str(raw)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": "^[A-Za-z0-9_.-]+$"}


class TextList(Kind[tuple[str, ...]], frozen=True):
    """Several texts."""

    metavar = "PATTERN"

    def check(self, raw: object) -> tuple[str, ...]:
        items = [raw] if isinstance(raw, str) else raw
        if not isinstance(items, (list, tuple)):
            raise WrongValue(f"must be a list of texts, not {brief(raw)}", "Write [one, two]")
        return tuple(Text().check(item) for item in items)

    def from_text(self, text: str) -> tuple[str, ...]:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise WrongValue(f"can't be split into words: {error}", "Check the quotes") from None
        return self.check(words or text)

    def show(self, value: tuple[str, ...]) -> str:
        return shlex.join(value) or "none"

    def schema(self) -> Schema:
        item = Text().schema()
        return {"anyOf": [item, {"type": "array", "items": item}]}


class PathList(TextList, frozen=True):
    """Several names of files or folders, relative to the file that declares them."""

    metavar = "PATH"


def with_folder(kind: Kind[Any], value: Any, folder: Path, home: Path | None) -> Any:
    """Return a value whose paths are complete: those of a setting are relative to a folder."""
    if value is None:
        return None
    if isinstance(kind, PathText):
        return str(anchored(folder, value, home))
    if isinstance(kind, PathList):
        return tuple(str(anchored(folder, one, home)) for one in value)
    return value


class NameList(TextList, frozen=True):
    """Several names of variables."""

    metavar = "NAME"


class PathPatternList(TextList, frozen=True):
    """Several patterns of paths in the work tree (`rooda.base.paths`)."""

    def check(self, raw: object) -> tuple[str, ...]:
        patterns = super().check(raw)
        for one in patterns:
            parts = parts_of(one)
            if ".." in parts or not parts:
                raise WrongValue(f"{brief(one)} does not name a path in the work tree")
            if one.startswith("!"):
                raise WrongValue(f"{brief(one)} can't take files out again")
        return patterns


class LabelList(TextList, frozen=True):
    """Several words; on the command line also with commas: `gpu,big`."""

    metavar = "LABEL,..."

    def check(self, raw: object) -> tuple[str, ...]:
        labels = super().check(raw)
        if wrong := [label for label in labels if not re.fullmatch(r"[\w.:-]+", label)]:
            raise WrongValue(f"{brief(wrong[0])} is no label", "Write words such as gpu")
        return labels

    def from_text(self, text: str) -> tuple[str, ...]:
        return super().from_text(text.replace(",", " "))

    def schema(self) -> Schema:
        item = {"type": "string", "pattern": r"^[\w.:-]+$"}
        return {"anyOf": [item, {"type": "array", "items": item}]}


class TextMap(Kind[Mapping[str, str | None]], frozen=True):
    """Names with values; a null value removes a name."""

    metavar = "NAME=VALUE"

    def check(self, raw: object) -> Mapping[str, str | None]:
        if not isinstance(raw, dict):
            raise WrongValue(
                f"must be a mapping of names to values, not {brief(raw)}", "Write NAME: value"
            )
        return {self._name(name): self._value(name, value) for name, value in raw.items()}

    def from_text(self, text: str) -> Mapping[str, str | None]:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise WrongValue(f"can't be split into words: {error}", "Check the quotes") from None
        pairs = [word.partition("=") for word in words]
        if bad := [name for name, equals, _ in pairs if not equals]:
            raise WrongValue(f"must be NAME=VALUE, not {brief(bad[0])}", "Write NAME=VALUE")
        return self.check({name: value for name, _, value in pairs})

    def show(self, value: Mapping[str, str | None]) -> str:
        # Values may be secrets, so rooda shows only the names.
        return ", ".join(value) or "none"

    def schema(self) -> Schema:
        return {
            "type": "object",
            "propertyNames": {"pattern": "^[^=]+$"},
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        }

    @staticmethod
    def _name(name: str) -> str:
        if not name or "=" in name or "\0" in name:
            raise WrongValue(f"{brief(name)} can't be the name of a variable", "Use A-Z, 0-9 and _")
        return name

    @staticmethod
    def _value(name: str, value: object) -> str | None:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (list, dict)) or (isinstance(value, str) and "\0" in value):
            raise WrongValue(f"the value of {name} must be text", "Put it in quotes")
        return None if value is None else str(value)


# Kinds of settings that take true and false besides words.


_AUTO = "auto"
_WORDS = "auto, true or false"


class AutoBoolean(Kind[str], frozen=True):
    """`auto`, `true` or `false`; the value is that word."""

    metavar = "auto|BOOL"

    def check(self, raw: object) -> str:
        """Return the word for what a file gives."""
        if isinstance(raw, bool):
            return Boolean().show(raw)
        if isinstance(raw, str) and raw in (_AUTO, "true", "false"):
            return raw
        raise WrongValue(f"must be {_WORDS}, not {brief(raw)}", f"Write {_WORDS}")

    def from_text(self, text: str) -> str:
        """Return the word for what a flag or a variable gives."""
        if text.strip().lower() == _AUTO:
            return _AUTO
        try:
            return Boolean().show(Boolean().from_text(text))
        except WrongValue:
            return self.check(text)

    def plain(self, value: str) -> object:
        """Return the value as YAML and JSON have it."""
        return value if value == _AUTO else value == "true"

    def schema(self) -> Schema:
        """Return the kind as JSON Schema."""
        return {"enum": [_AUTO, True, False]}


class SwitchedWord(OneOf, frozen=True):
    """One of a few words; `true` stands for the word `on`, and `false` for the word `off`."""

    on: str
    off: str

    @property
    def words(self) -> tuple[str, ...]:
        """The words for a flag or a variable."""
        return (*self.options, *Boolean.words())

    def check(self, raw: object) -> str:
        """Return the word for what a file gives."""
        if isinstance(raw, bool):
            return self.on if raw else self.off
        return super().check(raw)

    def from_text(self, text: str) -> str:
        """Return the word for what a flag or a variable gives."""
        if text in self.options:
            return text
        try:
            return self.check(Boolean().from_text(text))
        except WrongValue:
            return self.check(text)

    def schema(self) -> Schema:
        """Return the kind as JSON Schema."""
        return {"enum": [*self.options, True, False]}
