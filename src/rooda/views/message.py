"""What is said of an event: words, and fields in their order."""

from msgspec import Struct

Field = tuple[str, str | int | float | bool | None]


class Message(Struct, frozen=True):
    """Words, and fields in their order; a field without a value is left out."""

    words: str
    fields: tuple[Field, ...] = ()
