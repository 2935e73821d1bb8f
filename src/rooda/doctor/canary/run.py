"""The canary from beginning to end: a folder, one run, a look, and nothing left."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rooda.agents.launching import own_words
from rooda.config.settings import SIGNALS_SUCCESS
from rooda.doctor.canary import trial
from rooda.doctor.canary.choice import Canary
from rooda.doctor.canary.errand import Errand
from rooda.doctor.canary.evidence import Evidence, gather
from rooda.doctor.canary.scratch import Scratch
from rooda.doctor.canary.verdict import judge
from rooda.doctor.command_line import missing_grant
from rooda.doctor.findings import Finding, Mark, is_broken
from rooda.loop.agent_events import AgentSaid
from rooda.process.interrupts import Interrupts

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """The report. `kept` is the folder, where it was kept for somebody to look at."""

    canary: Canary
    evidence: Evidence
    findings: tuple[Finding, ...]
    kept: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether the agent can do all that a run needs of it."""
        return not is_broken(self.findings)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        evidence, failure = self.evidence, self.evidence.failure
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.ok,
            "agent": self.canary.agent.name,
            "command": self.canary.command,
            "findings": [one.to_json() for one in self.findings],
            "failure": failure and str(failure.kind),
            "duration": round(evidence.duration, 3),
            "exit_after_result": evidence.exit_after,
            **evidence.usage.to_json(),
            "left_behind": [self.canary.discreet(one.name) for one in evidence.cleaned_up],
            "account": self.canary.account.to_json(),
            "kept": self.kept and str(self.kept),
        }


def run_canary(
    canary: Canary, interrupts: Interrupts, show: Callable[[AgentSaid], None]
) -> CanaryReport | None:
    """Run it in a scratch repository; None if somebody interrupted it. Raises OSError.

    The folder is taken away, unless something went wrong that is worth a look.
    """
    here, agent = canary.here, canary.agent
    errand = Errand.new(str(here.values[SIGNALS_SUCCESS]))
    scratch = Scratch(here.tools)
    keep = False
    try:
        if interrupts.received:
            return None  # before it costs anything
        found = trial.run(
            agent, errand, scratch.folder, here.values, here.environ, interrupts, show
        )
        if interrupts.received:
            return None
        report = _report(canary, gather(found, errand, scratch, agent.program), scratch)
        keep = not report.ok
        return replace(report, kept=scratch.folder) if keep else report
    finally:
        if not keep:
            scratch.remove()


def _report(canary: Canary, evidence: Evidence, scratch: Scratch) -> CanaryReport:
    grant = missing_grant(own_words(canary.agent.argv))
    findings = judge(evidence, grant)
    if scratch.trouble:
        text = f"it ran in a folder that is no repository: {scratch.trouble}"
        findings.append(Finding("repository", Mark.WARNING, text, "See `rooda doctor` about git"))
    findings.append(Finding("account", Mark.OK, f"who pays: {canary.account.text}"))
    discreet = [replace(one, text=canary.discreet(one.text)) for one in findings]
    return CanaryReport(canary, evidence, tuple(discreet))
