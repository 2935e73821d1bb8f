"""`rooda doctor --canary`: runs an agent once in a scratch repository, and reports on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.problems import InvalidInput, Problem, errors
from rooda.front.doctor.canary_trial import OFF, CanaryTask, ScratchRepository, run_trial
from rooda.front.doctor.canary_verdict import Evidence, gather, judge
from rooda.front.doctor.doctor_context import DoctorContext, DoctorOptions
from rooda.front.doctor.findings import Finding, Mark, has_problem, shown_command, without_secrets
from rooda.loop.events.agent import AgentSaid
from rooda.plan.command import Agent, AgentChoice, choice_problems, choose, command_of, split
from rooda.plan.settings.settings import AI_CMD, AI_CMD_ALIAS, ITERATION_TIMEOUT, SIGNALS_SUCCESS
from rooda.plan.world import World
from rooda.world.agents.agent_program import own_words, program_name
from rooda.world.agents.facts import Account, account_of
from rooda.world.agents.registry import KNOWN
from rooda.world.process.interrupts import Interrupts

SCHEMA_VERSION = 1
TIMEOUT = "5m"
_OWN_FLAGS = ("--timeout", "--ai-cmd", "--canary", "--config")


class Canary(Struct, frozen=True):
    """The agent to try, with a command that works in any folder, and the account that pays.

    `config_errors` is the number of errors in the configuration.
    """

    agent: Agent
    context: DoctorContext
    account: Account
    config_errors: int = 0

    @property
    def command(self) -> str:
        """The command without secrets."""
        return self.without_secrets(shown_command(self.agent.argv))

    def without_secrets(self, text: str) -> str:
        """Return the text without the values of the agent's secret variables."""
        return without_secrets(text, self.context.environ_of(self.agent))

    @property
    def timeout(self) -> float | None:
        """The seconds that the agent may take."""
        return self.context.values[ITERATION_TIMEOUT]


def choose_canary(
    world: World, config: str | None, alias: str, command: str, timeout: str
) -> Canary:
    """Return the agent to try: an alias, a command, or by default the agent of the loop.

    Raises InvalidInput with all problems of the arguments.
    """
    flags = {**OFF, ITERATION_TIMEOUT.key: ("--timeout", timeout)}
    if alias:
        flags |= {AI_CMD_ALIAS.key: ("--canary", alias)}
    if command:
        flags |= {AI_CMD.key: ("--ai-cmd", command)}
    problems: list[Problem] = []
    context = DoctorContext.read(world, DoctorOptions(config, flags), problems)
    if context.values[SIGNALS_SUCCESS] is None:
        # The configuration turns signals off, but the canary has to send one.
        flags |= {SIGNALS_SUCCESS.key: ("--canary", str(SIGNALS_SUCCESS.default))}
        context = DoctorContext.read(world, DoctorOptions(config, flags), [])
    wrong = [one for one in errors(problems) if one.field in _OWN_FLAGS]
    agent = _chosen_agent(context, wrong)
    if agent is None or errors(wrong):
        raise InvalidInput(errors(wrong))
    account = account_of(agent.program.adapter.facts, context.environ_of(agent))
    return Canary(agent, context, account, len(errors(problems)))


def _chosen_agent(context: DoctorContext, problems: list[Problem]) -> Agent | None:
    choice = choose(context.layers, "")
    if choice == AgentChoice():
        advice = "Name one: rooda doctor --canary claude"
        problems.append(Problem("no agent is chosen here", advice))
        return None
    problems += choice_problems(context.layers, choice, "")
    command = command_of(context.layers, choice)
    if command is None:
        return None
    argv = split(command.text, command.origin, command.field, problems)
    return Agent.of(command, _portable(argv, context.working_dir)) if argv else None


def _portable(argv: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return the words, with absolute paths for files in this folder."""
    program, *rest = argv
    first = _absolute(program, folder) if "/" in program else program  # else found on the PATH
    return (first, *(_absolute(one, folder) if "/" in one or "." in one else one for one in rest))


def _absolute(word: str, folder: Path) -> str:
    path = folder / word
    try:
        return str(path.absolute()) if path.is_file() else word
    except (OSError, ValueError):
        return word


class CanaryReport(Struct, frozen=True):
    """The result of a trial. `kept` is the scratch folder if rooda kept it for the user."""

    canary: Canary
    evidence: Evidence
    findings: tuple[Finding, ...]
    kept: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether the agent can do everything that a run needs."""
        return not has_problem(self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return all fields under their names in the JSON output."""
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
            "left_behind": [self.canary.without_secrets(one.name) for one in evidence.cleaned_up],
            "account": self.canary.account.to_json(),
            "kept": self.kept and str(self.kept),
        }


def run_canary(
    canary: Canary, interrupts: Interrupts, show: Callable[[AgentSaid], None]
) -> CanaryReport | None:
    """Run the agent in a scratch repository; return None if the user interrupted the trial.

    The folder is deleted unless there is a problem. Raises OSError.
    """
    context, agent = canary.context, canary.agent
    task = CanaryTask.new(str(context.values[SIGNALS_SUCCESS]))
    scratch = ScratchRepository(context.tools)
    keep = False
    try:
        if interrupts.received:
            return None  # before the agent incurs any cost
        result = run_trial(
            agent, task, scratch.folder, context.values, context.environ, interrupts, show
        )
        if interrupts.received:
            return None
        report = _report(canary, gather(result, task, scratch, agent.program), scratch)
        keep = not report.ok
        return replace(report, kept=scratch.around) if keep else report
    finally:
        if not keep:
            scratch.remove()


def _report(canary: Canary, evidence: Evidence, scratch: ScratchRepository) -> CanaryReport:
    words = own_words(canary.agent.argv)
    known = KNOWN.get(program_name(words))
    findings = judge(evidence, known.permissions.missing_flag(words) if known else "")
    if scratch.trouble:
        text = f"it ran in a folder that is not a repository: {scratch.trouble}"
        findings.append(Finding("repository", Mark.WARNING, text, "See `rooda doctor` about git"))
    findings.append(Finding("account", Mark.OK, f"account: {canary.account.text}"))
    shown = [replace(one, text=canary.without_secrets(one.text)) for one in findings]
    return CanaryReport(canary, evidence, tuple(shown))
