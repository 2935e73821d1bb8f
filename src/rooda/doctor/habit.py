"""What a CLI needs of its command line where nobody is there to answer, as data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rooda.doctor.findings import Mark

Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Situation:
    """The words of a CLI's command from its name on, its environment, and who we are."""

    words: Words
    environ: Mapping[str, str]
    is_root: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """One of these words must be there, or else; and what to write."""

    words: tuple[str, ...]
    otherwise: str
    write: str


@dataclass(frozen=True, slots=True)
class Spoiler:
    """These words must not be there: what they do."""

    words: tuple[str, ...]
    does: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that only one CLI knows; the check is true where it goes wrong."""

    topic: str
    mark: Mark
    goes_wrong: Callable[[Situation], bool]
    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class Habits:
    """What a CLI needs to read its prompt from standard input, and to use its tools unasked.

    A grant is a flag, `flag=value`, or `*word` for a word anywhere in the command; `some` are those
    that allow a part of the tools.
    """

    grants: tuple[str, ...]
    some: tuple[str, ...]
    without: str  # what becomes of a tool that nobody allowed
    needs: tuple[Need, ...] = ()
    spoilers: tuple[Spoiler, ...] = ()
    rules: tuple[Rule, ...] = ()
