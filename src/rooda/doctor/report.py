"""What the doctor found, for people."""

import platform
from collections.abc import Iterable, Iterator

from rooda import __version__
from rooda.doctor.agent_report import AgentReport
from rooda.doctor.examine import Examination
from rooda.doctor.findings import Finding, Mark
from rooda.text.controls import one_line
from rooda.text.numbers import count
from rooda.views.table import render_table

_TITLES = ("", "AGENT", "VERSION", "READ AS", "PROGRAM")
_WIDTH = max(len(mark) for mark in Mark)


def render(found: Examination) -> str:
    """The whole report."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    parts = [
        f"rooda {__version__}, Python {platform.python_version()}, {system}\n",
        render_table(_TITLES, [_row(agent) for agent in found.agents], whole=True),
        *(_details(agent) for agent in found.agents if agent.mark is not Mark.ABSENT),
        f"This machine:\n{lines(found.machine)}",
        _summary(found),
    ]
    return "\n".join(parts)


def _row(agent: AgentReport) -> tuple[str, ...]:
    if agent.path is None:
        why = next((f"{one.text} ({one.advice})" for one in agent.findings), "")
        return (str(agent.mark), agent.name, "-", "-", why)
    known = agent.adapter if agent.adapter == agent.form else f"{agent.adapter} {agent.form}"
    return (str(agent.mark), agent.name, agent.version or "?", known, agent.path)


def _details(agent: AgentReport) -> str:
    return f"{one_line(agent.name)}: {one_line(agent.command)}\n{lines(_all(agent))}"


def _all(agent: AgentReport) -> Iterator[Finding]:
    """The findings, and what is worth knowing beside them."""
    if agent.chosen_by:
        yield Finding("chosen", Mark.OK, f"chosen by {', '.join(agent.chosen_by)}")
    in_table = ("program", "version") if agent.path is not None else ()
    for one in agent.findings:
        if one.mark is not Mark.OK or one.topic not in in_table:
            yield one
    if agent.path is not None:
        yield Finding("account", Mark.OK, f"who pays: {agent.account.text}")
    if agent.dropped:
        names = ", ".join(agent.dropped)
        yield Finding("dropped", Mark.OK, f"not passed on, lest it refuse to be nested: {names}")


def lines(findings: Iterable[Finding]) -> str:
    """A line each, with how to mend it below."""
    text = ""
    for one in findings:
        text += f"  {one.mark:<{_WIDTH}}  {one_line(one.text)}\n"
        if one.advice:
            text += f"  {'':<{_WIDTH}}  {one_line(one.advice)}\n"
    return text


def _summary(found: Examination) -> str:
    if found.problems:
        return f"{count(found.problems, 'problem')} found: see above how to mend it.\n"
    if not any(agent.chosen_by for agent in found.agents):
        return "Nothing is broken. No agent is chosen yet: see `rooda init`, or --ai-cmd-alias.\n"
    return "Nothing is broken. `rooda doctor --canary ALIAS` runs an agent once, to be sure.\n"
