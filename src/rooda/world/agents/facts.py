"""Facts about an agent CLI that its output does not show, and their effect in an environment.

Messages name environment variables and never show their values.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from rooda.world.agents.failure_kinds import FailureKind

_OFF = ("", "0", "false", "no", "off")


class AgentFacts(Struct, frozen=True):
    """What rooda knows about a CLI apart from its output.

    `install` is a command or a sentence that says how to install the CLI.
    `nesting` lists the variables by which the CLI detects that it runs inside another agent; some
    CLIs then refuse to start. `payers` maps the variables that select the paying account to a
    description of that account; `otherwise` describes the account if none of them is set.
    `tells_cost`: the output contains the cost in dollars. `speaks_on_stderr`: the assistant's
    answer may also be on standard error. `advice` tells the user what to do about a failure.
    """

    install: str
    nesting: tuple[str, ...] = ()
    payers: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = "its own login"
    tells_cost: bool = False
    speaks_on_stderr: bool = False
    advice: Mapping[FailureKind, str] = field(default_factory=dict)


class Account(Struct, frozen=True):
    """The account that pays for a CLI.

    `variables` are the variables that are set and select the account, each with a description;
    `otherwise` describes the account that pays without such variables.
    """

    variables: tuple[tuple[str, str], ...]
    otherwise: str

    @property
    def text(self) -> str:
        """The account as a phrase."""
        if not self.variables:
            return self.otherwise
        return "; ".join(f"{name} is set: {meaning}" for name, meaning in self.variables)

    def to_json(self) -> dict[str, object]:
        """Return the names of the variables, and the account as a phrase."""
        return {"variables": [name for name, _ in self.variables], "text": self.text}


def is_enabled(environ: Mapping[str, str], name: str) -> bool:
    """Return whether a variable is set to a value other than `0`, `false`, `no`, `off` or ""."""
    return environ.get(name, "").strip().lower() not in _OFF


def account_of(facts: AgentFacts, environ: Mapping[str, str]) -> Account:
    """Return the account that pays for a CLI in this environment."""
    found = tuple(
        (name, meaning) for name, meaning in facts.payers.items() if is_enabled(environ, name)
    )
    return Account(found, facts.otherwise)


def passed_on(
    facts: AgentFacts, environ: Mapping[str, str], kept: Iterable[str] = ()
) -> dict[str, str]:
    """Return the environment without the variables that `dropped` lists."""
    gone = dropped(facts, environ, kept)
    return {name: value for name, value in environ.items() if name not in gone}


def dropped(
    facts: AgentFacts, environ: Mapping[str, str], kept: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the variables that rooda removes, because the CLI may refuse to run nested.

    `kept` are the variables that the configuration sets; they are never removed.
    """
    wanted = set(kept)
    return tuple(name for name in facts.nesting if name in environ and name not in wanted)
