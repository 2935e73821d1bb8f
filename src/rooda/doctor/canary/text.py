"""The canary's report, for people."""

from rooda.doctor.canary.choice import Canary
from rooda.doctor.canary.run import CanaryReport
from rooda.doctor.report import lines
from rooda.text.numbers import count
from rooda.text.times import format_seconds


def introduction(canary: Canary) -> str:
    """What is going to happen, before it does."""
    limit = "" if canary.timeout is None else f", for at most {format_seconds(canary.timeout)}"
    return (
        f"This runs {canary.agent.name} once, for real, in a scratch repository{limit}. "
        "It costs what a short session costs.\n"
        f"  Command:  {canary.command}\n"
        f"  Who pays: {canary.account.text}\n{_config(canary)}"
    )


def _config(canary: Canary) -> str:
    if not canary.config_errors:
        return ""
    found = count(canary.config_errors, "error")
    return f"  Without:  {found} of the configuration (see `rooda config check`)\n"


def render(report: CanaryReport) -> str:
    """Line by line, and where to look if something is wrong."""
    text = f"{report.canary.agent.name}:\n{lines(report.findings)}\n"
    if report.ok:
        return f"{text}{report.canary.agent.name} can do what a run needs.\n"
    where = f"The folder is kept: {report.kept} (prompt and output are below .rooda/runs)"
    return f"{text}Something is wrong: see above how to mend it.\n{where}\n"
