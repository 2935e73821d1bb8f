"""Changes in a folder without a git repository, detected by content."""

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.loop.tracker import FileChangeTracker
from rooda.world.git.git import Git
from rooda.world.git.snapshots import scan
from rooda.world.git.snapshots.rules import IgnoreRules
from rooda.world.git.snapshots.scan import Scan
from rooda.world.git.snapshots.snapshots import LARGEST, Snapshots
from rooda.world.git.snapshots.tree_changes import Changes, TreeScan
from rooda.world.state.folder import StateFolder
from rooda.world.tools import Tools
from support.children import until
from support.faults import powerless
from support.properties import examples


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Return a folder with a few files, a program, a link and ignore rules."""
    return filled(tmp_path / "work")


def filled(folder: Path) -> Path:
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "deep" / "main.c").write_text("int main;")
    (folder / "src" / "run.sh").write_text("echo")
    (folder / "src" / "run.sh").chmod(0o755)
    (folder / "notes").write_text("some words")
    (folder / "link").symlink_to("notes")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    return folder


def scans_of(top: Path, largest: int = LARGEST, state: Path | None = None) -> Snapshots:
    """Return scans with a git that reads no settings of the machine."""
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    place = StateFolder(state or top.with_name(f"{top.name}.state"))
    return Snapshots.open(top, place, Tools(environ), largest)


def sh(top: Path, script: str) -> None:
    subprocess.run(["sh", "-ec", script], cwd=top, check=True)


def changed(top: Path, script: str, largest: int = LARGEST) -> Changes | None:
    """Return the changes between two scans, before and after a script."""
    scans = scans_of(top, largest)
    scans.take(None)
    sh(top, script)
    return scans.take(None).changes


def everything(top: Path) -> tuple[str, ...]:
    """Return the names of all files that a scan finds."""
    names = {path.name for path in top.iterdir()} - {".rooda"}
    aside = top.parent / f"{top.name}.aside"
    aside.mkdir()
    for name in names:
        (top / name).rename(aside / name)
    scans = scans_of(top)
    scans.take(None)
    for name in names:
        (aside / name).rename(top / name)
    aside.rmdir()
    found = scans.take(None).changes
    assert found is not None
    return found.created


def rewrite_in_place(path: Path, content: bytes) -> None:
    """Write other content of the same size into the same inode, and restore the old date."""
    old = path.stat()
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


# -- changes -------------------------------------------------------------------------------

SRC = ("src/deep/main.c", "src/run.sh")
IN_PLACE = "touch -r notes ../date; printf 'SOME WORDS' 1<>notes; touch -r ../date notes"
TO_LINK = 'text=$(cat notes); rm notes; ln -s "$text" notes'
CHANGES = {
    "a new file": ("touch new", Changes(created=("new",))),
    "new folders": ("cp -r src lib", Changes(created=("lib/deep/main.c", "lib/run.sh"))),
    "other content": ("echo void >src/deep/main.c", Changes(modified=("src/deep/main.c",))),
    "other content of the same size and date": (IN_PLACE, Changes(modified=("notes",))),
    "emptied": (": >notes", Changes(modified=("notes",))),
    "deleted": ("rm -r src", Changes(deleted=SRC)),
    "moved": ("mv notes src", Changes(created=("src/notes",), deleted=("notes",))),
    "renamed": ("mv notes nodes", Changes(created=("nodes",), deleted=("notes",))),
    "a folder moved": ("mv src/deep .", Changes(created=("deep/main.c",), deleted=SRC[:1])),
    "made a program": ("chmod u+x notes", Changes(modified=("notes",))),
    "another target": ("ln -sfn src link", Changes(modified=("link",))),
    "a link with the same text as the file": (TO_LINK, Changes(modified=("notes",))),
    "a folder in place of a file": (
        "rm notes; mkdir notes; touch notes/x",
        Changes(created=("notes/x",), deleted=("notes",)),
    ),
    "a file in place of a folder": (
        "rm -r src; touch src",
        Changes(created=("src",), deleted=SRC),
    ),
    "a link in place of a folder": (
        "mv src lib; ln -s lib src",
        Changes(created=("lib/deep/main.c", "lib/run.sh", "src"), deleted=SRC),
    ),
    "a pipe in place of a file": ("rm notes; mkfifo notes", Changes(deleted=("notes",))),
    "a name that is not UTF-8": (
        "touch \"$(printf '\\377\\nx')\"",
        Changes(created=("\udcff\nx",)),
    ),
    "a file beside a repository": (
        "git init -q sub; touch sub/x",
        Changes(created=("sub/x",)),
    ),
}


def check_change(scans: Snapshots, top: Path, script: str, expected: Changes) -> None:
    before = scans.take(None)
    sh(top, script)
    after = scans.take(None)
    assert after.changes == expected
    assert after.tree != before.tree


def check_no_change(scans: Snapshots, top: Path, script: str) -> None:
    before = scans.take(None)
    sh(top, script)
    after = scans.take(None)
    assert after.changes == Changes()
    assert after.tree == before.tree


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("script, found", CHANGES.values(), ids=CHANGES)
def test_each_kind_of_change_is_detected(top: Path, script: str, found: Changes) -> None:
    check_change(scans_of(top), top, script, found)


@pytest.mark.real
def test_deleted_folder_reports_its_files_as_deleted(top: Path) -> None:
    everything = (".gitignore", "link", "notes", *SRC)
    assert changed(top, "rm -r .gitignore link notes src") == Changes(deleted=everything)


NO_CHANGES = {
    "nothing": ":",
    "touched": "touch notes",
    "an old date": "touch -t 199912310000 notes",
    "a date before 1970": "touch -t 190112310000 notes",
    "rewritten with the same content": "printf 'some words' >notes",
    "replaced by a copy": "cp notes copy; mv copy notes",
    "the same link": "rm link; ln -s notes link",
    "its permissions": "chmod 600 notes",
    "an empty folder": "mkdir src/empty",
    "a pipe": "mkfifo pipe",
    "an ignored file": "touch src/x.log",
    "an ignored folder": "cp -r src build",
    "an ignored link to itself": "ln -s . x.log",
    "a state folder of rooda": "mkdir .rooda; cp -r src .rooda/copy",
    "a state folder of rooda in a subfolder": "mkdir src/deep/.rooda; touch src/deep/.rooda/x",
    "a file that points to a repository": "echo gitdir: x >.git",
}


@pytest.mark.real(rows=3)
@pytest.mark.parametrize("script", NO_CHANGES.values(), ids=NO_CHANGES)
def test_other_events_are_no_change(top: Path, script: str) -> None:
    check_no_change(scans_of(top), top, script)


@pytest.mark.real
def test_changes_of_old_files_are_detected(tmp_path: Path) -> None:
    scripts = {**CHANGES, **{name: (script, None) for name, script in NO_CHANGES.items()}}
    tops = {name: filled(tmp_path / str(number) / "work") for number, name in enumerate(scripts)}
    opened = {name: scans_of(top) for name, top in tops.items()}
    filled_at = time.time()
    until(lambda: time.time() > filled_at + 3, "old files")
    for scans in opened.values():
        scans.take(None)
    for name, (script, expected) in scripts.items():
        if expected is None:
            check_no_change(opened[name], tops[name], script)
        else:
            check_change(opened[name], tops[name], script, expected)


@pytest.mark.real
def test_sockets_are_skipped(top: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(top):
        server.bind("socket")  # the whole path may be too long for a socket
    assert (top / "socket").is_socket()
    assert everything(top) == (".gitignore", "link", "notes", *SRC)


@pytest.mark.real
def test_links_are_not_followed(top: Path) -> None:
    sh(top, "mkdir ../outside; ln -s ../outside out; ln -s . around; ln -s nothing nowhere")
    assert changed(top, "touch ../outside/x") == Changes()


@pytest.mark.real
def test_folder_itself_may_be_a_link(top: Path, tmp_path: Path) -> None:
    link = tmp_path / "shortcut"
    link.symlink_to(top)
    found = changed(link, "rm src/run.sh; echo notes >.gitignore")
    assert found == Changes(modified=(".gitignore",), deleted=("src/run.sh",))


# -- nested repositories -------------------------------------------------------------------

REPOSITORIES = """
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x
git init -q one; echo a >one/a; git -C one add a; git -C one commit -qm a
git init -q one/two; echo b >one/two/b; echo '*.o' >one/two/.gitignore; touch one/two/b.o
git init -q empty
"""


@pytest.mark.real
def test_changes_in_nested_repositories_are_detected(top: Path) -> None:
    sh(top, REPOSITORIES)
    script = "echo x >one/a; rm one/two/b; touch one/c one/two/c.o empty/e; git init -q src"
    assert changed(top, script) == Changes(
        created=("empty/e", "one/c"), modified=("one/a",), deleted=("one/two/b",)
    )


@pytest.mark.real
def test_files_of_a_new_nested_repository_are_reported_one_by_one(top: Path) -> None:
    found = changed(top, REPOSITORIES)
    assert found == Changes(created=("one/a", "one/two/.gitignore", "one/two/b"))


@pytest.mark.real
def test_commit_in_a_nested_repository_is_no_change(top: Path) -> None:
    sh(top, REPOSITORIES)
    commit = "git -C one -c user.name=x -c user.email=x commit -q --allow-empty -m b"
    assert changed(top, commit) == Changes()


@pytest.mark.real
def test_files_of_a_repository_in_place_of_a_file_are_reported_one_by_one(top: Path) -> None:
    found = changed(top, "rm notes; git init -q notes; touch notes/x")
    assert found == Changes(created=("notes/x",), deleted=("notes",))


@pytest.mark.real
def test_repository_that_git_refuses_is_scanned(top: Path) -> None:
    sh(top, "git init -q .; echo broken >.git/config")
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    tracker = FileChangeTracker(top, Tools(environ))
    tracker.snapshot()
    (top / "new").touch()
    assert tracker.scan().changes == Changes(created=("new",))


@pytest.mark.real
def test_folder_without_a_repository_has_snapshots(top: Path, tmp_path: Path) -> None:
    tracker = FileChangeTracker(top, state=StateFolder(tmp_path / "state"), run="run", keep=True)
    for name in ("0", "1", "2"):
        found = tracker.scan(name)
        assert (bool(found.commit), found.head, found.left_out, found.trouble) == (
            True,
            None,
            (),
            "",
        )
        (top / "notes").write_text(name)
    snapshots = Snapshots.open(top, StateFolder(tmp_path / "state"), Tools())
    assert snapshots.names("run") == ("0", "1", "2")
    snapshots.restore("run", "0", "u1")
    assert (top / "notes").read_text() == "some words"


# -- ignore rules ----------------------------------------------------------------------------


@pytest.mark.real
def test_newly_ignored_file_is_not_reported_as_deleted(top: Path) -> None:
    hidden = changed(top, "echo notes >.gitignore; echo src >>.gitignore")
    assert hidden == Changes(modified=(".gitignore",))


@pytest.mark.real
def test_newly_ignored_and_deleted_file_is_reported_as_deleted(top: Path) -> None:
    found = changed(top, "rm notes src/run.sh; echo notes >.gitignore; echo src >>.gitignore")
    assert found == Changes(modified=(".gitignore",), deleted=("notes", "src/run.sh"))


@pytest.mark.real
def test_file_that_is_no_longer_ignored_counts_as_created(top: Path) -> None:
    sh(top, "touch old.log; cp -r src build")
    assert changed(top, "echo build/deep >.gitignore") == Changes(
        created=("build/run.sh", "old.log"), modified=(".gitignore",)
    )


@pytest.mark.real
def test_rules_of_a_folder_override_those_above_it(top: Path) -> None:
    sh(top, "mkdir -p a/b a/c; echo '!keep.log' >a/.gitignore; echo /b >>a/.gitignore")
    found = changed(top, "touch keep.log a/keep.log a/c/keep.log a/other.log a/b/x a/c/b")
    assert found == Changes(created=("a/c/b", "a/c/keep.log", "a/keep.log"))


@pytest.mark.real
def test_ignore_file_that_is_a_link_or_a_folder_is_skipped(top: Path) -> None:
    sh(top, "mv .gitignore rules; ln -s rules .gitignore; mkdir -p a/.gitignore")
    assert changed(top, "touch x.log a/y.log") == Changes(created=("a/y.log", "x.log"))


@pytest.mark.real
def test_ignore_rules_of_the_user_apply(top: Path, tmp_path: Path) -> None:
    (tmp_path / "ignore").write_text("*.tmp\n")
    (tmp_path / "config").write_text(f"[core]\n\texcludesFile = {tmp_path}/ignore\n")
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": str(tmp_path / "config")}
    scans = Snapshots.open(top, StateFolder(tmp_path / "state"), Tools(environ))
    scans.take(None)
    sh(top, "touch x.tmp y")
    assert scans.take(None).changes == Changes(created=("y",))


# -- large and unreadable files ------------------------------------------------------------


@pytest.mark.real
def test_large_file_is_compared_by_its_inode(top: Path) -> None:
    (top / "large").touch()
    os.truncate(top / "large", LARGEST + 1)
    assert changed(top, ":") == Changes()
    assert changed(top, "touch large") == Changes(modified=("large",))
    assert changed(top, "rm large") == Changes(deleted=("large",))


@pytest.mark.real
def test_largest_file_that_is_read(top: Path) -> None:
    assert changed(top, "touch notes", largest=10) == Changes()
    assert changed(top, "touch notes", largest=9) == Changes(modified=("notes",))


@pytest.mark.real
def test_scan_reads_a_bounded_number_of_bytes(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = len("*.log\nbuild/\n")
    sh(top, "rm -r src link notes; for name in a b c d; do printf 0123456789 >$name; done")
    monkeypatch.setattr(scan, "MOST_READ", rules + 2 * len("0123456789"))
    found = changed(top, "touch a b c d")
    assert found is not None
    assert len(found.modified) == 2, "without a read, a new date counts as a change"


@pytest.mark.real
def test_file_that_becomes_readable_has_not_changed(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = scans_of(top)
    with monkeypatch.context() as patch:
        patch.setattr(scan, "MOST_READ", 0)
        scans.take(None)
    assert scans.take(None).changes == Changes()


LOCKED = """
import json, sys
from msgspec.structs import asdict
from pathlib import Path
from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.tools import Tools

top = Path(sys.argv[1])
scans = Snapshots.open(top, top.with_name("state"), Tools())
scans.take(None)
steps = {
    "lock": lambda: [(top / "notes").chmod(0), (top / "src").chmod(0)],
    "leave": lambda: None,
    "touch": lambda: (top / "notes").touch(),
    "delete": lambda: (top / "link").unlink(),
    "unlock": lambda: (top / "src").chmod(0o700),
}
for name, step in steps.items():
    step()
    print(json.dumps([name, asdict(scans.take(None).changes)]))
"""


@pytest.mark.real
def test_unreadable_file_is_skipped_and_not_reported_as_deleted(top: Path) -> None:
    command = [*powerless(), sys.executable, "-c", LOCKED, str(top)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(json.loads(line) for line in printed.splitlines())
    nothing: dict[str, list[str]] = {"created": [], "modified": [], "deleted": []}
    assert found == {
        "lock": {**nothing, "modified": ["notes"]},  # rooda cannot compare its content any more
        "leave": nothing,
        "touch": {**nothing, "modified": ["notes"]},
        "delete": {**nothing, "deleted": ["link"]},
        "unlock": nothing,
    }


# -- files that change during a scan -------------------------------------------------------


@pytest.mark.real
def test_change_within_one_tick_of_the_clock_is_seen(top: Path) -> None:
    path = top / "src" / "deep" / "main.c"
    scans = scans_of(top)
    for number in range(20):
        path.write_bytes(b"%09d" % number)
        scans.take(None)
        rewrite_in_place(path, b"again%04d" % number)
        assert scans.take(None).changes == Changes(modified=("src/deep/main.c",))


CHANGES_DURING_A_SCAN = [
    "rm notes",
    "rm link",
    "echo other >notes",
    "printf more >>notes",
    IN_PLACE,
    TO_LINK,
    "rm notes; mkdir notes; touch notes/x",
    "rm notes; mkfifo notes",
    "rm -r src; ln -s . src",
    "touch src/deep/new",
    "echo src >.gitignore",
]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("script", CHANGES_DURING_A_SCAN)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
def test_change_during_a_scan_does_not_corrupt_the_next_scan(
    top: Path, script: str, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    scans = scans_of(top)
    if not is_first:
        scans.take(None)
        sh(top, "echo new >src/new")
    ask, scripts = IgnoreRules.ignored, [script]

    def ask_then_change(
        rules: IgnoreRules, names: Mapping[str, Iterable[str]]
    ) -> dict[str, set[str]]:
        found = ask(rules, names)
        for one in scripts:
            sh(top, one)  # rooda has listed the files, but not read them yet
        scripts.clear()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(IgnoreRules, "ignored", ask_then_change)
        scans.take(None)
    fresh = top.parent / "fresh"
    fresh.mkdir()
    assert scans.take(None).tree == scans_of(top, state=fresh).take(None).tree


# -- cost of a scan ------------------------------------------------------------------------


@pytest.mark.real
def test_next_process_reads_no_file_again(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in top.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    written = time.time()
    until(lambda: time.time() > written + 0.2, "old files")
    tree = scans_of(top).take(None).tree
    monkeypatch.setattr(Scan, "_read", None)
    assert scans_of(top).take(None).tree == tree


@pytest.mark.real
def test_tree_without_changes_needs_no_git(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top / "x.log").touch()
    scans = scans_of(top)
    scans.take("r1", "0")
    monkeypatch.setattr(Git, "_stream", None)
    assert [scans.take("r1", str(number)).changes for number in (1, 2)] == [Changes()] * 2
    (top / "x.log").write_text("an ignored file")
    assert scans.take("r1", "3").changes == Changes()


@pytest.mark.real
def test_files_of_a_path_that_is_too_long_for_the_os_count(top: Path) -> None:
    name, opened = "d" * 250, [os.open(top, os.O_RDONLY)]
    for _ in range(20):
        os.mkdir(name, dir_fd=opened[-1])
        opened.append(os.open(name, os.O_RDONLY, dir_fd=opened[-1]))
    os.close(os.open("x", os.O_CREAT, dir_fd=opened[-1]))
    scans = scans_of(top)
    scans.take("r1", "0")
    os.unlink("x", dir_fd=opened[-1])
    gone = scans.take("r1", "1")
    assert gone.changes == Changes(deleted=("/".join([name] * 20) + "/x",))
    scans.restore("r1", "0", "u1")
    assert os.stat("x", dir_fd=opened[-1]).st_size == 0
    for fd in opened:
        os.close(fd)


# -- damage to the store -------------------------------------------------------------------

DAMAGE = {
    "all of it": "rm -r .",
    "the store": "rm -r git",
    "the objects": "rm -r git/objects",
    "the packs": "rm -f git/objects/pack/*",
    "the refs": "rm -r git/refs",
    "the marks": "rm marks",
    "broken marks": "echo x >marks",
    "marks that are a pipe": "rm marks; mkfifo marks",
    "other settings": "echo '[core] excludesFile = /dev/zero' >git/config",
    "a HEAD that is a pipe": "rm git/HEAD; mkfifo git/HEAD",
    "a link to elsewhere": "mkdir ../x; rm -r git; ln -s ../x git",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("script", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("is_next", [True, False], ids=["next process", "same process"])
def test_snapshots_continue_after_their_store_was_damaged(
    top: Path, script: str, *, is_next: bool
) -> None:
    scans = scans_of(top)
    before = scans.take("r1", "0")
    subprocess.run(["sh", "-c", script], cwd=top.with_name("work.state"), check=False)
    if is_next:
        scans = scans_of(top)
        assert scans.take("r1", "1").tree == before.tree
    (top / "new").touch()
    after = scans.take("r1", "2")
    assert after.changes == Changes(created=("new",))
    (top / "newer").touch()
    assert scans.take("r1", "3").changes == Changes(created=("newer",))
    (top / "notes").unlink()
    scans.restore("r1", "2", "u1")
    assert (top / "notes").read_text() == "some words"
    assert not (top / "newer").exists()


# -- a machine without git -----------------------------------------------------------------


def test_changes_are_unknown_without_git_and_the_reason_is_reported(top: Path) -> None:
    tracker = FileChangeTracker(top, Tools({"PATH": "/nonexistent"}))
    tracker.snapshot()
    (top / "new").touch()
    found = tracker.scan()
    assert found == TreeScan(trouble=found.trouble)
    assert "git is not installed" in found.trouble


# -- the id of the tree --------------------------------------------------------------------


@pytest.mark.real
def test_tree_that_returns_to_earlier_content_has_the_earlier_id(top: Path) -> None:
    scans = scans_of(top)
    first = scans.take(None).tree
    (top / "notes").write_text("other words")
    second = scans.take(None).tree
    (top / "notes").write_text("some words")
    assert first == scans.take(None).tree != second


@pytest.mark.real
def test_copy_made_in_another_order_has_the_same_tree(top: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for path in sorted(top.rglob("*"), reverse=True):
        to = copy / path.relative_to(top)
        to.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            shutil.copy(path, to, follow_symlinks=False)
    assert scans_of(copy).take(None).tree == scans_of(top).take(None).tree


# -- any changes ---------------------------------------------------------------------------

NAMES = ["a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "e"]
NAME = st.sampled_from(NAMES)
Step = tuple[str, str, str]
ACTS = "write write rewrite delete mode touch link move"
STEP = st.tuples(st.sampled_from(ACTS.split()), NAME, NAME)


def take(top: Path, step: Step) -> None:
    """Take a step if it is possible in the current tree."""
    what, path, other = step[0], top / step[1], top / step[2]
    with contextlib.suppress(OSError):
        match what:
            case "write":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step[2])
            case "rewrite":
                rewrite_in_place(path, path.read_bytes().swapcase())
            case "delete":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            case "mode":
                path.chmod(path.stat().st_mode ^ stat.S_IXUSR)
            case "touch":
                os.utime(path)
            case "link":
                path.symlink_to(step[2])
            case "move":
                path.replace(other)


def read_all(top: Path) -> dict[str, tuple[str, bytes]]:
    """Return each file, read from the disk."""
    found = {}
    for folder, folders, files in os.walk(top):
        if ".rooda" in folders:
            folders.remove(".rooda")
        for path in (Path(folder, name) for name in folders + files):
            name = str(path.relative_to(top))
            if path.is_symlink():
                found[name] = ("link", bytes(path.readlink()))
            elif path.is_file():
                mode = "program" if path.stat().st_mode & stat.S_IXUSR else "file"
                found[name] = (mode, path.read_bytes())
    return found


def check_changes(top: Path, rounds: list[list[Step]]) -> None:
    scans = scans_of(top)
    found, contents = [scans.take(None)], [read_all(top)]
    for steps in rounds:
        for step in steps:
            take(top, step)
        found.append(scans.take(None))
        contents.append(read_all(top))
        old, new = contents[-2:]
        both = old.keys() & new.keys()
        assert found[-1].changes == Changes(
            created=tuple(sorted(new.keys() - both)),
            modified=tuple(sorted(name for name in both if old[name] != new[name])),
            deleted=tuple(sorted(old.keys() - both)),
        )
    for taken, one in zip(found, contents, strict=True):
        for other, another in zip(found, contents, strict=True):
            assert (taken.tree == other.tree) == (one == another)


ROUNDS = st.lists(st.lists(STEP, max_size=6), min_size=1, max_size=4)


@pytest.mark.long
@examples(50)
@given(rounds=ROUNDS)
def test_any_changes_are_detected(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[Step]]
) -> None:
    top = tmp_path_factory.mktemp("any")
    for name in NAMES[:5]:
        take(top, ("write", name, name))
    check_changes(top, rounds)
