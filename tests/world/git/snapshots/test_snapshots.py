"""Snapshots: their content, the changes between them, and what they must not touch."""

import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rooda.world.git.git import GitError
from rooda.world.git.snapshots.snapshots import LARGEST, Snapshots
from rooda.world.git.snapshots.tree_changes import Changes
from rooda.world.state.folder import StateFolder
from rooda.world.tools import Tools
from support.gitrepo import Repo, Walk, compare, repository, some_long, walk

pytestmark = pytest.mark.real

Step = Callable[[Repo], object]


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """Return a repository with one commit and with uncommitted, untracked and ignored files."""
    found = repository(tmp_path_factory.mktemp("original") / "repo")
    found.write("a.txt", "alpha\n")
    found.write("src/main.c", "int main;\n")
    found.write("src/deep/er.c", "int er;\n")
    found.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (found.path / "link").symlink_to("a.txt")
    found.write(".gitignore", "*.o\nbuild/\n")
    found.commit()
    found.write("src/main.c", "int changed;\n")
    found.write("untracked.txt", "not in git\n")
    found.write("main.o", "ignored")
    found.write("build/out", "ignored")
    return found


@pytest.fixture
def repo(original: Repo, tmp_path: Path) -> Repo:
    """Return a copy of the repository and of its home."""
    return original.copy(tmp_path / "repo")


def changes_by(repo: Repo, step: Step, folder: str = "") -> Changes:
    """Return the changes between two snapshots, before and after a step."""
    snapshots = repo.open(folder)
    snapshots.take("r1", "0")
    step(repo)
    found = snapshots.take("r1", "1").changes
    assert found is not None
    return found


# -- the content of a snapshot -------------------------------------------------------------


def test_snapshot_has_each_file_that_is_not_ignored(repo: Repo) -> None:
    snapshot = repo.open().take("r1", "0")
    assert repo.files_of(snapshot) == on_disk(repo)
    assert {"main.o", "build/out"} & repo.files_of(snapshot).keys() == set()
    assert "untracked.txt" in repo.files_of(snapshot)
    assert snapshot.left_out == ()
    assert snapshot.trouble == ""


def _refs(repo: Repo) -> dict[str, str]:
    found = repo.git("for-each-ref", "--format=%(refname:lstrip=3) %(objectname)", "refs/rooda/r1")
    return dict(line.split(" ") for line in found.splitlines())


def test_first_snapshot_has_no_changes(repo: Repo) -> None:
    assert repo.open().take("r1", "0").changes is None


def test_snapshot_without_a_run_leaves_no_ref(repo: Repo) -> None:
    snapshots = repo.open()
    before = snapshots.take(None)
    repo.write("new", "x")
    after = snapshots.take(None)
    assert (before.commit, after.commit) == (None, None)
    assert after.tree != before.tree
    assert after.changes == Changes(created=("new",))
    assert snapshots.runs() == ()


def test_unchanged_tree_gives_the_same_commit(repo: Repo) -> None:
    snapshots = repo.open()
    first, second = snapshots.take("r1", "0"), snapshots.take("r1", "1")
    assert (second.tree, second.commit) == (first.tree, first.commit)
    assert second.changes == Changes()
    assert not second.changes
    assert snapshots.names("r1") == ("0", "1")


def test_snapshot_has_the_exact_bytes_whatever_the_user_s_git_converts(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "filter.upper.clean", "tr a-z A-Z")
    repo.git("config", "filter.upper.smudge", "tr A-Z a-z")
    repo.write(
        ".gitattributes",
        "*.up filter=upper\n*.txt text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n",
    )
    repo.write("x.up", "lower\n")
    repo.write("x.txt", b"dos\r\n")
    repo.write("x.id", "$Id$ and $Id: 0123 $\n")
    repo.write("x.u16", "text".encode("utf-16"))
    repo.commit_as_old()
    snapshots = repo.open()
    assert repo.files_of(snapshots.take("r1", "0")) == on_disk(repo)
    repo.write("x.up", "other\n")
    repo.write("x.txt", b"unix\n")
    after = snapshots.take("r1", "1")
    assert after.changes == Changes(modified=("x.txt", "x.up"))
    assert repo.files_of(after)["x.txt"] == ("file", b"unix\n")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("place", some_long(["info", "home", "config"], "info"))
def test_attributes_outside_of_the_tree_are_ignored(repo: Repo, place: str) -> None:
    attributes = {
        "info": repo.path / ".git" / "info" / "attributes",
        "home": Path(repo.environ["HOME"]) / ".config" / "git" / "attributes",
        "config": repo.path.parent / "attributes",
    }[place]
    attributes.parent.mkdir(parents=True, exist_ok=True)
    attributes.write_text("*.txt text eol=lf\n")
    if place == "config":
        repo.git("config", "core.attributesFile", str(attributes))
    repo.write("dos.txt", b"dos\r\n")
    repo.commit_as_old()
    assert repo.files_of(repo.open().take("r1", "0"))["dos.txt"] == ("file", b"dos\r\n")


def test_tracked_file_is_kept_although_it_is_ignored(repo: Repo) -> None:
    repo.write("forced.o", "wanted")
    repo.git("add", "-f", "forced.o")
    snapshots = repo.open()
    assert "forced.o" in repo.files_of(snapshots.take("r1", "0"))
    repo.write("later.o", "wanted too")
    repo.git("add", "-f", "later.o")
    after = snapshots.take("r1", "1")
    assert after.changes == Changes(created=("later.o",))
    repo.write("later.o", "changed")
    assert snapshots.take("r1", "2").changes == Changes(modified=("later.o",))


def test_newly_ignored_file_is_neither_kept_nor_reported_as_deleted(repo: Repo) -> None:
    repo.write("noise/log", "1")
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write(".gitignore", "*.o\nbuild/\nnoise/\n")
    repo.write("noise/log", "2")
    after = snapshots.take("r1", "1")
    assert after.changes == Changes(modified=(".gitignore",))
    assert "noise/log" not in repo.files_of(after)
    repo.write("noise/log", "3")
    assert snapshots.take("r1", "2").changes == Changes()


def test_ignored_file_that_the_user_untracks_is_not_kept(repo: Repo) -> None:
    repo.write("forced.o", "wanted")
    repo.git("add", "-f", "forced.o")
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.git("rm", "-q", "--cached", "forced.o")
    after = snapshots.take("r1", "1")
    assert after.changes == Changes()
    assert "forced.o" not in repo.files_of(after)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("place", some_long(["info", "home"], "info"))
def test_ignore_rules_of_the_user_apply(repo: Repo, place: str) -> None:
    rules = repo.path / ".git" / "info" / "exclude"
    if place == "home":
        rules = Path(repo.environ["HOME"]) / "ignore"
        repo.git("config", "--global", "core.excludesFile", "~/ignore")
    rules.parent.mkdir(exist_ok=True)
    rules.write_text("*.private\n")
    repo.write("x.private", "1")
    assert "x.private" not in repo.files_of(repo.open().take("r1", "0"))


def test_state_folder_of_rooda_is_in_no_snapshot(repo: Repo) -> None:
    repo.write(".gitignore", "!.rooda\n!.rooda/**\n")
    repo.write(".rooda/prompt.md", "1")
    repo.git("add", "-f", ".rooda/prompt.md")
    snapshots = repo.open()
    assert [name for name in repo.files_of(snapshots.take("r1", "0")) if "rooda" in name] == []
    repo.write(".rooda/prompt.md", "2")
    assert snapshots.take("r1", "1").changes == Changes()


# -- changes -------------------------------------------------------------------------------


def same_size_and_date(repo: Repo) -> None:
    path = repo.path / "a.txt"
    found = path.stat()
    path.write_text("ALPHA\n")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def swap(name: str, make: Callable[[Path], object]) -> Step:
    """Return a step that replaces a file."""

    def step(repo: Repo) -> None:
        path = repo.path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        make(path)

    return step


STEPS: dict[str, tuple[Step, Changes]] = {
    "nothing": (lambda _: None, Changes()),
    "a new file": (lambda repo: repo.write("new", "x"), Changes(created=("new",))),
    "an empty file": (lambda repo: repo.write("empty"), Changes(created=("empty",))),
    "new folders": (lambda repo: repo.write("x/y/z", "x"), Changes(created=("x/y/z",))),
    "an empty folder": (lambda repo: (repo.path / "void").mkdir(), Changes()),
    "an edit": (lambda repo: repo.write("a.txt", "x"), Changes(modified=("a.txt",))),
    "a deletion": (lambda repo: (repo.path / "a.txt").unlink(), Changes(deleted=("a.txt",))),
    "a touch": (lambda repo: os.utime(repo.path / "a.txt", (1, 1)), Changes()),
    "the same content": (lambda repo: repo.write("a.txt", "alpha\n"), Changes()),
    "same size and date": (same_size_and_date, Changes(modified=("a.txt",))),
    "executable": (
        lambda repo: (repo.path / "a.txt").chmod(0o755),
        Changes(modified=("a.txt",)),
    ),
    "private": (lambda repo: (repo.path / "a.txt").chmod(0o600), Changes()),
    "a rename": (
        lambda repo: (repo.path / "a.txt").rename(repo.path / "b.txt"),
        Changes(created=("b.txt",), deleted=("a.txt",)),
    ),
    "a file to a link": (
        swap("a.txt", lambda path: path.symlink_to("run.sh")),
        Changes(modified=("a.txt",)),
    ),
    "a link to a file": (
        swap("link", lambda path: path.write_text("x")),
        Changes(modified=("link",)),
    ),
    "a link elsewhere": (
        swap("link", lambda path: path.symlink_to("nowhere")),
        Changes(modified=("link",)),
    ),
    "a link to a folder": (
        swap("link", lambda path: path.symlink_to("src")),
        Changes(modified=("link",)),
    ),
    "a folder to a link": (
        swap("src", lambda path: path.symlink_to("build")),
        Changes(created=("src",), deleted=("src/deep/er.c", "src/main.c")),
    ),
    "a folder to a file": (
        swap("src", lambda path: path.write_text("x")),
        Changes(created=("src",), deleted=("src/deep/er.c", "src/main.c")),
    ),
    "a file to a folder": (
        lambda repo: (swap("a.txt", Path.mkdir)(repo), repo.write("a.txt/b", "x")),
        Changes(created=("a.txt/b",), deleted=("a.txt",)),
    ),
    "an ignored file": (lambda repo: repo.write("build/new", "x"), Changes()),
    "a dirty file is changed again": (
        lambda repo: repo.write("src/main.c", "again"),
        Changes(modified=("src/main.c",)),
    ),
    "a dirty file is reverted": (
        lambda repo: repo.git("checkout", "-q", "src/main.c"),
        Changes(modified=("src/main.c",)),
    ),
    "an untracked file is changed": (
        lambda repo: repo.write("untracked.txt", "more"),
        Changes(modified=("untracked.txt",)),
    ),
    "an untracked file is deleted": (
        lambda repo: (repo.path / "untracked.txt").unlink(),
        Changes(deleted=("untracked.txt",)),
    ),
}


def test_changes_are_detected_by_content(repo: Repo, original: Repo) -> None:
    snapshots = repo.open()
    reported = {}
    for kind, (step, _) in STEPS.items():
        repo.become(original)
        snapshots.take("r1", "0")
        step(repo)
        reported[kind] = snapshots.take("r1", "1").changes
    assert reported == {kind: expected for kind, (_, expected) in STEPS.items()}


HISTORY: dict[str, str] = {
    "staged only": "git add -A",
    "staged, then deleted": "echo x > new; git add new; rm new",
    "committed": "echo x > a.txt; echo n > new; git add -A; git commit -qm work",
    "amended": "echo x > a.txt; git commit -qam work --amend",
    "reset": "git add -A; git commit -qm work; git reset -q --hard HEAD~1",
    "an earlier commit": "git add -A; git commit -qm work; git checkout -q HEAD~1",
    "another branch": "git stash -q; git switch -qc other; git rm -q run.sh; git commit -qm less",
    "an orphan": (
        "git stash -q; git switch -q --orphan other;echo x > only; git add -A; git commit -qm other"
    ),
    "the branch deleted": "git switch -qc other; git branch -qD main",
    "no branch left": "git checkout -q --detach; git branch -qD main",
    "stashed": "git stash -qu",
    "stashed and popped": "git stash -qu; echo x > b.txt; git stash pop -q",
    "cleaned": "git clean -fdq",
    "untracked": "git rm -q --cached a.txt",
    "conflict": (
        "git stash -q; git switch -qc other; echo one > a.txt; git commit -qam one;"
        "git switch -q main; echo two > a.txt; git commit -qam two; ! git merge -q other"
    ),
    "rebase in progress": (
        "git stash -q; git switch -qc other; echo one > a.txt; git commit -qam one;"
        "git switch -q main; echo two > a.txt; git commit -qam two; ! git rebase -q other"
    ),
    "garbage collected": "git add -A; git commit -qm work; git gc -q --prune=now",
    "refs packed": "git pack-refs --all --prune",
    "locked index": "touch .git/index.lock; echo x > a.txt",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("what", some_long(HISTORY, "committed", "stashed", "conflict"))
def test_changes_match_the_disk_whatever_an_agent_does_with_git(repo: Repo, what: str) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    before = on_disk(repo)
    repo.sh(HISTORY[what])
    git_before = repo.git_files()
    snapshot = snapshots.take("r1", "1")
    after = on_disk(repo)
    assert snapshot.changes == compare(before, after)
    assert repo.files_of(snapshot) == after
    assert repo.git_files() == git_before
    assert snapshots.take("r1", "2").changes == Changes()


def on_disk(repo: Repo) -> Walk:
    """Return the files on the disk that are not ignored."""
    found = walk(repo.path)
    if ".gitignore" not in found:
        return found
    return {
        name: content
        for name, content in found.items()
        if not name.endswith(".o") and not name.startswith("build/")
    }


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "what",
    some_long(
        ["conflict", "rebase in progress", "locked index", "an orphan"], "rebase in progress"
    ),
)
def test_first_snapshot_works_in_any_state_of_the_repository(repo: Repo, what: str) -> None:
    repo.sh(HISTORY[what])
    git_before = repo.git_files()
    snapshots = repo.open()
    first = snapshots.take("r1", "0")
    before = on_disk(repo)
    assert repo.files_of(first) == before
    repo.write("a.txt", "resolved\n")
    assert snapshots.take("r1", "1").changes == compare(before, on_disk(repo))
    assert repo.git_files() == git_before


@pytest.mark.parametrize("content", ["", "x"])
def test_repository_without_a_commit_has_no_head(tmp_path: Path, content: str) -> None:
    repo = repository(tmp_path / "repo")
    if content:
        repo.write("first", content)
    snapshots = repo.open()
    before = snapshots.take("r1", "0")
    assert before.head is None
    repo.write("second", "x")
    head = repo.commit()
    after = snapshots.take("r1", "1")
    assert after.head == head
    assert after.changes == Changes(created=("second",))
    assert snapshots.commits_between(before.head, after.head) == 1


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "step",
    [
        "git commit -qm more --allow-empty",
        "git commit -qm other --amend --allow-empty",
        "git checkout -q --detach; git commit -qm more --allow-empty",
        "git checkout -qb topic; git commit -qm more --allow-empty",
        "git commit -qm more --allow-empty; git pack-refs --all",
        "git branch other; git commit -qm more --allow-empty; git checkout -q other;",
        "git branch -m renamed; git commit -qm more --allow-empty",
    ],
)
def test_snapshot_has_the_head_at_its_time(repo: Repo, step: str) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    for name in ("1", "2", "3"):
        assert snapshots.take("r1", name).head == repo.git("rev-parse", "HEAD")
        repo.sh(step.replace("topic", f"topic{name}").replace("other;", f"other{name};"))
    assert snapshots.take("r1", "4").head == repo.git("rev-parse", "HEAD")


def test_commits_are_counted_however_the_history_was_rewritten(repo: Repo) -> None:
    snapshots = repo.open()
    before = snapshots.take("r1", "0").head
    repo.sh("git commit -qm one --allow-empty; git commit -qm two --allow-empty")
    two = snapshots.take("r1", "1").head
    assert snapshots.commits_between(before, two) == 2
    assert snapshots.commits_between(two, before) == 0
    repo.sh("git commit -qm other --amend --allow-empty")
    amended = snapshots.take("r1", "2").head
    assert snapshots.commits_between(two, amended) == 1
    assert snapshots.commits_between(None, amended) == 3
    assert snapshots.commits_between(before, None) == 0
    assert snapshots.commits_between(before, before) == 0
    assert snapshots.commits_between("0" * 40, amended) == 0


# -- names ---------------------------------------------------------------------------------

NAMES = [
    "with space",
    "-leading",
    "--all",
    "new\nline",
    'quo"te',
    "it's",
    "tab\there",
    "back\\slash",
    "*.c",
    "[a]?",
    ":(top)magic",
    ":!x",
    "#hash",
    "!bang",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f600",
    os.fsdecode(b"latin-\xe9"),
    os.fsdecode(b"\xff\xfe"),
    "x" * 255,
    "git~1",
    "con",
    " ",
    "ends.",
    "~",
    "\x01",
]


def test_any_file_name_is_reported_unchanged(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    for name in NAMES:
        repo.write(name, name.encode("utf-8", "surrogateescape"))
        repo.write(f"folder/{name}/{name}", "x")
    every = tuple(sorted([*NAMES, *(f"folder/{name}/{name}" for name in NAMES)]))
    assert snapshots.take("r1", "1").changes == Changes(created=every)
    for name in NAMES:
        repo.write(name, "other")
    assert snapshots.take("r1", "2").changes == Changes(modified=tuple(sorted(NAMES)))
    there = walk(repo.path)
    shutil.rmtree(repo.path / "folder")
    for name in NAMES:
        (repo.path / name).unlink()
    assert snapshots.take("r1", "3").changes == Changes(deleted=every)
    snapshots.restore("r1", "2", "u1")
    assert walk(repo.path) == there


def test_names_are_relative_to_the_given_folder(repo: Repo) -> None:
    def step(repo: Repo) -> None:
        repo.write("a.txt", "x")
        repo.write("src/new", "x")
        repo.write("other/new", "x")
        (repo.path / "src/deep/er.c").unlink()

    assert changes_by(repo, step, "src/deep") == Changes(
        created=("../../other/new", "../new"), modified=("../../a.txt",), deleted=("er.c",)
    )
    assert not (repo.path / ".rooda").exists()


# -- skipped files -------------------------------------------------------------------------


def test_untracked_file_over_50_mb_is_skipped_and_named(repo: Repo) -> None:
    assert LARGEST == 50 * 1024 * 1024
    snapshots = repo.open("src")
    snapshots.take("r1", "0")
    for name, size in (("large", LARGEST + 1), ("fits", LARGEST)):
        with repo.write(name).open("wb") as file:
            file.truncate(size)
    after = snapshots.take("r1", "1")
    assert after.left_out == ("../large",)
    assert after.changes == Changes(created=("../fits", "../large"))
    assert "large" not in repo.files_of(after)
    assert '"left_out": ["large"]' in repo.store("show", "-s", "--format=%B", "refs/rooda/r1/1")


def test_changes_of_skipped_files_are_reported(repo: Repo) -> None:
    repo.write("small", "x")
    repo.write("large", "x" * 100)
    snapshots = repo.open(largest=50)
    assert snapshots.take("r1", "0").left_out == ("large",)
    reported = []
    for size in {"large": 100, "small": 1}, {"large": 101}, {"small": 200}, {"large": 5}, {}:
        for name, count in size.items():
            repo.write(name, "y" * count)
        reported.append(snapshots.take("r1", "1").changes)
    (repo.path / "small").unlink()
    reported.append(snapshots.take("r1", "1").changes)
    assert reported == [
        Changes(modified=("large", "small")),
        Changes(modified=("large",)),
        Changes(modified=("small",)),
        Changes(modified=("large",)),
        Changes(),
        Changes(deleted=("small",)),
    ]


def test_large_tracked_file_is_kept(repo: Repo) -> None:
    repo.write("large", "x" * 100)
    repo.write("dangling", "x" * 100)
    repo.git("add", "large")
    snapshots = repo.open(largest=50)
    first = snapshots.take("r1", "0")
    assert first.left_out == ("dangling",)
    repo.write("large", "y" * 100)
    repo.git("add", "dangling")
    second = snapshots.take("r1", "1")
    assert second.left_out == ()
    assert repo.files_of(second)["large"] == ("file", b"y" * 100)


def test_pipes_and_sockets_are_no_files(repo: Repo) -> None:
    def step(repo: Repo) -> None:
        os.mkfifo(repo.path / "pipe")
        swap("a.txt", os.mkfifo)(repo)
        # A short name, because the address of a socket has about a hundred bytes.
        if sys.platform == "linux":
            with socket.socket(socket.AF_UNIX) as end:
                fd = os.open(repo.path, os.O_RDONLY)
                end.bind(f"/proc/self/fd/{fd}/socket")
                os.close(fd)

    assert changes_by(repo, step) == Changes(deleted=("a.txt",))


# -- submodules and work trees -------------------------------------------------------------


def test_run_in_a_submodule_uses_its_work_tree(repo: Repo, tmp_path: Path) -> None:
    library = repository(tmp_path / "library")
    library.write("lib.c", "1")
    library.commit()
    repo.git("submodule", "--quiet", "add", str(library.path), "lib")
    assert changes_by(repo, lambda repo: repo.write("lib/lib.c", "2"), "lib") == Changes(
        modified=("lib.c",)
    )


def test_linked_work_trees_have_their_own_snapshots(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked", repo.environ)
    main_snapshots, linked_snapshots = repo.open(), linked.open()
    main_snapshots.take("r1", "0")
    linked_snapshots.take("r2", "0")
    linked.write("a.txt", "linked")
    assert main_snapshots.take("r1", "1").changes == Changes()
    after = linked_snapshots.take("r2", "1")
    assert after.changes == Changes(modified=("a.txt",))
    assert after.head == linked.git("rev-parse", "HEAD")
    assert (main_snapshots.runs(), linked_snapshots.runs()) == (("r1",), ("r2",))


# -- unusual repositories ------------------------------------------------------------------


def test_sha256_repository_works(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", "--object-format=sha256")
    repo.write("a.txt", "x")
    repo.commit()
    repo.write("b.txt", "y")
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write("a.txt", "z")
    after = snapshots.take("r1", "1")
    assert after.changes == Changes(modified=("a.txt",))
    assert len(str(after.tree)) == 64
    snapshots.restore("r1", "0", "u1")
    assert (repo.path / "a.txt").read_text() == "x"


INDEXES: dict[str, str] = {
    "split": "git update-index --split-index",
    "version 4": "git update-index --index-version 4",
    "assume unchanged": "git update-index --assume-unchanged a.txt src/main.c",
    "skip work tree": "git update-index --skip-worktree a.txt src/main.c",
    "sparse": "git sparse-checkout set --cone --sparse-index src",
    "intent to add": "echo i > intent; git add -N intent",
    "untracked cache": "git update-index --force-untracked-cache; git status",
    "none": "rm .git/index",
    "garbage": "echo garbage > .git/index",
    "truncated": "truncate -s 100 .git/index",
    "a folder": "rm .git/index; mkdir .git/index",
    "a pipe": "rm .git/index; mkfifo .git/index",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("kind", some_long(INDEXES, "split", "assume unchanged"))
def test_snapshot_matches_the_disk_whatever_the_user_s_index(repo: Repo, kind: str) -> None:
    repo.sh(INDEXES[kind])
    snapshots = repo.open()

    assert repo.files_of(snapshots.take("r1", "0")) == on_disk(repo)
    repo.write("a.txt", "changed")
    repo.write("src/main.c", "changed")
    after = snapshots.take("r1", "1")
    assert repo.files_of(after) == on_disk(repo)
    assert after.changes is not None
    assert "src/main.c" in after.changes.modified


def test_stale_stat_data_of_the_user_s_index_is_not_trusted(repo: Repo) -> None:
    """Git rereads a file that is as old as its index, and so does rooda."""
    repo.commit_as_old()
    os.utime(repo.path / ".git" / "index", (10**9, 10**9))
    repo.write("a.txt", "ALPHA\n")
    os.utime(repo.path / "a.txt", (10**9, 10**9))
    assert repo.files_of(repo.open().take("r1", "0"))["a.txt"] == ("file", b"ALPHA\n")


def test_git_settings_of_the_user_change_nothing(repo: Repo) -> None:
    hooks = repo.path.parent / "hooks"
    hooks.mkdir()
    marker = repo.path.parent / "was-run"
    for name in ("reference-transaction", "post-index-change", "post-checkout", "fsmonitor"):
        (hooks / name).write_text(f"#!/bin/sh\necho $0 >> '{marker}'\n")
        (hooks / name).chmod(0o755)
    settings = {
        "core.hooksPath": str(hooks),
        "core.fsmonitor": str(hooks / "fsmonitor"),
        "core.editor": str(hooks / "fsmonitor"),
        "commit.gpgSign": "true",
        "gpg.program": str(hooks / "fsmonitor"),
        "diff.external": str(hooks / "fsmonitor"),
        "diff.noprefix": "true",
        "diff.renames": "copies",
        "diff.ignoreSubmodules": "all",
        "status.branch": "true",
        "status.showStash": "true",
        "status.renames": "copies",
        "core.trustctime": "false",
        "core.checkStat": "minimal",
        "core.ignoreStat": "true",
        "core.autocrlf": "input",
        "core.safecrlf": "true",
        "core.quotePath": "true",
        "core.logAllRefUpdates": "always",
        "color.ui": "always",
        "i18n.commitEncoding": "latin-1",
        "user.useConfigOnly": "true",
        "feature.manyFiles": "true",
    }
    for key, value in settings.items():
        repo.git("config", "--global", key, value)
    snapshots = repo.open()
    before = snapshots.take("r1", "0")
    assert "untracked.txt" in repo.files_of(before)
    (repo.path / "a.txt").rename(repo.path / "moved.txt")
    same_size = repo.path / "src" / "main.c"
    found = same_size.stat()
    same_size.write_bytes(b"int CHANGED;\n")
    os.utime(same_size, ns=(found.st_atime_ns, found.st_mtime_ns))
    repo.write("dos.txt", b"\r\n")
    after = snapshots.take("r1", "1")
    assert after.changes == Changes(("dos.txt", "moved.txt"), ("src/main.c",), ("a.txt",))
    snapshots.restore("r1", "0", "u1")
    assert repo.files_of(snapshots.take("r1", "2")) == repo.files_of(before)
    assert not marker.exists()


def test_git_variables_of_the_environment_are_ignored(repo: Repo, tmp_path: Path) -> None:
    other = repository(tmp_path / "other")
    other.write("theirs", "x")
    other.commit()
    git_before, theirs = repo.git_files(), other.git_files()
    repo.environ |= {
        "GIT_DIR": str(other.path / ".git"),
        "GIT_WORK_TREE": str(other.path),
        "GIT_INDEX_FILE": str(other.path / "index"),
        "GIT_OBJECT_DIRECTORY": str(other.path / "objects"),
        "GIT_AUTHOR_NAME": "Another User",
        "GIT_COMMITTER_DATE": "garbage",
        "GIT_AUTHOR_DATE": "garbage",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.autocrlf",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_EXTERNAL_DIFF": "false",
        "LC_ALL": "de_DE.UTF-8",
    }
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write("a.txt", b"dos\r\n")
    assert snapshots.take("r1", "1").changes == Changes(modified=("a.txt",))
    for name in [name for name in repo.environ if name.startswith("GIT_")]:
        del repo.environ[name]
    assert repo.store("show", "-s", "--format=%an", "refs/rooda/r1/1") == "rooda"
    assert repo.store("show", "refs/rooda/r1/1:a.txt") == "dos\r"
    assert (repo.git_files(), other.git_files()) == (git_before, theirs)


# -- without a work tree -------------------------------------------------------------------


def test_snapshots_without_a_work_tree_are_those_of_the_folder(repo: Repo, tmp_path: Path) -> None:
    bare = repository(tmp_path / "bare", "--bare")
    outside = tmp_path / "outside"
    outside.mkdir()
    for number, folder in enumerate((outside, bare.path)):
        environ = repo.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
        state = StateFolder(tmp_path / f"state-{number}")
        snapshots = Snapshots.open(folder, state, Tools(environ))
        snapshots.take("r1", "0")
        (folder / "new").write_text("x")
        assert snapshots.take("r1", "1").changes == Changes(created=("new",))
        snapshots.restore("r1", "0", "u1")
        assert not (folder / "new").exists()


def test_core_worktree_elsewhere_does_not_count(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    repo.git("config", "core.worktree", str(tmp_path / "elsewhere"))
    snapshots = repo.open()
    assert snapshots.take("r1", "0").head is None
    repo.write("a.txt", "changed\n")
    snapshots.restore("r1", "0", "u1")
    assert (repo.path / "a.txt").read_text() == "alpha\n"


def test_no_snapshots_without_git(repo: Repo, tmp_path: Path) -> None:
    environ = repo.environ | {"PATH": str(tmp_path)}
    with pytest.raises(GitError, match="git is not installed"):
        Snapshots.open(repo.path, repo.state, Tools(environ))


# -- refs ----------------------------------------------------------------------------------


def test_snapshots_are_listed_in_order_and_deleted_by_run(repo: Repo) -> None:
    snapshots = repo.open()
    for run, name in (("a", "0"), ("a", "10"), ("a", "9"), ("a", "u1"), ("b", "0"), ("ab", "0")):
        repo.write("a.txt", run + name)
        snapshots.take(run, name)
    assert snapshots.runs() == ("a", "ab", "b")
    assert snapshots.names("a") == ("0", "9", "10", "u1")
    assert snapshots.tree_of("a", "9") == repo.store("rev-parse", "refs/rooda/a/9^{tree}")
    assert snapshots.tree_of("a", "8") is None
    snapshots.forget(["a", "b", "unknown"])
    assert snapshots.runs() == ("ab",)
    assert snapshots.names("a") == ()
    repo.write("a.txt", "on it goes")
    assert snapshots.take("a", "11").changes == Changes(modified=("a.txt",))
    assert snapshots.names("a") == ("11",)


def test_deleted_snapshots_free_their_space_at_once(repo: Repo) -> None:
    snapshots = repo.open()
    repo.write("secret", os.urandom(100_000))
    old = snapshots.take("old", "0")
    (repo.path / "secret").unlink()
    new = snapshots.take("new", "0")
    before = _size(repo.state)
    snapshots.forget(["old"])
    assert _size(repo.state) < before - 100_000
    with pytest.raises(subprocess.CalledProcessError):
        repo.store("cat-file", "-e", str(old.tree))
    assert repo.files_of(new) == on_disk(repo)
    repo.write("a.txt", "x")
    after = snapshots.take("new", "1")
    assert (after.changes, after.trouble) == (Changes(modified=("a.txt",)), "")
    repo.store("fsck", "--strict")


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def test_diff_of_two_snapshots_is_a_git_command(repo: Repo) -> None:
    snapshots = repo.open("src")
    snapshots.take("r1", "0")
    repo.write("a.txt", "beta\n")
    repo.write("b.txt", "new\n")
    snapshots.take("r1", "1")
    command = snapshots.diff("r1", "0", "1", "--stat=80", "--", ":/a.txt")
    done = subprocess.run(command, env=repo.environ, check=True, capture_output=True, text=True)
    assert "a.txt | 2 +-" in done.stdout
    assert "b.txt" not in done.stdout


def test_invalid_ref_name_is_no_snapshot(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    words = ["", "a/b", "..", "-d", "a b", "x.lock", ".x", "x.", "@{0}", "a\n", "*"]
    for run, name in [*((word, "0") for word in words), *(("r1", word) for word in words)]:
        with pytest.raises(GitError, match="there is no snapshot"):
            snapshots.take(run, name)
        with pytest.raises(GitError, match="there is no snapshot"):
            snapshots.restore(run, name, "u1")
        with pytest.raises(GitError, match="there is no snapshot"):
            snapshots.diff(run, name, "0")
    snapshots.forget(words)
    assert snapshots.names("r1") == ("0",)


def test_later_process_reads_only_what_has_changed(repo: Repo) -> None:
    repo.open().take("r1", "0")
    repo.write("a.txt", "between the runs")
    snapshots = repo.open()
    first = snapshots.take("r2", "0")
    assert first.changes is None
    assert repo.files_of(first)["a.txt"] == ("file", b"between the runs")
    changed = repo.store("diff", "--name-status", "refs/rooda/r1/0", "refs/rooda/r2/0")
    assert changed == "M\ta.txt"


# -- a disk without room -------------------------------------------------------------------


def test_store_without_room_names_itself_and_keeps_the_earlier_snapshots(repo: Repo) -> None:
    """The disk of the store may be another one than that of the work tree."""
    snapshots = repo.open()
    snapshots.take("r1", "0")
    (repo.path / "large").write_bytes(os.urandom(100_000))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, usual[1]))
    try:
        with pytest.raises(GitError, match=f"{repo.state}/git.*File too large"):
            snapshots.take("r1", "1")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert snapshots.names("r1") == ("0",)
    assert not [*(repo.state / "git/objects/pack").glob("tmp*")]
    snapshots.take("r1", "1")
    assert snapshots.names("r1") == ("0", "1")
