"""The command line of a run, kept so that the user can continue the run with the same flags.

The record is private to the user. Views show `masked` alone: values can be secrets.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from rooda.config.sensitive import HIDDEN, without_secret_values
from rooda.config.setting import UNSET
from rooda.config.settings import ENV

KEY = "given"  # in the data of a run's row
_MOST_WORDS = 2  # a flag and its value


class Given(Struct, frozen=True):
    """The flags, each as one word or as a word and its value, and the other arguments.

    `folder` is where the command was started, relative to the workspace.
    """

    flags: tuple[tuple[str, ...], ...] = ()
    arguments: tuple[str, ...] = ()
    folder: str = "."

    def to_json(self) -> dict[str, Any]:
        """What the record keeps."""
        return {
            "flags": [list(words) for words in self.flags],
            "arguments": list(self.arguments),
            "folder": self.folder,
        }

    @classmethod
    def from_json(cls, data: object) -> "Given":
        """What the record kept. Raises ValueError for data that rooda has not written."""
        if not isinstance(data, dict):
            raise ValueError("it is not an object")  # noqa: TRY004 - one error for all
        flags = tuple(_texts(words) for words in _list(data.get("flags")))
        for words in flags:
            is_flag = words and words[0].startswith("--") and words[0] != "--"
            if not is_flag or len(words) > _MOST_WORDS:
                raise ValueError("not every flag is a flag with at most one value")
        (folder,) = _texts([data.get("folder")])
        return cls(flags, _texts(data.get("arguments")), folder)

    def masked(self) -> tuple[str, ...]:
        """The words for a view, without the values of variables and secrets."""
        flags = [word for words in self.flags for word in _masked(words)]
        return (*flags, *map(without_secret_values, self.arguments))


def masked_in(data: Mapping[str, Any]) -> list[str] | None:
    """The flags in the data of a run's row, for a view; None where none can be shown."""
    try:
        return list(Given.from_json(data[KEY]).masked())
    except (KeyError, ValueError):
        return None


def _masked(words: tuple[str, ...]) -> tuple[str, ...]:
    flag, *values = words
    if flag == ENV.flag_name:
        return (flag, *map(_masked_assignment, values))
    return (flag, *map(without_secret_values, values))


def _masked_assignment(text: str) -> str:
    name, equals, _ = text.partition("=")
    if equals:
        return f"{name}={HIDDEN}"
    return text if text == UNSET else HIDDEN


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("a list is missing")  # noqa: TRY004 - one error for all
    return value


def _texts(value: object) -> tuple[str, ...]:
    texts = _list(value)
    if not all(isinstance(text, str) and "\0" not in text for text in texts):
        raise ValueError("not every word is a text")
    return tuple(texts)
