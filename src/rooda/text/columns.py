"""How many columns of a terminal a text takes, and texts that fit into some columns. Pure."""

import unicodedata

_ELLIPSIS = "…"
_EMOJI_STYLE = "\ufe0f"  # after a narrow character: many terminals then show a wide emoji
_NO_WIDTH = ("Mn", "Me", "Cf")  # marks on the character before, and invisible characters


def columns(text: str) -> int:
    """Return how many columns the text takes at most; a wide character takes two."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def cut(text: str, most: int) -> str:
    """Return the text in at most so many columns; `…` stands for the part that is cut off."""
    if len(text) * 2 <= most or columns(text) <= most:
        return text
    room = most - 1
    end = 0
    for character in text:
        room -= _columns_of(character)
        if room < 0:
            break
        end += 1
    return f"{text[:end].rstrip()}{_ELLIPSIS}" if most > 0 else ""


def _columns_of(character: str) -> int:
    if character.isascii() or character == _EMOJI_STYLE:
        return 1
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
