"""Restore: the exact bytes, executable bits and links of a snapshot, and its undo."""

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from rooda.world.git.git import GitError
from rooda.world.git.snapshots.restore import RestorePlan, plan_restore
from rooda.world.git.snapshots.tree_changes import GITLINK, Changes, Difference
from support.children import until
from support.gitrepo import Repo, Walk, compare, repository, walk
from support.properties import examples


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    found = repository(tmp_path_factory.mktemp("original") / "repo")
    found.write("a.txt", "alpha\n")
    found.write("src/main.c", "int main;\n")
    found.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    (found.path / "link").symlink_to("a.txt")
    found.write(".gitignore", "*.o\n")
    found.commit()
    found.write("src/main.c", "int changed;\n")
    found.write("src/untracked.c", "new\n")
    found.write("main.o", "ignored")
    return found


@pytest.fixture
def repo(original: Repo, tmp_path: Path) -> Repo:
    return original.copy(tmp_path / "repo")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def change_everything(repo: Repo) -> None:
    """Change one thing of each kind."""
    repo.write("a.txt", b"\r\n\0other\xff")
    (repo.path / "src/main.c").unlink()
    repo.write("src/untracked.c/deep/file", "was a file\n")
    repo.write("new/folder/file", "new\n")
    (repo.path / "run.sh").chmod(0o644)
    (repo.path / "link").unlink()
    (repo.path / "link").symlink_to("src")
    repo.write("main.o", "ignored, and changed")
    repo.write("new.o", "ignored, and new")


def delete_blocking_file(repo: Repo) -> None:
    (repo.path / "src/untracked.c").unlink()


# -- restore and undo ----------------------------------------------------------------------


@pytest.mark.real
def test_restore_and_undo_bring_back_the_exact_tree(repo: Repo) -> None:
    snapshots = repo.open()
    before = walk(repo.path)
    first = snapshots.take("r1", "0")
    delete_blocking_file(repo)
    change_everything(repo)
    changed = walk(repo.path)
    git_before = repo.git_files()
    restored = snapshots.restore("r1", "0", "u1")
    ignored = {"main.o": changed["main.o"], "new.o": changed["new.o"]}
    assert walk(repo.path) == before | ignored
    assert (restored.tree, restored.commit) == (first.tree, first.commit)
    assert restored.changes == Changes(
        created=("src/main.c", "src/untracked.c"),
        modified=("a.txt", "link", "run.sh"),
        deleted=("new/folder/file", "src/untracked.c/deep/file"),
    )
    assert restored.left_out == ()
    assert not (repo.path / "new").exists()
    snapshots.restore("r1", "u1", "u2")
    assert walk(repo.path) == changed
    snapshots.restore("r1", "u2", "u3")
    assert walk(repo.path) == before | ignored
    assert snapshots.names("r1") == ("0", "u1", "u2", "u3")
    assert repo.git_files() == git_before


@pytest.mark.real
def test_changes_after_a_restore_are_relative_to_the_restored_tree(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write("a.txt", "beta\n")
    snapshots.restore("r1", "0", "u1")
    assert snapshots.take("r1", "1").changes == Changes()
    repo.write("src/main.c", "more")
    assert snapshots.take("r1", "2").changes == Changes(modified=("src/main.c",))


@pytest.mark.real
def test_restore_in_another_process_needs_only_the_store(repo: Repo) -> None:
    before = walk(repo.path)
    repo.open().take("r1", "0")
    delete_blocking_file(repo)
    change_everything(repo)
    shutil.rmtree(repo.path / ".git")
    (repo.state / "marks").unlink()
    repo.open().restore("r1", "0", "u1")
    after = walk(repo.path)
    assert {name: after[name] for name in before if name != "main.o"} == {
        name: before[name] for name in before if name != "main.o"
    }


def times_of(repo: Repo) -> dict[str, int]:
    return {name: (repo.path / name).lstat().st_ctime_ns for name in walk(repo.path)}


@pytest.mark.real
def test_restore_of_the_current_tree_does_nothing(repo: Repo) -> None:
    snapshots = repo.open()
    first = snapshots.take("r1", "0")
    times = times_of(repo)
    restored = snapshots.restore("r1", "0", "u1")
    assert restored.changes == Changes()
    assert snapshots.tree_of("r1", "u1") == first.tree
    assert times_of(repo) == times


@pytest.mark.real
def test_restore_of_an_unknown_snapshot_is_refused(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    before = walk(repo.path)
    for run, name in (("r1", "1"), ("r2", "0")):
        with pytest.raises(GitError, match=f"there is no snapshot {name} of run {run}"):
            snapshots.restore(run, name, "u1")
    assert walk(repo.path) == before
    assert snapshots.names("r1") == ("0",)


# -- permissions ---------------------------------------------------------------------------


@pytest.mark.real
def test_private_files_are_private_again_with_their_old_content(repo: Repo) -> None:
    modes = (0o600, 0o640, 0o644, 0o444, 0o700)
    for then in modes:
        repo.write(f"x{then:o}", "then").chmod(then)
    snapshots = repo.open()
    snapshots.take("r1", "0")
    for then in modes:
        repo.write(f"x{then:o}", "now").chmod(0o644)
    snapshots.restore("r1", "0", "u1")
    paths = {then: repo.path / f"x{then:o}" for then in modes}
    assert {then: path.read_text() for then, path in paths.items()} == dict.fromkeys(modes, "then")
    assert {then: mode(path) for then, path in paths.items()} == {then: then for then in modes}


MODES = (0o600, 0o640, 0o644, 0o755, 0o700, 0o750, 0o444, 0o664, 0o666)


@pytest.mark.real
def test_permissions_come_back_exactly(repo: Repo) -> None:
    """Of deleted files, of changed ones, and of those with other permissions and the same bytes."""
    there = [repo.path / f"{what}/{now:o}" for what in ("gone", "changed", "same") for now in MODES]
    for path in there:
        repo.write(str(path.relative_to(repo.path)), "then").chmod(int(path.name, 8))
    repo.open().take("r1", "0")
    repo.sh("rm -r gone; umask 022; for f in changed/*; do rm -f $f; echo now > $f; done")
    repo.sh("chmod 600 changed/644 same/644; chmod 644 same/600 changed/640")
    restored = repo.open().restore("r1", "0", "u1")
    assert restored.left_out == ()
    assert {path: path.read_text() for path in there} == dict.fromkeys(there, "then")
    assert {path: mode(path) for path in there} == {path: int(path.name, 8) for path in there}
    assert mode(repo.path / "gone") & 0o111 == 0o111, "only the files are private"
    repo.open().restore("r1", "u1", "u2")
    assert mode(repo.path / "same/600") == 0o644
    assert mode(repo.path / "changed/640") == 0o644
    assert not (repo.path / "gone").exists()


# -- what a restore keeps ------------------------------------------------------------------


@pytest.mark.real
def test_files_outside_of_the_snapshot_are_kept(repo: Repo) -> None:
    snapshots = repo.open(largest=50)
    snapshots.take("r1", "0")
    repo.write("large", "x" * 100)
    repo.write("new", "x")
    restored = snapshots.restore("r1", "0", "u1")
    assert restored.changes == Changes(deleted=("new",))
    assert (repo.path / "large").read_text() == "x" * 100


@pytest.mark.real
def test_file_that_the_snapshot_skipped_is_not_taken_for_new(repo: Repo) -> None:
    snapshots = repo.open("src", largest=50)
    repo.write("large", "x" * 100)
    assert snapshots.take("r1", "0").left_out == ("../large",)
    repo.write("large", "small by now")
    restored = snapshots.restore("r1", "0", "u1")
    assert (repo.path / "large").read_text() == "small by now"
    assert restored.left_out == ("../large",)


@pytest.mark.real(rows=2)
@pytest.mark.parametrize("seconds", [0, 0.2], ids=["just written", "old"])
def test_newly_ignored_file_is_saved_before_it_is_overwritten(repo: Repo, seconds: float) -> None:
    repo.write("notes", "then")
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write(".gitignore", "*.o\nnotes\n")
    repo.write("notes", "now")
    written = time.time()
    until(lambda: time.time() >= written + seconds, "a scan reads old files once only")
    snapshots.take("r1", "1")
    restored = snapshots.restore("r1", "0", "u1")
    assert (repo.path / "notes").read_text() == "then"
    assert restored.changes == Changes(modified=(".gitignore", "notes"))
    snapshots.restore("r1", "u1", "u2")
    assert (repo.path / "notes").read_text() == "now"


@pytest.mark.real
def test_ignored_file_survives_a_restore_that_removes_the_rule(repo: Repo) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write("precious", "x")
    repo.write("later/.gitignore", "*\n")
    repo.write(".gitignore", "*.o\nprecious\n/later\n")
    changed = walk(repo.path)
    snapshots.restore("r1", "0", "u1")
    assert (repo.path / "precious").read_text() == "x"
    snapshots.restore("r1", "u1", "u2")
    assert walk(repo.path) == changed


@pytest.mark.real
def test_undo_deletes_restored_files_even_if_they_are_ignored(
    repo: Repo,
) -> None:
    repo.write("notes/old", "x")
    snapshots = repo.open()
    snapshots.take("r1", "0")
    shutil.rmtree(repo.path / "notes")
    repo.write(".gitignore", "*.o\nnotes\n")
    changed = walk(repo.path)
    snapshots.restore("r1", "0", "u1")
    assert (repo.path / "notes/old").exists()
    snapshots.restore("r1", "u1", "u2")
    assert walk(repo.path) == changed


@pytest.mark.real
def test_file_that_cannot_be_saved_is_not_overwritten(repo: Repo) -> None:
    repo.write("data", "small")
    snapshots = repo.open(largest=50)
    snapshots.take("r1", "0")
    repo.write("data", "x" * 100)
    repo.write("a.txt", "changed")
    restored = snapshots.restore("r1", "0", "u1")
    assert (repo.path / "data").read_text() == "x" * 100
    assert (repo.path / "a.txt").read_text() == "alpha\n"
    assert restored.left_out == ("data",)


@pytest.mark.real
@pytest.mark.parametrize("kind", ["ignored file below", "ignored file", "link away"])
def test_ignored_file_or_link_in_the_way_is_kept(repo: Repo, tmp_path: Path, kind: str) -> None:
    repo.write("place/file" if kind != "ignored file below" else "place", "then")
    snapshots = repo.open()
    snapshots.take("r1", "0")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = repo.path / "place"
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    repo.write(".gitignore", "*.o\nplace\n" if kind != "ignored file below" else "*.o\n")
    if kind == "ignored file below":
        repo.write("place/x.o", "precious")
    elif kind == "ignored file":
        repo.write("place", "precious")
    else:
        place.symlink_to(elsewhere)
    changed = walk(repo.path)
    restored = snapshots.restore("r1", "0", "u1")
    assert restored.left_out == ("place" if kind == "ignored file below" else "place/file",)
    name = "place/x.o" if kind == "ignored file below" else "place"
    assert walk(repo.path)[name] == changed[name]
    assert list(elsewhere.iterdir()) == []


@pytest.mark.real
@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: (path / "void" / "deeper").mkdir(parents=True)]
)
def test_pipe_or_empty_folder_in_the_way_is_replaced(
    repo: Repo, make: Callable[[Path], object]
) -> None:
    snapshots = repo.open()
    snapshots.take("r1", "0")
    (repo.path / "a.txt").unlink()
    make(repo.path / "a.txt")
    restored = snapshots.restore("r1", "0", "u1")
    assert (repo.path / "a.txt").read_text() == "alpha\n"
    assert restored.left_out == ()


@pytest.mark.real
def test_folder_of_the_caller_stays_even_if_it_is_empty(repo: Repo) -> None:
    snapshots = repo.open("src")
    shutil.rmtree(repo.path / "src")
    (repo.path / "src").mkdir()
    snapshots.take("r1", "0")
    repo.write("src/new/file", "x")
    repo.write("other/file", "x")
    snapshots.restore("r1", "0", "u1")
    assert (repo.path / "src").is_dir()
    assert not (repo.path / "src/new").exists()
    assert not (repo.path / "other").exists()


@pytest.mark.real
def test_files_of_a_submodule_and_of_a_nested_repository_come_back(
    repo: Repo, tmp_path: Path
) -> None:
    library = repository(tmp_path / "library")
    library.write("lib.c", "1")
    library.commit()
    repo.git("submodule", "--quiet", "add", str(library.path), "lib")
    repo.sh("git init -q nested; echo then >nested/x")
    before = walk(repo.path)
    snapshots = repo.open()
    snapshots.take("r1", "0")
    repo.write("lib/lib.c", "2")
    repo.sh("cd lib; git commit -qam more; echo new >new; cd ..; echo now >nested/x")
    repo.git("submodule", "--quiet", "add", str(library.path), "second")
    assert snapshots.restore("r1", "0", "u1").left_out == ()
    assert walk(repo.path) == before
    assert (repo.path / "second/.git").is_file()


@pytest.mark.real
def test_restore_writes_the_exact_bytes_whatever_the_user_s_git_converts(repo: Repo) -> None:
    repo.git("config", "filter.lfs.clean", "sed s/.*/pointer/")
    repo.git("config", "filter.lfs.smudge", "false")
    repo.git("config", "filter.lfs.required", "true")
    repo.write(".gitattributes", "*.bin filter=lfs\n*.txt text eol=crlf\n")
    contents = {"x.bin": b"the real content\n", "dos.txt": b"a\r\n", "unix.txt": b"a\n"}
    for name, content in contents.items():
        repo.write(name, content)
    repo.git("add", "-A")
    snapshots = repo.open()
    snapshots.take("r1", "0")
    for name in contents:
        repo.write(name, b"other\n")
    snapshots.restore("r1", "0", "u1")
    assert {name: (repo.path / name).read_bytes() for name in contents} == contents


# -- the plan of a restore -----------------------------------------------------------------


def test_plan_deletes_writes_or_keeps_each_name() -> None:
    file = 0o100644
    differences = [
        Difference("new", 0, file, "0", "1"),
        Difference("gone", file, 0, "1", "0"),
        Difference("other", file, 0o120000, "1", "2"),
        Difference("old module", 0, GITLINK, "0", "2"),
        Difference("old module/its file", file, 0, "1", "0"),
        Difference("was large", file, 0, "1", "0"),
        Difference("nested/x", file, 0, "1", "0"),
        Difference("nested.c", file, 0, "1", "0"),
        Difference("is large", 0, file, "0", "1"),
    ]
    assert plan_restore(differences, {"was large", "nested/"}, {"is large"}) == RestorePlan(
        delete=("gone", "nested.c"),
        write=(differences[0], differences[2]),
        leave=("old module", "was large", "nested/x", "is large"),
    )


# -- any tree ------------------------------------------------------------------------------

NAMES = ["a", "b", "a/x", "a/y", "d/a", "d/e/x", "d/e", "-x", "n\nl", os.fsdecode(b"\xff")]
names = st.sampled_from(NAMES)
contents = st.sampled_from([b"", b"1", b"2", b"\r\n", b"\0", b"x" * 9000])
commands = st.sampled_from(["add -A", "commit -qam x", "stash -qu"])
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), names, contents),
    st.tuples(st.just("program"), names, contents),
    st.tuples(st.just("link"), names, st.sampled_from([b"a", b"d", b"nowhere", b"/dev/null"])),
    st.tuples(st.just("delete"), names, st.just(b"")),
    st.tuples(st.just("rename"), names, names),
    st.tuples(st.just("empty folder"), names, st.just(b"")),
    st.tuples(
        st.just("git"), st.sampled_from(["add -A", "commit -qam x", "stash -qu"]), st.just(b"")
    ),
)


def clear_path(path: Path, top: Path) -> None:
    """Remove the path and create the folders above it."""
    for above in reversed(path.relative_to(top).parents):
        folder = top / above
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            folder.unlink()
        folder.mkdir(exist_ok=True)
    remove(path)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_real(path: Path, top: Path) -> bool:
    """Whether the path exists and is not behind a link or a file."""
    above = [top / folder for folder in path.relative_to(top).parents]
    return all(f.is_dir() and not f.is_symlink() for f in above) and os.path.lexists(path)


def perform(repo: Repo, operation: tuple[str, str, bytes | str]) -> None:
    kind, name, what = operation
    path = repo.path / name
    if kind == "git":
        repo.sh(f"git {name} || true")
        return
    if kind in {"delete", "rename"}:
        if not is_real(path, repo.path):
            return
        if kind == "delete":
            remove(path)
            return
        target = repo.path / os.fsdecode(what)
        if target.is_relative_to(path) or path.is_relative_to(target):
            return
        clear_path(target, repo.path)
        if is_real(path, repo.path):
            path.rename(target)
        return
    clear_path(path, repo.path)
    if kind == "link":
        path.symlink_to(os.fsdecode(what))
    elif kind == "empty folder":
        path.mkdir()
    else:
        assert isinstance(what, bytes)
        path.write_bytes(what)
        path.chmod(0o755 if kind == "program" else 0o644)


def check(original: Repo, batches: list[list[tuple[str, str, bytes | str]]], target: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repo = original.copy(Path(folder) / "repo")
        snapshots = repo.open()
        walks: list[Walk] = [walk(repo.path)]
        first = snapshots.take("r1", "0")
        trees = [first.tree]
        for number, batch in enumerate(batches, 1):
            for operation in batch:
                perform(repo, operation)
            walks.append(walk(repo.path))
            taken = snapshots.take("r1", str(number))
            trees.append(taken.tree)
            assert taken.changes == compare(walks[-2], walks[-1])
            assert taken.left_out == ()
        chosen = target % len(walks)
        restored = snapshots.restore("r1", str(chosen), "u1")
        assert restored.left_out == ()
        assert walk(repo.path) == walks[chosen]
        assert restored.tree == trees[chosen]
        assert restored.changes == compare(walks[-1], walks[chosen])
        snapshots.restore("r1", "u1", "u2")
        assert walk(repo.path) == walks[-1]


# Ignore rules that never ignore themselves.
RULES = st.one_of(
    st.tuples(
        st.just("write"),
        st.just(".gitignore"),
        st.sampled_from([b"", b"a\n", b"d/\n", b"/d/e\n", b"*\n!a\n!.gitignore\n", b"d\n!d/a\n"]),
    ),
    st.tuples(st.just("write"), st.just("d/.gitignore"), st.sampled_from([b"", b"a\n", b"x\n"])),
    st.tuples(
        st.just("git"),
        st.sampled_from(["add -f a", "add -f d", "rm -rq --cached d a"]),
        st.just(b""),
    ),
)
MORE = st.lists(
    st.lists(st.one_of(OPERATIONS, RULES), min_size=1, max_size=5), min_size=1, max_size=4
)


def check_ignoring(
    original: Repo, batches: list[list[tuple[str, str, bytes | str]]], target: int
) -> None:
    """Check that any ignore rules apply to each snapshot, and that no file is ever lost."""
    with tempfile.TemporaryDirectory() as folder:
        repo = original.copy(Path(folder) / "repo")
        snapshots = repo.open()
        snapshots.take("r1", "0")
        seen = [not_ignored(repo)]
        for number, batch in enumerate(batches, 1):
            for operation in batch:
                perform(repo, operation)
            taken = snapshots.take("r1", str(number))
            seen.append(not_ignored(repo))
            assert repo.files_of(taken) == seen[-1]
            assert taken.changes is not None
            assert not set(taken.changes.deleted) & walk(repo.path).keys()
        before, chosen = walk(repo.path), seen[target % len(seen)]
        restored = snapshots.restore("r1", str(target % len(seen)), "u1")
        now = walk(repo.path)
        assert {**now, **chosen} == now or restored.left_out
        untouched = before.keys() - seen[-1].keys() - chosen.keys()
        assert {name: now[name] for name in untouched} == {name: before[name] for name in untouched}
        undone = snapshots.restore("r1", "u1", "u2")
        assert walk(repo.path) == before or restored.left_out or undone.left_out
        assert walk(repo.path).keys() >= before.keys()


def not_ignored(repo: Repo) -> Walk:
    """Return the files that git does not ignore."""
    ignored = repo.git("ls-files", "-z", "-o", "-i", "--exclude-standard").split("\0")
    return {name: content for name, content in walk(repo.path).items() if name not in ignored}


BATCHES = st.lists(st.lists(OPERATIONS, min_size=1, max_size=5), min_size=1, max_size=4)
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.mark.real
@given(batches=BATCHES, target=st.integers(0, 4))
@examples(3, suppress_health_check=QUIET)
def test_some_trees_can_be_restored_exactly(
    original: Repo, batches: list[list[tuple[str, str, bytes | str]]], target: int
) -> None:
    check(original, batches, target)


@pytest.mark.long
@pytest.mark.timeout(300)
@given(batches=BATCHES, target=st.integers(0, 4))
@examples(30, suppress_health_check=QUIET)
def test_any_tree_can_be_restored_exactly(
    original: Repo, batches: list[list[tuple[str, str, bytes | str]]], target: int
) -> None:
    check(original, batches, target)


@pytest.mark.long
@pytest.mark.timeout(300)
@given(batches=MORE, target=st.integers(0, 4))
@examples(30, suppress_health_check=QUIET)
def test_ignore_rules_may_change_at_any_time_and_no_file_is_lost(
    original: Repo, batches: list[list[tuple[str, str, bytes | str]]], target: int
) -> None:
    check_ignoring(original, batches, target)
