"""What is said of an event: words, and fields in their order."""

from dataclasses import dataclass

Field = tuple[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True)
class Message:
    """Words, and fields in their order; a field without a value is left out."""

    words: str
    fields: tuple[Field, ...] = ()
