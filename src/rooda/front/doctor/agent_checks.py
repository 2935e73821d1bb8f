"""Checks every agent in the configuration: its program, its version, its command line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.paths import is_folder
from rooda.base.problems import Problem
from rooda.base.secrets.sensitive import without_secret_values
from rooda.front.doctor.doctor_context import Candidate, DoctorContext, candidates
from rooda.front.doctor.findings import (
    Finding,
    Mark,
    as_warnings,
    shown_command,
    without_secrets,
    worst,
)
from rooda.front.doctor.programs import (
    ProgramPath,
    Version,
    VersionQuestion,
    ask_versions,
    find_program,
    interpreter_trouble,
)
from rooda.plan.command import Agent, split
from rooda.world.agents.adapter import Adapter
from rooda.world.agents.agent_program import own_words, program_name
from rooda.world.agents.facts import Account, CommandLine, FlagRule, account_of, matches
from rooda.world.agents.registry import KNOWN

_DOWNLOADERS = ("npx", "bunx")  # launchers that download programs that are not installed
_NO_ACCOUNT = Account((), "")


class ProgramLookup(Struct, frozen=True):
    """The program of an agent: its path, its missing interpreter, and its version.

    `version` is None if rooda did not ask for it. `in_work_tree`: an agent can change the program.
    """

    agent: Agent
    program: ProgramPath
    interpreter: Finding | None = None
    version: Version | None = None
    in_work_tree: bool = False

    @property
    def can_be_asked(self) -> bool:
        """Whether rooda may run it with --version; an unknown program could start to work."""
        if self.program.path is None or self.interpreter is not None or self.in_work_tree:
            return False
        name = program_name(self.agent.argv)
        return name in KNOWN and Path(self.program.path).name == name


class AgentExamination(Struct, frozen=True):
    """All findings about one agent."""

    name: str
    command: str
    source: str
    chosen_by: tuple[str, ...]
    findings: tuple[Finding, ...]
    path: str | None = None
    version: str | None = None
    adapter: str = "text"
    form: str = "text"
    account: Account = _NO_ACCOUNT
    dropped: tuple[str, ...] = ()

    @property
    def mark(self) -> Mark:
        """The worst mark of the findings."""
        return worst(self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return all fields under their names in the JSON output."""
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


def check_agents(context: DoctorContext, timeout: float) -> list[AgentExamination]:
    """Check every agent; `timeout` limits the seconds a program may take to print its version."""
    lookups = [(one, _look_up(one, context)) for one in candidates(context.layers)]
    folder = context.working_dir if is_folder(context.working_dir) else Path("/")
    versions = ask_versions(
        (
            VersionQuestion(str(lookup.program.path), _version_environ(lookup.agent, context))
            for _, lookup in lookups
            if isinstance(lookup, ProgramLookup) and lookup.can_be_asked
        ),
        folder,
        timeout,
    )
    return [_examination(candidate, lookup, versions, context) for candidate, lookup in lookups]


def _look_up(candidate: Candidate, context: DoctorContext) -> ProgramLookup | Problem:
    command = candidate.command
    problems: list[Problem] = []
    argv = split(command.text, command.origin, command.field, problems)
    if not argv:
        return problems[0]
    agent = Agent.of(command, argv)
    program = _program(agent, context)
    trouble = interpreter_trouble(program.path, context.environ) if program.path else None
    inside = program.path is not None and context.tools.is_in_work_tree(program.path)
    return ProgramLookup(agent, program, trouble, in_work_tree=inside)


def _program(agent: Agent, context: DoctorContext) -> ProgramPath:
    """Find the program of an agent; a launcher in front of it must exist too."""
    first, own = agent.argv[0], own_words(agent.argv)[0]
    launcher = find_program(first, context.working_dir, context.environ)
    if launcher.path is None or own == first:
        return launcher
    inner = find_program(own, context.working_dir, context.environ)
    is_downloaded = inner.path is None and Path(first).name in _DOWNLOADERS
    return launcher if is_downloaded else inner


def _version_environ(agent: Agent, context: DoctorContext) -> dict[str, str]:
    """Return an environment of the agent that names nothing in the work tree.

    Otherwise a script could run an interpreter, or load a library, that an agent put there.
    """
    return {**context.environ_outside(agent), "PATH": context.tools.path}


def _examination(
    candidate: Candidate,
    lookup: ProgramLookup | Problem,
    versions: Mapping[str, Version],
    context: DoctorContext,
) -> AgentExamination:
    if isinstance(lookup, Problem):
        return _unreadable(candidate, lookup)
    if lookup.can_be_asked:
        lookup = replace(lookup, version=versions[str(lookup.program.path)])
    agent, is_chosen = lookup.agent, bool(candidate.chosen_by)
    environ = context.environ_of(agent)
    findings = list(_findings(lookup, environ, is_root=context.is_root, is_chosen=is_chosen))
    return AgentExamination(
        name=without_secret_values(agent.name),
        command=without_secrets(shown_command(agent.argv), environ),
        source=candidate.source,
        chosen_by=candidate.chosen_by,
        findings=tuple(findings if is_chosen else as_warnings(findings)),
        path=lookup.program.path,
        version=_version_text(lookup.version, environ),
        adapter=agent.program.adapter.name,
        form=str(agent.program.form),
        account=account_of(agent.program.adapter.facts, environ),
        dropped=context.dropped(agent),
    )


def _unreadable(candidate: Candidate, problem: Problem) -> AgentExamination:
    """Return the examination of a command that cannot be split into words."""
    findings = [Finding("command", Mark.PROBLEM, problem.message, problem.suggestion)]
    return AgentExamination(
        name=candidate.command.alias or candidate.command.field,
        command="",
        source=candidate.source,
        chosen_by=candidate.chosen_by,
        findings=tuple(findings if candidate.chosen_by else as_warnings(findings)),
    )


def _findings(
    lookup: ProgramLookup, environ: Mapping[str, str], *, is_root: bool, is_chosen: bool
) -> Iterator[Finding]:
    if lookup.program.path is None:
        yield _missing(lookup, is_chosen=is_chosen)
        return
    yield Finding("program", Mark.OK, f"found: {lookup.program.path}")
    if lookup.interpreter is not None:
        yield lookup.interpreter
    elif lookup.version is not None:
        yield _version(lookup.version, environ)
    elif lookup.in_work_tree:
        text = "rooda did not run it: it is in the work tree, where an agent can change it"
        yield Finding("version", Mark.UNKNOWN, text, "Run it by hand with --version")
    yield from check_command_line(CommandLine(own_words(lookup.agent.argv), environ, is_root))
    yield _reading(lookup.agent)


def _missing(lookup: ProgramLookup, *, is_chosen: bool) -> Finding:
    program, name = lookup.program, program_name(lookup.agent.argv)
    if program.trouble:
        return Finding("program", Mark.PROBLEM, program.trouble, program.advice)
    known = KNOWN.get(name)
    advice = known.facts.install if known else "install it, or correct the command"
    mark = Mark.PROBLEM if is_chosen else Mark.ABSENT
    word = without_secret_values(own_words(lookup.agent.argv)[0])  # it may be `KEY=VALUE`
    return Finding("program", mark, f"not installed: {word}", advice)


def _version_text(version: Version | None, environ: Mapping[str, str]) -> str | None:
    """Return the version without secrets, because a program may print anything."""
    if version is None or version.text is None:
        return None
    return without_secrets(version.text, environ)


def _version(version: Version, environ: Mapping[str, str]) -> Finding:
    if (text := _version_text(version, environ)) is not None:
        return Finding("version", Mark.OK, f"version {text}")
    mark = Mark.WARNING if version.can_start else Mark.PROBLEM
    trouble = without_secrets(version.trouble, environ)
    advice = "Run it by hand with --version, or install it again"
    return Finding("version", mark, f"it does not print its version: {trouble}", advice)


def _reading(agent: Agent) -> Finding:
    program = agent.program
    if not program.is_known:
        text = "rooda does not know this CLI: only its exit code and its signals count"
    elif program.prints_events:
        text = f"rooda reads its output as the events of {program.adapter.name}"
    else:
        text = f"rooda reads its output as text of {program.adapter.name}: no tokens, no cost"
    return Finding("output", Mark.OK, text)


# -- command lines ---------------------------------------------------------------------------


def check_command_line(line: CommandLine) -> Iterator[Finding]:
    """Check the flags of a known CLI by its rules. Yields nothing for other programs."""
    adapter = KNOWN.get(program_name(line.words))
    if adapter is None:
        return
    broken = [_broken(rule) for rule in adapter.flag_rules if rule.is_broken(line)]
    topics = {one.topic for one in broken}
    permissions = _permissions(adapter, line)
    if "prompt" not in topics:
        yield Finding("prompt", Mark.OK, "reads its prompt from standard input")
    if permissions.mark is not Mark.OK or "permissions" not in topics:
        yield permissions
    yield from broken


def _broken(rule: FlagRule) -> Finding:
    mark = Mark.PROBLEM if rule.is_fatal else Mark.WARNING
    return Finding(rule.topic, mark, rule.text, rule.advice)


def _permissions(adapter: Adapter, line: CommandLine) -> Finding:
    permissions = adapter.permissions
    missing = permissions.missing_flag(line.words)
    if not missing:
        return Finding("permissions", Mark.OK, "uses its tools without asking")
    if some := [flag for flag in permissions.some_tools if matches(line.words, flag)]:
        text = f"uses the tools that {some[0].lstrip('*')} allows without asking"
        return Finding("permissions", Mark.OK, text)
    return Finding("permissions", Mark.WARNING, permissions.otherwise, f"Add {missing}")
