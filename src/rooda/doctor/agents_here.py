"""Look at every agent that can be named here: its program, its version, its command line."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rooda.agents.launching import own_words, program_name
from rooda.agents.registry import KNOWN
from rooda.config.command import Agent, split
from rooda.config.problems import Problem
from rooda.doctor.agent_report import AgentReport, Seen, report_on, unreadable
from rooda.doctor.chosen import Candidate, candidates
from rooda.doctor.programs import Place, find, interpreter_trouble
from rooda.doctor.surroundings import Surroundings
from rooda.doctor.versions import Question, Version, ask_all
from rooda.text.paths import is_folder

_FETCHERS = ("npx", "bunx")  # they bring the program along


@dataclass(frozen=True, slots=True)
class _Look:
    """A first look at one of them, or why its command can't be one."""

    candidate: Candidate
    seen: Seen | Problem

    @property
    def asked(self) -> Seen | None:
        """Who is asked for its version. Never an unknown program: it may begin to work at once."""
        seen = self.seen
        if isinstance(seen, Problem) or seen.place.path is None or seen.interpreter is not None:
            return None
        if seen.in_work_tree:
            return None
        name = program_name(seen.agent.argv)
        return seen if name in KNOWN and Path(seen.place.path).name == name else None


def look_at_agents(here: Surroundings, patience: float) -> list[AgentReport]:
    """A report on each; their versions are asked for at the same time."""
    looks = [_Look(one, _first_look(one, here)) for one in candidates(here.layers)]
    asked = [seen for look in looks if (seen := look.asked) is not None]
    questions = [Question(str(seen.place.path), _environ(seen.agent, here)) for seen in asked]
    folder = here.working_dir if is_folder(here.working_dir) else Path("/")
    versions = ask_all(questions, folder, patience)
    return [_report(look, versions, here) for look in looks]


def _first_look(candidate: Candidate, here: Surroundings) -> Seen | Problem:
    command = candidate.command
    problems: list[Problem] = []
    argv = split(command.text, command.origin, command.field, problems)
    if not argv:
        return problems[0]
    agent = Agent.of(command, argv)
    place = _place(agent, here)
    trouble = interpreter_trouble(place.path, here.environ) if place.path else None
    inside = place.path is not None and here.tools.is_in_work_tree(place.path)
    return Seen(agent, place, trouble, in_work_tree=inside)


def _environ(agent: Agent, here: Surroundings) -> dict[str, str]:
    """The agent's environment, in which a script finds no interpreter of the work tree."""
    return {**here.circumstances.environ_of(agent), "PATH": here.tools.path}


def _place(agent: Agent, here: Surroundings) -> Place:
    """Where its program is: a launcher has to be there, and what it launches."""
    first, own = agent.argv[0], own_words(agent.argv)[0]
    place = find(first, here.working_dir, here.environ)
    if place.path is None or own == first:
        return place
    inner = find(own, here.working_dir, here.environ)
    return place if inner.path is None and Path(first).name in _FETCHERS else inner


def _report(look: _Look, versions: Mapping[str, Version], here: Surroundings) -> AgentReport:
    if isinstance(look.seen, Problem):
        return unreadable(look.candidate, look.seen.message, look.seen.suggestion)
    seen = look.seen
    if look.asked is not None:
        seen = replace(seen, version=versions[str(seen.place.path)])
    return report_on(look.candidate, seen, here.circumstances)
