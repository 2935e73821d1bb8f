"""A kind of setting that is true, false, or left to rooda."""

from rooda.config.kinds import Boolean, Kind, Schema, WrongValue, brief

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
