"""The reports of the doctor and of the canary as text."""

import platform
from collections.abc import Iterable, Iterator

from rooda import __version__
from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.base.system import system_name
from rooda.base.times import format_seconds
from rooda.front.doctor.agent_checks import AgentExamination
from rooda.front.doctor.canary import Canary, CanaryReport
from rooda.front.doctor.examine import Examination
from rooda.front.doctor.findings import Finding, Mark
from rooda.views.terminal.table import plain_table

_TITLES = ("", "AGENT", "VERSION", "READ AS", "PROGRAM")
_WIDTH = max(len(mark) for mark in Mark)
_TRY = (
    "`rooda doctor --canary ALIAS` runs an agent once, to be sure; `rooda selftest` tries what "
    "rooda does about misbehaving agents on this machine."
)
_CHOOSE = (
    "No agent is chosen yet: choose one for each run with `rooda PROCEDURE -a NAME`, or as "
    "`loop.ai_cmd_alias` in rooda-config.yml (`rooda init` writes that file)."
)
_INSTALL = (
    "No agent was found: install one (the table shows how), or name the command of your own agent "
    "with --ai-cmd, or as `loop.ai_cmd` in rooda-config.yml (`rooda init` writes that file).\n"
)


def examination_text(found: Examination) -> str:
    """Return the report of `rooda doctor`."""
    parts = [
        f"rooda {__version__}, Python {platform.python_version()}, {system_name()}\n",
        plain_table(_TITLES, [_row(agent) for agent in found.agents]),
        *(_details(agent) for agent in found.agents if agent.mark is not Mark.ABSENT),
        f"This machine:\n{_lines(found.machine)}",
        *([f"The fleet:\n{_lines(found.fleet)}"] if found.fleet else []),
        _summary(found),
    ]
    return "\n".join(parts)


def _row(agent: AgentExamination) -> tuple[str, ...]:
    if agent.path is None:
        why = next((f"{one.text} ({one.advice})" for one in agent.findings), "")
        return (str(agent.mark), agent.name, "-", "-", why)
    read_as = agent.adapter if agent.adapter == agent.form else f"{agent.adapter} {agent.form}"
    return (str(agent.mark), agent.name, agent.version or "?", read_as, agent.path)


def _details(agent: AgentExamination) -> str:
    return f"{one_line(agent.name)}: {one_line(agent.command)}\n{_lines(_all(agent))}"


def _all(agent: AgentExamination) -> Iterator[Finding]:
    """Yield the findings that are not in the table, the settings and the account."""
    if agent.chosen_by:
        yield Finding("chosen", Mark.OK, f"chosen by {', '.join(agent.chosen_by)}")
    in_table = ("program", "version") if agent.path is not None else ()
    for one in agent.findings:
        if one.mark is not Mark.OK or one.topic not in in_table:
            yield one
    if agent.path is not None:
        yield Finding("account", Mark.OK, f"account: {agent.account.text}")
    if agent.dropped:
        text = "not passed on, because it may refuse to run inside another agent: "
        yield Finding("dropped", Mark.OK, text + ", ".join(agent.dropped))


def _lines(findings: Iterable[Finding]) -> str:
    """Return a line for each finding, with its advice on the next line."""
    text = ""
    for one in findings:
        text += f"  {one.mark:<{_WIDTH}}  {one_line(one.text)}\n"
        if one.advice:
            text += f"  {'':<{_WIDTH}}  {one_line(one.advice)}\n"
    return text


def _summary(found: Examination) -> str:
    if found.problems:
        return f"{count(found.problems, 'problem')} found: the lines above say what to do.\n"
    if not any(agent.path for agent in found.agents):
        return _INSTALL
    warned = f", but {count(found.warnings, 'warning')}" if found.warnings else ""
    is_chosen = any(agent.chosen_by for agent in found.agents)
    return f"No problems found{warned}. {_TRY if is_chosen else _CHOOSE}\n"


# -- the canary ------------------------------------------------------------------------------


def canary_introduction(canary: Canary) -> str:
    """Return the announcement of a trial, for the user to read before it starts."""
    limit = "" if canary.timeout is None else f", for at most {format_seconds(canary.timeout)}"
    return (
        f"This runs {canary.agent.name} once, for real, in a scratch repository{limit}. "
        "It costs what a short session costs.\n"
        f"  Command:  {canary.command}\n"
        f"  Account:  {canary.account.text}\n{_config_errors(canary)}"
    )


def _config_errors(canary: Canary) -> str:
    if not canary.config_errors:
        return ""
    found = count(canary.config_errors, "error")
    return f"  Ignored:  {found} in the configuration (see `rooda config check`)\n"


def canary_text(report: CanaryReport) -> str:
    """Return the report of a trial."""
    name = report.canary.agent.name
    text = f"{name}:\n{_lines(report.findings)}\n"
    if report.ok:
        return f"{text}{name} can do what a run needs.\n"
    return (
        f"{text}{name} can't do what a run needs: the lines above say what to do.\n"
        f"The folder is kept: {report.kept} (prompt and output are below record/runs)\n"
    )
