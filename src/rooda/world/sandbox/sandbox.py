"""The sandbox of a run: turns the command line of a program into one that runs it inside."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from rooda.base.paths import file_mode
from rooda.base.templates import fill
from rooda.world.agents.agent_program import own_words
from rooda.world.agents.facts import CERTIFICATE_VARIABLES, SandboxNeeds
from rooda.world.files.sight import Sight, leads_out
from rooda.world.git.git import GitError, unattended
from rooda.world.git.snapshots.repository import Repository
from rooda.world.process.exits import Exit
from rooda.world.process.request import Wrapped
from rooda.world.sandbox.environment import UserGitSettings, inside, of_loader, with_git_settings
from rooda.world.sandbox.git_mounts import GitMounts
from rooda.world.sandbox.home import (
    clear_places,
    forget_place,
    make_private,
    places_of_program,
    show_certificates,
    show_toolchains,
)
from rooda.world.sandbox.mounts import Mounts, ProtectedMounts, is_shown, show_system
from rooda.world.sandbox.private_git import GitNotice, PrivateGit, why_shared
from rooda.world.sandbox.probe import OPTIONS, check_plan, find_bwrap, try_out
from rooda.world.sandbox.sandbox_plan import HOME, SandboxError, SandboxKind, SandboxPlan
from rooda.world.sandbox.tree_findings import CLI_SETTINGS, CONFIG_PATHS
from rooda.world.state.home import VARIABLE, NoStateHomeError
from rooda.world.state.record_place import fleet_state, take_over_database
from rooda.world.tools import Command, interpreter_of

__all__ = ["Sandbox", "SandboxError", "Wrapped"]

# Files of rooda, ralph and the agent CLIs that name programs. In every folder up to the top.
_PATIENCE = 300.0  # seconds for the packing of large commits
PROTECTED = (*(path.removeprefix("/") for path in CONFIG_PATHS), *sorted(CLI_SETTINGS))


class Sandbox:
    """A sandbox for all programs of a run. The caller holds the lock of the run."""

    def __init__(self, plan: SandboxPlan, repository: Repository | None) -> None:
        self.plan = plan
        self.home = plan.private_home
        self._git = None if repository is None else GitMounts(repository)
        self.private_git = self._private_git(repository)
        self.writable = [*plan.real_writable]  # folders and files, without the work tree
        self._settings = UserGitSettings.read(plan.tree, plan.home, plan.tools)

    @classmethod
    def of(cls, plan: SandboxPlan) -> "Sandbox":
        """Set up the sandbox of a run, and try it out. Raises SandboxError."""
        for problem in check_plan(plan):
            raise problem
        try:
            repository = Repository.find(plan.tree, plan.tools)
        except GitError as error:
            fix = "Check that `git status` works here"
            raise SandboxError(f"the sandbox can't protect the repository: {error}", fix) from None
        if repository is None and os.path.lexists(plan.tree / ".git"):
            text = f"git does not work with {plan.tree / '.git'}, so the sandbox can't protect it"
            raise SandboxError(text, "Check that `git status` works here, or move it away")
        sandbox = cls(plan, repository)
        sandbox._secure_old_fleet()
        make_private(plan.state, HOME)
        if sandbox.private_git is not None:
            sandbox.private_git.prepare()
        if plan.kind is SandboxKind.BWRAP:
            try:
                program = (plan.tools.program("true"),)
                try_out(plan.tools, sandbox.wrap(program, plan.tree, plan.tools.environ))
            except BaseException:
                sandbox.close()
                raise
        return sandbox

    def _secure_old_fleet(self) -> None:
        """Take the database of a fleet of version 0.1 out of the reach of agents.

        It names the commands of workers. A file that appears there later is never read.
        """
        if self._git is None:
            return
        try:
            state = fleet_state(self._git.common, self.plan.outside)
        except NoStateHomeError:
            return
        try:
            take_over_database(self._git.common, state)
        except OSError as error:
            raise SandboxError(
                f"the state of rooda can't be in {error.filename or state}: {error.strerror}",
                f"Set {VARIABLE} to a folder of yours on a local disk",
            ) from None

    def _private_git(self, repository: Repository | None) -> PrivateGit | None:
        """Return the agent's git folder; None if it works in the user's own one."""
        is_bwrap = self.plan.kind is SandboxKind.BWRAP
        if repository is None or not is_bwrap or why_shared(repository.top):
            return None
        if repository.git_dir != repository.top / ".git":
            return None
        return PrivateGit(repository, self.plan.state, self.plan.tools, self._run_inside)

    def _run_inside(
        self, argv: Sequence[str], take: Callable[[bytes], object], given: bytes = b""
    ) -> tuple[Exit, bytes]:
        tools, tree = self.plan.tools, self.plan.tree
        wrapped = self.wrap(argv, tree, unattended(tools))
        command = Command(
            what="",
            argv=wrapped.program,
            cwd=tree,
            environ=wrapped.environ,
            timeout=_PATIENCE,
            stdin=given,
            closing=True,
            jail=wrapped.jail,
        )
        return tools.stream(command, take)

    def settle(self, environ: Mapping[str, str]) -> None:
        """Take over what a program with these variables has done with git."""
        if self.private_git is not None:
            self.private_git.settle(self._other_index(environ))

    @property
    def unfinished_git(self) -> str:
        """Which operation of git the agent has left unfinished in its own folder, in words."""
        return "" if self.private_git is None else self.private_git.unfinished

    def _other_index(self, environ: Mapping[str, str]) -> str:
        """Return the index that a command of rooda uses instead of the usual one, by its name."""
        path = Path(environ.get("GIT_INDEX_FILE", ""))
        is_other = path.parent == self.plan.tree / ".git"
        return path.name if is_other else ""

    def close(self) -> None:
        """Delete what only the sandbox needs; the private HOME stays."""
        if self.private_git is not None:
            self.private_git.close()
        if self._git is not None:
            self._git.tidy()

    def closed(self) -> list[GitNotice]:
        """Close the sandbox, and return what to report about the agent's commits."""
        self.close()
        return [] if self.private_git is None else self.private_git.take_notices()

    def wrap(
        self,
        argv: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        needs: SandboxNeeds = SandboxNeeds(),  # noqa: B008 - it is frozen
        *,
        copy: Path | None = None,
    ) -> Wrapped:
        """Return what starts a program inside. Raises SandboxError if a path can't be protected.

        With a `copy` of the work tree, the program sees the copy and not the work tree.
        """
        plan = self.plan
        variables = inside(environ, plan.outside, (*plan.env, *plan.given), needs)
        git = with_git_settings({**variables, **self._settings.identity}, self._settings.settings)
        if plan.kind is SandboxKind.COMMAND:
            return Wrapped((), (*self._prefix(cwd, copy), *argv), git)
        git |= {"HOME": str(plan.home), "XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"}
        words = self._bwrap(argv, Path(os.path.realpath(cwd)), git, needs, copy)
        for name in of_loader(git):
            words += ("--setenv", name, git.pop(name))
        return Wrapped((find_bwrap(plan.tools), *words, "--"), tuple(argv), git)

    def _prefix(self, cwd: Path, copy: Path | None) -> Iterator[str]:
        tree = copy or self.plan.tree
        values = {"workspace": str(tree), "cwd": str(cwd), "home": str(self.home)}
        for word in self.plan.command:
            yield fill(word, values)

    def _bwrap(
        self,
        argv: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        needs: SandboxNeeds,
        copy: Path | None,
    ) -> list[str]:
        plan, mounts = self.plan, Mounts()
        mounts.add(*OPTIONS)
        if not plan.network:
            mounts.add("--unshare-net")
        show_system(mounts)
        mounts.writable(self.home, plan.home)
        of_user = self._of_user(environ)
        show_toolchains(mounts, plan.home, of_user)
        self._settings.show(mounts)
        self._show_needs(mounts, needs)
        self._show_certificates(mounts, of_user)
        self._show_programs(mounts, argv, cwd, of_user)
        for path in plan.readable:
            if not path.is_relative_to(plan.tree):
                mounts.read_only(path)
        for path in plan.writable:
            mounts.writable(path)
        if copy is None:
            self._show_tree(mounts, self._other_index(environ))
        else:
            mounts.writable(Path(os.path.realpath(copy)))
        clear_places(self.home, plan.home, mounts.shown)
        mounts.add("--remount-ro", "/", "--chdir", str(cwd))
        return mounts.words

    def _of_user(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that may name folders to show: none of the work tree's file."""
        held, outside = self.plan.held_inside, self.plan.outside
        own = {name: value for name, value in environ.items() if name not in held}
        return own | {name: outside[name] for name in held if name in outside}

    def _show_needs(self, mounts: Mounts, needs: SandboxNeeds) -> None:
        """Show the files of an agent CLI. A link of the user leads to the real file."""
        home = self.plan.home
        for name in needs.settings:
            if file_mode(home / name):
                mounts.read_only(os.path.realpath(home / name), home / name)
        for name in needs.credentials:
            if file_mode(home / name):
                real = Path(os.path.realpath(home / name))
                mounts.writable(real, home / name)
                if real not in self.writable:
                    self.writable.append(real)
        for name in (*needs.settings, *needs.credentials):
            if not file_mode(home / name):
                forget_place(self.home, name)

    def _show_certificates(self, mounts: Mounts, environ: Mapping[str, str]) -> None:
        for name in CERTIFICATE_VARIABLES:
            path = Path(environ.get(name, ""))
            if path.is_absolute() and file_mode(path) and not is_shown(path):
                show_certificates(mounts, path, self.plan.home)

    def _show_programs(
        self, mounts: Mounts, argv: Sequence[str], cwd: Path, environ: Mapping[str, str]
    ) -> None:
        """Show the program that the user has chosen, and the files on its command line."""
        for word in _programs(argv):
            for place in self._places(word, cwd, environ):
                mounts.read_only(place)
        for word in argv[1:]:
            path = Path(word)
            if path.is_absolute() and self._is_file_to_show(path):
                mounts.read_only(path)

    def _places(self, word: str, cwd: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        """Yield the folders of a program that the system's part of the sandbox does not show."""
        plan, name = self.plan, str(cwd / word) if "/" in word else word
        found = shutil.which(name, path=environ.get("PATH", os.defpath))
        if found is None or self._is_of_agent(Path(found)):
            return
        for program in _with_interpreter(Path(found), environ):
            if not (is_shown(Path(os.path.realpath(program))) or self._is_of_agent(program)):
                yield from places_of_program(program, plan.home, plan.tree)

    def _is_of_agent(self, program: Path) -> bool:
        """Return whether an agent could have made the program, or a link on the way to it.

        Then the place of its links, and its first line, could name any folder of the user.
        """
        plan = self.plan
        sight = Sight((plan.tree, *plan.writable, *plan.real_writable))
        real = Path(os.path.realpath(program))
        return sight.can_change(real) or leads_out(program, sight) is not None

    def _is_file_to_show(self, path: Path) -> bool:
        try:
            real = Path(os.path.realpath(path))
            return path.is_file() and not (is_shown(real) or path.is_relative_to(self.plan.tree))
        except (OSError, ValueError):  # words that are no path
            return False

    def _show_tree(self, mounts: Mounts, index: str) -> None:
        plan = self.plan
        mounts.writable(plan.tree)
        tree = ProtectedMounts(plan.tree, mounts)
        if self.private_git is not None:
            self.private_git.show(mounts, tree, index)
        elif self._git is not None:
            self._git.show(mounts, tree)
        for folder in self.own_folders:
            for name in PROTECTED:
                tree.protect(folder / name)
        for path in plan.readable:
            if path.is_relative_to(plan.tree):
                tree.protect(path)

    @cached_property
    def own_folders(self) -> tuple[Path, ...]:
        """The folders of the work tree in which rooda and agent CLIs look for their files."""
        tree = self.plan.tree
        found: dict[Path, None] = {tree: None}
        for folder in self.plan.folders:
            real = Path(os.path.realpath(folder))
            for place in (real, *real.parents):
                if place.is_relative_to(tree):
                    found[place] = None
        return tuple(found)


def _with_interpreter(program: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield a program, and the interpreter of a script, such as a node of the user's own."""
    yield program
    interpreter = shutil.which(interpreter_of(program) or "", path=environ.get("PATH", os.defpath))
    if interpreter is not None:
        yield Path(interpreter)


def _programs(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the program of a command line, and the one that it starts (`env X=1 PROGRAM`)."""
    return tuple(dict.fromkeys((argv[0], *own_words(argv)[:1])))
