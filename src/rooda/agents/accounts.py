"""Which account pays for an agent. Variables are told by their names, never by their values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rooda.agents.adapter import Facts

_OFF = ("", "0", "false", "no", "off")


def is_on(environ: Mapping[str, str], name: str) -> bool:
    """Whether a variable is set to anything that does not mean no."""
    return environ.get(name, "").strip().lower() not in _OFF


@dataclass(frozen=True, slots=True)
class Account:
    """The variables that are set and decide who pays, with what each means; or what does else."""

    variables: tuple[tuple[str, str], ...]
    otherwise: str

    @property
    def text(self) -> str:
        """For people."""
        if not self.variables:
            return self.otherwise
        return "; ".join(f"{name} is set: {meaning}" for name, meaning in self.variables)

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return {"variables": [name for name, _ in self.variables], "text": self.text}


def account_of(facts: Facts, environ: Mapping[str, str]) -> Account:
    """Who pays for a CLI in its environment."""
    found = tuple((name, meaning) for name, meaning in facts.payers.items() if is_on(environ, name))
    return Account(found, facts.otherwise)


def passed_on(facts: Facts, environ: Mapping[str, str], kept: Iterable[str] = ()) -> dict[str, str]:
    """The environment without what would make the CLI refuse to run inside of another."""
    gone = dropped(facts, environ, kept)
    return {name: value for name, value in environ.items() if name not in gone}


def dropped(facts: Facts, environ: Mapping[str, str], kept: Iterable[str] = ()) -> tuple[str, ...]:
    """The variables that are set and that the CLI won't see, lest it refuse to be nested.

    `kept` are those that the configuration itself sets: whoever writes one there means it.
    """
    meant = set(kept)
    return tuple(name for name in facts.nesting if name in environ and name not in meant)
