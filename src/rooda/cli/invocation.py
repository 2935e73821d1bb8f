"""How a run was started: its flags for the record, and the command that continues it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rooda.cli.app import RESERVED
from rooda.loop.stops import Rule
from rooda.record.given import Given

if TYPE_CHECKING:
    from rooda.cli.resuming import TakenUp

# After these ends there is nothing to continue, or the user has what they asked for.
_AT_THE_END = (Rule.SIGNAL, Rule.MAX_ITERATIONS)
_BUDGETS = {
    Rule.MAX_COST: "--max-cost",
    Rule.MAX_TOKENS: "--max-tokens",
    Rule.MAX_DURATION: "--max-duration",
}


@dataclass(frozen=True, slots=True)
class Front:
    """The commands with which the user starts a run and continues it.

    `limits` are the flags of the command that raise the limit of a rule.
    """

    start: str
    resume: str  # with {run}
    limits: Mapping[Rule, str] = field(default_factory=dict)

    def continuing(self, run: str, rule: Rule | None = None, limit: str = "MORE") -> str:
        """The command that continues the run; of a rule with a higher limit."""
        command = self.resume.format(run=run)
        flag = None if rule is None else self.limits.get(rule)
        return command if flag is None else f"{command} {flag} {limit}"

    def after(self, run: str, rule: Rule) -> str:
        """The command that continues a run that a rule has ended; empty where there is none."""
        if rule in _AT_THE_END or (rule in _BUDGETS and rule not in self.limits):
            return ""
        return self.continuing(run, rule if rule in _BUDGETS else None)


def rooda_front(procedure: str) -> Front:
    """The commands for a procedure; one with the name of a command needs `run`."""
    start = f"rooda run {procedure}" if procedure in RESERVED else f"rooda {procedure}"
    return Front(start, "rooda resume {run}", {Rule.MAX_ITERATIONS: "-n", **_BUDGETS})


@dataclass(frozen=True, slots=True)
class Invocation:
    """One start of the command line."""

    front: Front
    given: Given
    taken_up: "TakenUp | None" = None  # the earlier run that goes on
