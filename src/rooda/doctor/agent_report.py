"""What can be said of one agent: where its program is, how it will behave, and who pays."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rooda.agents.accounts import Account, account_of
from rooda.agents.launching import own_words, program_name
from rooda.agents.registry import KNOWN
from rooda.config.command import Agent
from rooda.doctor.chosen import Candidate
from rooda.doctor.command_line import look_at
from rooda.doctor.discretion import shown_command, without_secrets
from rooda.doctor.findings import Finding, Mark, softened, worst
from rooda.doctor.habit import Situation
from rooda.doctor.programs import Place
from rooda.doctor.surroundings import Circumstances
from rooda.doctor.versions import Version


@dataclass(frozen=True, slots=True)
class Seen:
    """What was looked at for an agent: its program, what it lacks, and its version."""

    agent: Agent
    place: Place
    interpreter: Finding | None = None
    version: Version | None = None  # None: it was not asked
    in_work_tree: bool = False


@dataclass(frozen=True, slots=True)
class AgentReport:
    """All of it, for people and for programs."""

    name: str
    command: str
    source: str
    chosen_by: tuple[str, ...]
    path: str | None
    version: str | None
    adapter: str
    form: str
    account: Account
    dropped: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def mark(self) -> Mark:
        """How it stands."""
        return worst(self.findings)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.name,
            "mark": str(self.mark),
            "command": self.command,
            "source": self.source,
            "chosen_by": list(self.chosen_by),
            "path": self.path,
            "version": self.version,
            "adapter": self.adapter,
            "output": self.form,
            "account": self.account.to_json(),
            "dropped_variables": list(self.dropped),
            "findings": [one.to_json() for one in self.findings],
        }


def report_on(candidate: Candidate, seen: Seen, around: Circumstances) -> AgentReport:
    """Put together what was seen. Pure."""
    agent, chosen = seen.agent, bool(candidate.chosen_by)
    environ = around.environ_of(agent)
    findings = list(_findings(seen, environ, around, chosen=chosen))
    return AgentReport(
        name=agent.name,
        command=without_secrets(shown_command(agent.argv), environ),
        source=candidate.source,
        chosen_by=candidate.chosen_by,
        path=seen.place.path,
        version=_discreet(seen.version, environ),
        adapter=agent.program.adapter.name,
        form=str(agent.program.form),
        account=account_of(agent.program.adapter.facts, environ),
        dropped=around.dropped(agent),
        findings=tuple(findings if chosen else softened(findings)),
    )


def unreadable(candidate: Candidate, trouble: str, advice: str) -> AgentReport:
    """Of a command that has no words: nothing else can be said of it."""
    findings = [Finding("command", Mark.PROBLEM, trouble, advice)]
    name = candidate.command.alias or candidate.command.field
    plain = Account((), "")
    return AgentReport(
        *(name, "", candidate.source, candidate.chosen_by, None, None, "text", "text", plain, ()),
        findings=tuple(findings if candidate.chosen_by else softened(findings)),
    )


def _findings(
    seen: Seen, environ: Mapping[str, str], around: Circumstances, *, chosen: bool
) -> Iterator[Finding]:
    if seen.place.path is None:
        yield _missing(seen, chosen=chosen)
        return
    yield Finding("program", Mark.OK, f"found: {seen.place.path}")
    if seen.interpreter is not None:
        yield seen.interpreter
    elif seen.version is not None:
        yield _version(seen.version, environ)
    elif seen.in_work_tree:
        text = "it is in the work tree, where an agent can change it, so rooda did not run it"
        yield Finding("version", Mark.UNKNOWN, text, "Run it by hand with --version")
    yield from look_at(Situation(own_words(seen.agent.argv), environ, around.is_root))
    yield _reading(seen.agent)


def _missing(seen: Seen, *, chosen: bool) -> Finding:
    place, name = seen.place, program_name(seen.agent.argv)
    if place.trouble:
        return Finding("program", Mark.PROBLEM, place.trouble, place.advice)
    known = KNOWN.get(name)
    advice = known.facts.install if known else "install it, or correct the command"
    mark = Mark.PROBLEM if chosen else Mark.ABSENT
    return Finding("program", mark, f"not installed: {own_words(seen.agent.argv)[0]}", advice)


def _discreet(version: Version | None, environ: Mapping[str, str]) -> str | None:
    """What it said; it may have said anything."""
    if version is None or version.text is None:
        return None
    return without_secrets(version.text, environ)


def _version(version: Version, environ: Mapping[str, str]) -> Finding:
    if (text := _discreet(version, environ)) is not None:
        return Finding("version", Mark.OK, f"version {text}")
    mark = Mark.WARNING if version.can_start else Mark.PROBLEM
    trouble = without_secrets(version.trouble, environ)
    advice = "Run it by hand with --version, or install it again"
    return Finding("version", mark, f"it does not tell its version: {trouble}", advice)


def _reading(agent: Agent) -> Finding:
    program = agent.program
    if not program.is_known:
        text = "rooda does not know this CLI: its exit code and its signals decide"
    elif program.prints_events:
        text = f"its output is read as {program.adapter.name}'s events"
    else:
        text = f"its output is read as {program.adapter.name}'s text: no tokens, no cost"
    return Finding("output", Mark.OK, text)
