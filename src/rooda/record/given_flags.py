"""The command line of a run, kept so that the user can continue the run with the same flags.

The record is private to the user. Views show `masked` alone: values can be secrets.
"""

from msgspec import Struct

from rooda.config.sensitive import HIDDEN, without_secret_values
from rooda.config.setting import UNSET
from rooda.config.settings import ENV

_MOST_WORDS = 2  # a flag and its value


class GivenFlags(Struct, frozen=True):
    """The flags, each as one word or as a word and its value, and the other arguments.

    `folder` is where the command was started, relative to the workspace.
    """

    flags: tuple[tuple[str, ...], ...]
    arguments: tuple[str, ...]
    folder: str

    def trouble(self) -> str:
        """What is wrong with words that rooda can't have written (an agent can); else empty."""
        for words in self.flags:
            is_flag = words and words[0].startswith("--") and words[0] != "--"
            if not is_flag or len(words) > _MOST_WORDS:
                return "not every flag is a flag with at most one value"
        every = (*(word for words in self.flags for word in words), *self.arguments, self.folder)
        return "a word has a NUL character" if any("\0" in word for word in every) else ""

    def masked(self) -> tuple[str, ...]:
        """The words for a view, without the values of variables and secrets."""
        flags = [word for words in self.flags for word in _masked(words)]
        return (*flags, *map(without_secret_values, self.arguments))


NO_FLAGS = GivenFlags((), (), ".")


def masked_flags(given: object) -> list[str] | None:
    """The recorded flags for a view; None where there are none that can be shown."""
    if not isinstance(given, GivenFlags) or given.trouble():
        return None
    return list(given.masked())


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
