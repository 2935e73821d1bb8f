"""What a program in the sandbox left behind that would act outside of it. Pure.

A sandbox holds a program while it runs. What it writes into the work tree stays, and a program
outside may execute it later: git, the agent's CLI, a shell. `compare` finds such things.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

# The project settings of agent CLIs: they start hooks, plugins and servers from these.
CLI_SETTINGS = frozenset(
    {
        *(".claude", ".mcp.json", ".codex", ".gemini", ".opencode"),
        *("opencode.json", "opencode.jsonc", ".cursor", ".qwen", ".kiro"),
    }
)
# The programs of this package run the commands that these name.
CONFIG_PATHS = ("/rooda-config.yml", "/.ralph/config")
CONFIG_FOLDERS = frozenset(filter(None, (path.split("/")[-2] for path in CONFIG_PATHS)))
CONFIG_NAMES = frozenset(path.rpartition("/")[2] for path in CONFIG_PATHS)
_EXEC_LINE = re.compile(rb"^[ \t]*(x|exec)[ \t]", re.MULTILINE)


class Action(StrEnum):
    """What rooda does about a finding."""

    REMOVED = "removed"  # moved into the record of the iteration
    CLEARED = "cleared"  # the file stays, without its set-uid and set-gid bits
    EXCLUDED = "excluded"  # it stays, and rooda's git does not enter it
    KEPT = "kept"  # nothing is lost, and nothing of the user has changed
    REFUSED = "refused"  # it stays; the iteration fails, and nothing is committed or pushed


class Finding(StrEnum):
    """What rooda found. The value is its name in events."""

    GIT_LINK = "git-link"
    GIT_SETTINGS = "git-settings"
    HOOK = "hook"
    MODULE = "module"
    REBASE = "rebase"
    REPOSITORY = "repository"
    SET_ID = "set-id"
    CLI_SETTINGS = "cli-settings"
    CONFIG = "config"
    LOST_COMMITS = "lost-commits"
    KEPT_COMMITS = "kept-commits"
    UNFINISHED = "unfinished"
    REFUSED_COMMITS = "refused-commits"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too-large"

    @property
    def what(self) -> str:
        """What it is, for a sentence."""
        return _WORDS[self][0]

    @property
    def danger(self) -> str:
        """What would happen outside of the sandbox."""
        return _WORDS[self][1]


_WORDS: Mapping[Finding, tuple[str, str]] = {
    Finding.GIT_LINK: (
        "links or pipes in the place of files of git",
        "git would write to other files through them, or wait for them",
    ),
    Finding.GIT_SETTINGS: ("settings of git", "git would run programs that they name"),
    Finding.HOOK: ("hooks of git", "git would run them outside of the sandbox"),
    Finding.MODULE: ("repositories of submodules", "git would run programs that they name"),
    Finding.REBASE: ("a rebase with `exec` lines", "`git rebase --continue` would run them"),
    Finding.REPOSITORY: ("git repositories", "git would run programs that their settings name"),
    Finding.SET_ID: ("set-uid or set-gid files", "another user could run them with these rights"),
    Finding.CLI_SETTINGS: ("settings of agent CLIs", "a CLI would run programs that they name"),
    Finding.CONFIG: ("config files of rooda or ralph", "the next run would obey them"),
    Finding.LOST_COMMITS: ("missing commits", "the repository is damaged"),
    Finding.KEPT_COMMITS: (
        "commits of the agent, under names of their own",
        "the branches that it worked on have changed meanwhile",
    ),
    Finding.UNFINISHED: (
        "the branch and the index",
        "they change when the agent has finished what it began",
    ),
    Finding.REFUSED_COMMITS: (
        "commits of the agent",
        "rooda could not take them over from its git folder",
    ),
    Finding.UNREADABLE: ("folders that rooda can't read", "rooda could not check what is in them"),
    Finding.TOO_LARGE: ("a tree with too many files", "rooda could not check all of them"),
}


class Found(Struct, frozen=True):
    """Paths of one kind, with what rooda is to do about them. The paths are absolute."""

    finding: Finding
    action: Action
    paths: tuple[str, ...]


class TreeFacts(Struct, frozen=True):
    """What matters in a work tree and in its git folders. The paths are absolute.

    A mark differs between two versions of a file. The guarded files are those that a program
    outside executes or obeys, and the folders around them (their mark is empty).
    """

    git_links: Mapping[str, str] = {}  # links and pipes below git's folders, and their marks
    modules: frozenset[str] = frozenset()  # repositories of submodules
    rebases: frozenset[str] = frozenset()  # unfinished rebases with `exec` lines
    shared: str = ""  # the git folder that the work tree shares with other ones, if it is another
    repositories: Mapping[str, str] = {}  # folders with a `.git`, and a mark of its settings
    set_id: frozenset[str] = frozenset()
    guarded: Mapping[str, tuple[Finding, str]] = {}  # kind and mark
    unreadable: frozenset[str] = frozenset()  # folders
    hard_links: tuple[str, ...] = ()  # files with more than one name, the first ones
    hard_link_count: int = 0
    is_whole: bool = True  # the search came to its end


def has_exec_line(todo: bytes) -> bool:
    """Return whether the list of an unfinished rebase makes git run a command."""
    return _EXEC_LINE.search(todo) is not None


def compare(before: TreeFacts, after: TreeFacts) -> list[Found]:
    """Return what is new or changed since the start of the run, with the action for each."""
    if not before.is_whole:  # rooda does not know what was there
        return [Found(Finding.TOO_LARGE, Action.REFUSED, ())]
    links = {
        path for path, target in after.git_links.items() if before.git_links.get(path) != target
    }
    repositories = {
        path for path, mark in after.repositories.items() if before.repositories.get(path) != mark
    }
    found = [
        _found(Finding.GIT_LINK, Action.REMOVED, links),
        *_in_git(Finding.MODULE, after.modules - before.modules, after.shared),
        *_in_git(Finding.REBASE, after.rebases - before.rebases, after.shared),
        _found(Finding.SET_ID, Action.CLEARED, after.set_id - before.set_id),
        _found(Finding.REPOSITORY, Action.EXCLUDED, repositories),
        *_guarded(before.guarded, after),
        _found(Finding.UNREADABLE, Action.REFUSED, after.unreadable - before.unreadable),
    ]
    if not after.is_whole:
        found.append(Found(Finding.TOO_LARGE, Action.REFUSED, ()))
    return [one for one in found if one.paths or one.finding is Finding.TOO_LARGE]


def _in_git(finding: Finding, paths: Iterable[str], shared: str) -> Iterator[Found]:
    """Yield new folders of git. In a folder that other work trees share, the user may work too."""
    own = f"{shared}/worktrees/"
    others = {path for path in paths if shared and path.startswith(f"{shared}/")}
    others = {path for path in others if not path.startswith(own)}
    yield _found(finding, Action.REMOVED, {*paths} - others)
    yield _found(finding, Action.REFUSED, others)


def _guarded(before: Mapping[str, tuple[Finding, str]], later: TreeFacts) -> Iterator[Found]:
    """Yield new files, which are removed, and changed or missing ones, which are refused.

    rooda can't tell whether the agent or the user has changed an existing file, so it stays.
    """
    after = later.guarded
    new = topmost(after.keys() - before.keys())
    changed = {
        path
        for path, (_, mark) in before.items()
        if mark and (after[path][1] != mark if path in after else later.is_whole)
    }
    for finding in dict.fromkeys(one for one, _ in (*after.values(), *before.values())):
        yield _found(finding, Action.REMOVED, {path for path in new if after[path][0] is finding})
        yield _found(
            finding, Action.REFUSED, {path for path in changed if before[path][0] is finding}
        )


def _found(finding: Finding, action: Action, paths: Iterable[str]) -> Found:
    return Found(finding, action, tuple(sorted(topmost(paths))))


def topmost(paths: Iterable[str]) -> set[str]:
    """Return the paths without those that are below another one of them."""
    all_paths = {*paths}
    return {path for path in all_paths if not _is_below(path, all_paths)}


def _is_below(path: str, others: Collection[str]) -> bool:
    above = posixpath.dirname(path)
    while above not in ("", "/"):
        if above in others:
            return True
        above = posixpath.dirname(above)
    return False
