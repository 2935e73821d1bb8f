"""Kinds of settings that take true and false besides words."""

from rooda.plan.settings.kinds import Boolean, Kind, Schema, WrongValue, brief
from rooda.plan.settings.text_kinds import OneOf

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
