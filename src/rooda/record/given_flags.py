"""The command line of a run, kept so that the user can continue the run with the same flags.

The record is private to the user. Views show `masked` alone: values can be secrets.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from rooda.base.secrets.sensitive import HIDDEN, without_secret_values
from rooda.plan.settings.setting import UNSET
from rooda.plan.settings.settings import ENV

_MOST_WORDS = 2  # a flag and its value


class GivenFlags(Struct, frozen=True):
    """The flags, each as one word or as a word and its value, and the other arguments.

    `folder` is where the command was started, relative to the workspace. `left_out` are flags
    whose values may be secrets, so that they were not taken along to another record.
    """

    flags: tuple[tuple[str, ...], ...]
    arguments: tuple[str, ...]
    folder: str
    left_out: tuple[str, ...] = ()

    def trouble(self) -> str:
        """What is wrong with words that rooda can't have written (an agent can); else empty."""
        for words in self.flags:
            is_flag = words and words[0].startswith("--") and words[0] != "--"
            if not is_flag or len(words) > _MOST_WORDS:
                return "not every flag is a flag with at most one value"
        flat = (word for words in self.flags for word in words)
        every = (*flat, *self.arguments, self.folder, *self.left_out)
        return "a word has a NUL character" if any("\0" in word for word in every) else ""

    def variables(self) -> dict[str, str]:
        """The variables that the flags set. Their values can be secrets."""
        given = (words[1] for words in self.flags if words[:1] == (ENV.flag_name,) and words[1:])
        pairs = (text.partition("=") for text in given)
        return {name: value for name, equals, value in pairs if equals}

    def masked(self) -> tuple[str, ...]:
        """The words for a view, without the values of variables and secrets."""
        flags = [word for words in self.flags for word in _masked(words)]
        return (*flags, *map(without_secret_values, self.arguments))

    def without_secrets(self) -> "GivenFlags":
        """The flags for another place: without the values of variables and secrets."""
        kept = tuple(words for words in self.flags if _masked(words) == words)
        gone = tuple(_name_of(words) for words in self.flags if words not in kept)
        arguments = tuple(map(without_secret_values, self.arguments))
        return GivenFlags(kept, arguments, ".", (*self.left_out, *gone))


def split_flags(words: Sequence[str]) -> GivenFlags:
    """The words of a command line without arguments as flags, each with its value."""
    flags: list[tuple[str, ...]] = []
    for word in words:
        if word.startswith(f"{ENV.flag_name}="):
            flags.append((ENV.flag_name, word.partition("=")[2]))
        elif word.startswith("--") or not flags or len(flags[-1]) == _MOST_WORDS:
            flags.append((word,))
        else:
            flags[-1] = (*flags[-1], word)
    return GivenFlags(tuple(flags), (), ".")


def missing_now(left_out: Iterable[str], now: "GivenFlags") -> list[str]:
    """Those of the flags that were left out which are not given now."""
    names = {_name_of(words) for words in now.flags} | {words[0] for words in now.flags}
    return [one for one in dict.fromkeys(left_out) if one not in names]


def _name_of(words: tuple[str, ...]) -> str:
    """The name of a flag; of a variable with its name: `--env TOKEN`."""
    flag, *values = words
    if flag != ENV.flag_name or not values:
        return without_secret_values(flag.partition("=")[0])
    return f"{flag} {values[0].partition('=')[0]}"


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
    return tuple(map(without_secret_values, words))


def _masked_assignment(text: str) -> str:
    name, equals, _ = text.partition("=")
    if equals:
        return f"{name}={HIDDEN}"
    return text if text == UNSET else HIDDEN
