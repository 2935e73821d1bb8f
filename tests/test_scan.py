"""What changed where there is no git: by content, and never missed, at the price of a look."""

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rooda.workspace import scan as module
from rooda.workspace.scan import LARGE, Scan, Unfinished, changes, scan
from rooda.workspace.tree_changes import Changes
from support.children import until
from support.faults import powerless

SHORTLY = 50_000_000  # nanoseconds: some ticks of any clock


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder with a few files, a program, a link and rules."""
    folder = tmp_path / "work"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "deep" / "main.c").write_text("int main;")
    (folder / "src" / "run.sh").write_text("echo")
    (folder / "src" / "run.sh").chmod(0o755)
    (folder / "notes").write_text("some words")
    (folder / "link").symlink_to("notes")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    return folder


@pytest.fixture(params=["at once", "settled"])
def begun(top: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, either just filled or so long ago that the inodes can be trusted."""
    if request.param == "settled":
        monkeypatch.setattr(module, "RECENT", SHORTLY)
        settle(top)
    return top


def settle(top: Path) -> None:
    """Wait until no file was changed recently."""
    newest = max(path.lstat().st_ctime_ns for path in top.rglob("*"))
    until(lambda: time.time_ns() > newest + SHORTLY, "a tree at rest")


def sh(top: Path, script: str) -> None:
    subprocess.run(["sh", "-ec", script], cwd=top, check=True)


def changed(top: Path, script: str) -> Changes:
    """What two looks make of what a script did between them."""
    before = scan(top)
    sh(top, script)
    return changes(before, scan(top, before))


def rewrite_in_place(path: Path, content: bytes) -> None:
    """Other content of the same size in the same inode, with the same date on it."""
    old = path.stat()
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


# -- what is a change ----------------------------------------------------------------------

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
    "all deleted": ("rm -r ../work", Changes(deleted=(".gitignore", "link", "notes", *SRC))),
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
    "a name that no text can hold": (
        "touch \"$(printf '\\377\\nx')\"",
        Changes(created=("\udcff\nx",)),
    ),
    "a file beside a repository": (
        "git init -q sub; touch sub/x",
        Changes(created=("sub/x",)),
    ),
}


@pytest.mark.parametrize("script, found", CHANGES.values(), ids=CHANGES)
def test_a_change_is_told_as_what_it_is(begun: Path, script: str, found: Changes) -> None:
    digest = scan(begun).digest
    assert changed(begun, script) == found
    assert scan(begun).digest != digest


NO_CHANGES = {
    "nothing": ":",
    "touched": "touch notes",
    "an old date": "touch -t 199912310000 notes",
    "a date before all dates": "touch -t 190112310000 notes",
    "written as it was": "printf 'some words' >notes",
    "replaced by a copy": "cp notes copy; mv copy notes",
    "the same link": "rm link; ln -s notes link",
    "who may read it": "chmod 600 notes",
    "an empty folder": "mkdir src/empty",
    "a pipe": "mkfifo pipe",
    "something hidden": "touch src/x.log",
    "a hidden folder": "cp -r src build",
    "a link to itself that is hidden": "ln -s . x.log",
    "rooda's own": "cp -r src .rooda",
    "rooda's own below": "mkdir src/deep/.rooda; touch src/deep/.rooda/x",
    "a file that points to a repository": "echo gitdir: x >.git",
}


@pytest.mark.parametrize("script", NO_CHANGES.values(), ids=NO_CHANGES)
def test_what_is_no_change_is_not_told(begun: Path, script: str) -> None:
    digest = scan(begun).digest
    assert changed(begun, script) == Changes()
    assert scan(begun).digest == digest


def test_a_socket_is_not_looked_at(top: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(top):
        server.bind("socket")  # the whole path may be too long for it
    assert (top / "socket").is_socket()
    assert "socket" not in changes(Scan(), scan(top)).created


def test_what_is_behind_a_link_is_not_looked_at(top: Path) -> None:
    sh(top, "mkdir ../outside; ln -s ../outside out; ln -s . around; ln -s nothing nowhere")
    assert changed(top, "touch ../outside/x") == Changes()


def test_the_folder_itself_may_be_a_link(top: Path, tmp_path: Path) -> None:
    link = tmp_path / "shortcut"
    link.symlink_to(top)
    found = changed(link, "rm src/run.sh; echo notes >.gitignore")
    assert found == Changes(modified=(".gitignore",), deleted=("src/run.sh",))


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    assert changes(Scan(), scan(tmp_path / "nowhere")) == Changes()


# -- what comes into sight and goes out of it ----------------------------------------------


def test_a_file_that_a_new_rule_hides_was_not_deleted(top: Path) -> None:
    hidden = changed(top, "echo notes >.gitignore; echo src >>.gitignore")
    assert hidden == Changes(modified=(".gitignore",))


def test_a_file_that_is_hidden_and_gone_was_deleted(top: Path) -> None:
    found = changed(top, "rm notes src/run.sh; echo notes >.gitignore; echo src >>.gitignore")
    assert found == Changes(modified=(".gitignore",), deleted=("notes", "src/run.sh"))


def test_a_file_that_comes_into_sight_counts_as_created(top: Path) -> None:
    sh(top, "touch old.log; cp -r src build")
    assert changed(top, "echo build/deep >.gitignore") == Changes(
        created=("build/run.sh", "old.log"), modified=(".gitignore",)
    )


# -- where reading is too much, or not allowed ---------------------------------------------


def test_a_large_file_is_not_read_and_its_inode_decides(top: Path) -> None:
    (top / "large").touch()
    os.truncate(top / "large", LARGE + 1)
    assert changed(top, ":") == Changes()
    assert changed(top, "touch large") == Changes(modified=("large",))


def test_a_file_is_read_up_to_the_size_that_is_large(top: Path) -> None:
    (top / "not quite").touch()
    os.truncate(top / "not quite", LARGE)
    assert changed(top, "touch 'not quite'") == Changes()


def test_only_so_much_is_read_at_one_look(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sh(top, "for name in a b c d; do printf 0123456789 >$name; done")
    monkeypatch.setattr(module, "MOST_READ", len("*.log\nbuild/\n" + "0123456789" * 2))
    found = changed(top, "touch a b c d")
    assert found == Changes(modified=("c", "d")), "where nothing is read, a date is a change"


def test_what_could_not_be_read_did_not_change_because_it_now_can(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "MOST_READ", 0)
        before = scan(top)
    assert changes(before, scan(top, before)) == Changes()


LOCKED = """
import json, sys
from msgspec.structs import asdict
from pathlib import Path
from rooda.workspace.scan import changes, scan

top = Path(sys.argv[1])
looks = [scan(top)]
steps = {
    "lock": lambda: [(top / "notes").chmod(0), (top / "src").chmod(0)],
    "leave": lambda: None,
    "touch": lambda: (top / "notes").touch(),
    "delete": lambda: (top / "link").unlink(),
    "unlock": lambda: (top / "src").chmod(0o700),
}
for name, step in steps.items():
    step()
    looks.append(scan(top, looks[-1]))
    print(json.dumps([name, asdict(changes(looks[-2], looks[-1]))]))
"""


def test_what_must_not_be_read_is_skipped_and_not_taken_for_deleted(top: Path) -> None:
    command = [*powerless(), sys.executable, "-c", LOCKED, str(top)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(json.loads(line) for line in printed.splitlines())
    nothing: dict[str, list[str]] = {"created": [], "modified": [], "deleted": []}
    assert found == {
        "lock": {**nothing, "modified": ["notes"]},  # it can't be compared any more
        "leave": nothing,
        "touch": {**nothing, "modified": ["notes"]},
        "delete": {**nothing, "deleted": ["link"]},
        "unlock": {**nothing, "created": [*SRC]},  # into sight again
    }


# -- files that change at the very moment of a look ----------------------------------------


def test_a_change_within_the_same_tick_of_the_clock_is_seen(top: Path) -> None:
    path, hits = top / "src" / "deep" / "main.c", 0
    for number in range(60):
        path.write_bytes(b"%09d" % number)
        before = scan(top)
        inode = path.stat()
        rewrite_in_place(path, b"again%04d" % number)
        hits += path.stat().st_ctime_ns == inode.st_ctime_ns
        assert changes(before, scan(top, before)) == Changes(modified=("src/deep/main.c",))
        if hits == 3:
            return
    if not hits:
        pytest.skip("the clock of this file system is too good for that")


def unlike(look: Scan) -> Scan:
    """The same look at the same inodes, as if there had been other content."""
    folders = {
        prefix: replace(folder, hashes=folder.hashes[::-1])
        for prefix, folder in look.folders.items()
    }
    return replace(look, folders=folders)


def test_an_inode_is_trusted_only_if_it_is_not_recent(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = unlike(scan(top))
    everything = (".gitignore", "link", "notes", *SRC)
    assert changes(before, scan(top, before)) == Changes(modified=everything)
    monkeypatch.setattr(module, "RECENT", SHORTLY)
    settle(top)
    before = unlike(scan(top))
    (top / "notes").touch()
    assert changes(before, scan(top, before)) == Changes(modified=("notes",))


class Meddler:
    """Does something at the nth time that a look pauses to see whether it is over."""

    def __init__(self, act: Callable[[], object], when: int = 0) -> None:
        self.act, self.pauses, self.when = act, 0, when

    def __call__(self) -> bool:
        self.pauses += 1
        return self.pauses == self.when and bool(self.act())


def pauses(top: Path) -> int:
    """How often a look at this folder pauses."""
    counter = Meddler(lambda: None)
    scan(top, is_hurried=counter)
    return counter.pauses


@pytest.mark.parametrize(
    "script",
    [
        "rm notes",
        "rm link",
        "rm -r ../$(basename $PWD)",
        "echo other >notes",
        "printf more >>notes",
        IN_PLACE,
        TO_LINK,
        "rm notes; mkdir notes; touch notes/x",
        "rm notes; mkfifo notes",
        "rm -r src; ln -s . src",
        "touch src/deep/new",
        "echo src >.gitignore",
    ],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
def test_a_change_in_the_middle_of_a_look_does_not_spoil_the_next(
    top: Path, tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch, *, is_first: bool
) -> None:
    copies = [tmp_path / str(when) for when in range(pauses(top))]
    for copy in copies:
        shutil.copytree(top, copy, symlinks=True)
    monkeypatch.setattr(module, "RECENT", SHORTLY)
    settle(tmp_path)
    for when, copy in enumerate(copies):
        meddler = Meddler(partial(sh, copy, script), when + 1)
        middle = scan(copy, None if is_first else scan(copy), is_hurried=meddler)
        assert scan(copy, middle).digest == scan(copy).digest


def test_a_file_that_is_deleted_before_it_is_read_was_not_there(top: Path, tmp_path: Path) -> None:
    for when in range(1, len(list(top.iterdir())) + 1):
        copy = shutil.copytree(top, tmp_path / str(when), symlinks=True)
        look = scan(copy, is_hurried=Meddler(partial(sh, copy, "rm notes link"), when))
        assert changes(Scan(), look).created == (".gitignore", *SRC)


def test_a_file_that_grows_as_fast_as_it_is_read_does_not_hold_up_a_look(top: Path) -> None:
    parts = iter(range(60))

    def grow() -> bool:
        with (top / "notes").open("ab") as file:
            file.write(bytes(2_000_000))
        return next(parts, None) is None

    scan(top, is_hurried=grow)


# -- the price of a look -------------------------------------------------------------------


def test_what_did_not_change_is_not_read_again(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT", SHORTLY)
    settle(top)
    before = scan(top)
    (top / "src" / "new").write_text("x")
    monkeypatch.setattr(module, "MOST_READ", 0)
    assert changes(before, scan(top, before)) == Changes(created=("src/new",))


def test_a_look_ends_when_its_time_is_up(top: Path) -> None:
    with pytest.raises(Unfinished):
        scan(top, seconds=0)


def test_a_look_can_be_ended_at_any_moment(top: Path) -> None:
    (top / "long").touch()
    os.truncate(top / "long", 10_000_000)
    assert pauses(top) > 15, "it pauses within a file, too"
    for when in range(1, pauses(top) + 1):
        with pytest.raises(Unfinished):
            scan(top, is_hurried=Meddler(lambda: True, when))


def test_a_path_that_is_too_long_for_the_system_is_skipped(top: Path) -> None:
    name, opened = "d" * 250, [os.open(top, os.O_RDONLY)]
    for _ in range(20):
        os.mkdir(name, dir_fd=opened[-1])
        opened.append(os.open(name, os.O_RDONLY, dir_fd=opened[-1]))
    os.close(os.open("x", os.O_CREAT, dir_fd=opened[-1]))
    for fd in opened:
        os.close(fd)
    assert changed(top, "rm notes") == Changes(deleted=("notes",))


# -- the digest of the whole ---------------------------------------------------------------


def test_a_tree_that_goes_back_has_the_digest_that_it_had(begun: Path) -> None:
    first = scan(begun)
    (begun / "notes").write_text("other words")
    second = scan(begun, first)
    (begun / "notes").write_text("some words")
    third = scan(begun, second)
    assert first.digest == third.digest != second.digest


def test_a_copy_made_in_another_order_has_the_same_digest(top: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for path in sorted(top.rglob("*"), reverse=True):
        to = copy / path.relative_to(top)
        to.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            shutil.copy(path, to, follow_symlinks=False)
    assert scan(copy).digest == scan(top).digest


# -- any changes ---------------------------------------------------------------------------

NAMES = ["a", "b", "d/a", "d/b", "d/e/a", "d/e/b", "e"]
NAME = st.sampled_from(NAMES)
Step = tuple[str, str, str]
ACTS = "write write rewrite delete mode touch link move settle"
STEP = st.tuples(st.sampled_from(ACTS.split()), NAME, NAME)


def take(top: Path, step: Step) -> None:
    """Take a step, if it can be taken as the tree is now."""
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
            case "settle":
                settle(top)


def truth(top: Path) -> dict[str, tuple[str, bytes]]:
    """Everything there is, read anew."""
    found = {}
    for folder, folders, files in os.walk(top):
        for path in (Path(folder, name) for name in folders + files):
            name = str(path.relative_to(top))
            if path.is_symlink():
                found[name] = ("link", bytes(path.readlink()))
            elif path.is_file():
                mode = "program" if path.stat().st_mode & stat.S_IXUSR else "file"
                found[name] = (mode, path.read_bytes())
    return found


def are_told_as_they_are(top: Path, rounds: list[list[Step]]) -> None:
    looks, truths = [scan(top)], [truth(top)]
    for steps in rounds:
        for step in steps:
            take(top, step)
        looks.append(scan(top, looks[-1]))
        truths.append(truth(top))
        old, new = truths[-2:]
        both = old.keys() & new.keys()
        assert changes(*looks[-2:]) == Changes(
            created=tuple(sorted(new.keys() - both)),
            modified=tuple(sorted(name for name in both if old[name] != new[name])),
            deleted=tuple(sorted(old.keys() - both)),
        )
    for look, one in zip(looks, truths, strict=True):
        for other, another in zip(looks, truths, strict=True):
            assert (look.digest == other.digest) == (one == another)


ROUNDS = st.lists(st.lists(STEP, max_size=6), min_size=1, max_size=4)


def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("any")
    for name in NAMES[:5]:
        take(top, ("write", name, name))
    return top


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(rounds=ROUNDS)
def test_any_changes_are_told_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[Step]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RECENT", SHORTLY)
        are_told_as_they_are(some(tmp_path_factory), rounds)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(rounds=ROUNDS)
def test_many_changes_are_told_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[Step]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RECENT", SHORTLY)
        are_told_as_they_are(some(tmp_path_factory), rounds)
