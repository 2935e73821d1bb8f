"""The sandbox of a run, from its settings; and what speaks against it before the first iteration.

A run without a sandbox does not load `rooda.world.sandbox`.
"""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rooda.base.paths import file_mode
from rooda.base.problems import Origin, Problem, Severity, Tier
from rooda.base.secrets.sensitive import without_secret_values
from rooda.plan.command import Agent
from rooda.plan.layers import PhaseValue
from rooda.plan.preflight.programs import Check
from rooda.plan.prompts.parts import FilePart
from rooda.plan.repository_values import HOW_TO_TRUST, is_in
from rooda.plan.resolve import Values
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    ENV,
    GIT_COMMIT,
    KEEP_PROCESSES,
    SANDBOX_COMMAND,
    SANDBOX_ENV,
    SANDBOX_KIND,
    SANDBOX_NETWORK,
    SANDBOX_READABLE,
    SANDBOX_TRUST,
    SANDBOX_WRITABLE,
    TASKS,
    WORKING_DIR,
)
from rooda.plan.world import World
from rooda.world.files.sight import Sight, leads_out
from rooda.world.git.git import Git, GitError
from rooda.world.git.work_tree import work_tree
from rooda.world.state.folder import AGENT_GIT, StateFolder, has_left_git
from rooda.world.tools import Tools

if TYPE_CHECKING:
    from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxPlan

TITLE = "Sandbox not possible"
NO_SANDBOX = "the agent runs as you: it can read and change all your files, and use your logins"
_OTHERS: tuple[Setting[Any], ...] = (
    SANDBOX_NETWORK,
    SANDBOX_READABLE,
    SANDBOX_WRITABLE,
    SANDBOX_ENV,
    SANDBOX_COMMAND,
)
_OF_BWRAP: tuple[Setting[Any], ...] = (SANDBOX_NETWORK, SANDBOX_READABLE, SANDBOX_WRITABLE)


class SandboxFound(Struct, frozen=True):
    """The plan of the sandbox, if the run has one; a line for the dry run; what is wrong."""

    plan: "SandboxPlan | None"
    check: Check
    problems: tuple[Problem, ...] = ()


def variables_held_inside(values: Values) -> frozenset[str]:
    """Return the variables that programs outside of the sandbox do not get.

    The file of a work tree sets them, and git, ssh and the loader run what some of them name.
    """
    if values[SANDBOX_KIND] == "none" or values[SANDBOX_TRUST]:
        return frozenset()
    return variables_of_file(values)


def variables_of_file(values: Values) -> frozenset[str]:
    """Return the variables that the file of a work tree sets, which commands that only read ignore.

    Otherwise git or an agent that is asked for its version could run a program of the work tree.
    """
    return frozenset(name for name, at in values.parts(ENV).items() if at.tree is not None)


def find_sandbox(
    values: Values,
    world: World,
    working_dir: Path,
    folders: tuple[Path, ...],
    tools: Tools,
    state: StateFolder | None,
) -> SandboxFound:
    """Return the sandbox of a run, and try bubblewrap out. Changes nothing."""
    kind = values[SANDBOX_KIND]
    if kind == "none":
        unused = (*_check_unused(values), *_check_left_git(values, state))
        return SandboxFound(None, Check(f"Sandbox: none: {NO_SANDBOX}"), unused)
    from rooda.world.sandbox.home import home_of  # noqa: PLC0415 - see above
    from rooda.world.sandbox.private_git import about_git  # noqa: PLC0415
    from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind, SandboxPlan  # noqa: PLC0415

    given: Mapping[str, str | None] = values[ENV]
    held_inside = variables_held_inside(values)
    problems = [
        *_check_values(values, working_dir, tools),
        *_check_links(values, working_dir, work_tree(world.folder)),
    ]
    tree = work_tree(working_dir)
    details = (f"git: {about_git(tree)}",) if kind == SandboxKind.BWRAP and about_git(tree) else ()
    check = Check(f"Sandbox: {kind}: {_described(values)}", details)
    try:
        home = home_of(world.environ)
        words = _split(values[SANDBOX_COMMAND] or "")
    except SandboxError as error:
        return SandboxFound(None, check, (*problems, _problem(error, values)))
    if state is None:  # another problem says why
        return SandboxFound(None, check, tuple(problems))
    plan = SandboxPlan(
        kind=SandboxKind(kind),
        tree=tree,
        folders=(working_dir, *folders),
        home=home,
        state=state,
        outside=dict(world.environ),
        tools=tools,
        network=values[SANDBOX_NETWORK],
        readable=tuple(Path(os.path.normpath(path)) for path in values[SANDBOX_READABLE]),
        writable=tuple(Path(os.path.normpath(path)) for path in values[SANDBOX_WRITABLE]),
        real_readable=tuple(Path(path).resolve() for path in values[SANDBOX_READABLE]),
        real_writable=tuple(Path(path).resolve() for path in values[SANDBOX_WRITABLE]),
        env=values[SANDBOX_ENV],
        given=tuple(name for name in given if name not in held_inside),
        held_inside=held_inside,
        command=words,
    )
    return SandboxFound(plan, check, (*problems, *_check_plan(plan, values)))


def check_paths(
    values: Values, agents: Iterable[Agent], phases: Iterable[PhaseValue], working_dir: Path
) -> Iterator[Problem]:
    """Yield what the file of a work tree names outside of that tree, which would open the sandbox.

    That is the working folder, what rooda reads into the prompt, and files of the agent's command.
    """
    if values[SANDBOX_KIND] == "none" or values[SANDBOX_TRUST]:
        return
    for row in (WORKING_DIR, TASKS):
        tree, name = values.origin(row).tree, values[row]
        if tree is not None and name is not None and not is_in(tree, name):
            yield _outside(values.origin(row), values.field(row), name)
    for value in phases:
        tree = value.origin.tree
        for source in (part.source for part in value.parts):
            if tree is not None and isinstance(source, FilePart) and not is_in(tree, source.path):
                yield _outside(value.origin, value.field, str(source.path))
    if values[SANDBOX_KIND] == "bwrap":
        for agent in agents:
            yield from _check_words(agent, working_dir)


def _check_words(agent: Agent, working_dir: Path) -> Iterator[Problem]:
    """Yield the files on the command line of an agent that the sandbox would show for it."""
    from rooda.world.sandbox.home import is_in_toolchain  # noqa: PLC0415 - see above
    from rooda.world.sandbox.mounts import is_shown  # noqa: PLC0415

    command, home = agent.command, Path.home()
    tree = command.written.tree
    for word in agent.argv if tree is not None else ():
        path = Path(os.path.normpath(working_dir / word))
        known = is_shown(Path(os.path.realpath(path))) or is_in_toolchain(path, home)
        if "/" in word and file_mode(path) and not (known or path.is_dir() or is_in(tree, path)):
            yield _outside(command.written, command.field, str(path))


def _outside(origin: Origin, field: str, path: str) -> Problem:
    text = f"{path} is outside of the work tree, and others than you can write this file"
    return Problem.at(origin, field, text, HOW_TO_TRUST, title=TITLE)


def _described(values: Values) -> str:
    if values[SANDBOX_KIND] == "command":
        command = without_secret_values(values[SANDBOX_COMMAND] or "")
        return f"the agent, verify, hooks and commits run behind `{command}`"
    network = "with the network" if values[SANDBOX_NETWORK] else "without the network"
    return (
        "the agent, verify, hooks and commits see the work tree, a private home folder and the "
        f"system's programs, {network}"
    )


def _check_values(values: Values, working_dir: Path, tools: Tools) -> Iterator[Problem]:
    if values[SANDBOX_KIND] == "command":
        if values[SANDBOX_COMMAND] is None:
            fix = (
                "Set sandbox.command, such as 'docker run --rm -i -v {workspace}:{workspace} IMAGE'"
            )
            yield _at(SANDBOX_KIND, values, "sandbox command needs a command", fix)
        for row in _OF_BWRAP:
            if values[row] != row.default:
                text = f"{row.key} has no effect with sandbox command"
                yield _at(row, values, text, "Say it in the command", Severity.WARNING)
    elif values[KEEP_PROCESSES]:
        text = "keep_processes has no effect: no process outlives the sandbox bwrap"
        yield _at(KEEP_PROCESSES, values, text, "Remove it, or use sandbox: none")
    if values[GIT_COMMIT] and _signs(working_dir, tools):
        text = "git signs commits here (commit.gpgsign), and there is no key in the sandbox"
        fix = "Turn it off for this repository: `git config commit.gpgsign false`, sign later"
        yield _at(GIT_COMMIT, values, text, fix)


def _check_links(values: Values, working_dir: Path, tree: Path) -> Iterator[Problem]:
    """Yield the folders to mount that lie behind a link which leads out of the work tree.

    An agent in the sandbox can make such a link, and the next run would show it that folder.
    """
    readable, writable = values[SANDBOX_READABLE], values[SANDBOX_WRITABLE]
    paths: list[tuple[Setting[Any], str]] = [
        (WORKING_DIR, str(working_dir)),
        *((SANDBOX_READABLE, path) for path in readable),
        *((SANDBOX_WRITABLE, path) for path in writable),
    ]
    sight = Sight((tree, *map(Path, writable)))
    for row, path in paths:
        if (target := leads_out(Path(path), sight)) is not None:
            text = f"{path} leads to {target} by a link that an agent may have made"
            yield _at(row, values, text, f"Remove the link, or, if it is yours, name {target}")


def _check_unused(values: Values) -> Iterator[Problem]:
    """Yield settings of a sandbox that was never switched on. `--sandbox none` switches it off."""
    if values.origin(SANDBOX_KIND).tier > Tier.PRESET:
        return
    for row in _OTHERS:
        if values[row] != row.default:
            text = f"{row.key} has no effect without a sandbox"
            yield _at(row, values, text, "Set sandbox.kind to bwrap or command")


def _check_left_git(values: Values, state: StateFolder | None) -> Iterator[Problem]:
    """Yield a warning about commits that only a run in the sandbox can read."""
    if state is not None and has_left_git(state):
        text = f"a killed run left the agent's commits in {state / AGENT_GIT}"
        fix = "The next run with --sandbox bwrap takes them over"
        yield _at(SANDBOX_KIND, values, text, fix, Severity.WARNING)


def _check_plan(plan: "SandboxPlan", values: Values) -> Iterator[Problem]:
    from rooda.world.sandbox.probe import check_plan, try_bwrap  # noqa: PLC0415 - see above
    from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind  # noqa: PLC0415

    yield from (_problem(error, values) for error in check_plan(plan))
    if plan.kind is SandboxKind.BWRAP:
        try:
            try_bwrap(plan.tools)
        except SandboxError as error:
            yield _problem(error, values)


def _split(command: str) -> tuple[str, ...]:
    from rooda.world.sandbox.sandbox_plan import SandboxError  # noqa: PLC0415 - see above

    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        text = f"sandbox.command can't be split into words: {error}"
        raise SandboxError(text, "Check the quotes") from None


def _signs(folder: Path, tools: Tools) -> bool:
    if tools.git is None:
        return False
    try:
        return Git(folder, tools).ask("config", "--type=bool", "commit.gpgsign") == "true"
    except GitError:
        return False


def _at(
    row: Setting[Any],
    values: Values,
    message: str,
    fix: str,
    severity: Severity = Severity.ERROR,
) -> Problem:
    return Problem.at(values.origin(row), values.field(row), message, fix, severity, TITLE)


def _problem(error: "SandboxError", values: Values) -> Problem:
    return _at(SANDBOX_KIND, values, str(error), error.fix)
