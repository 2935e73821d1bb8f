"""`rooda diff` and `rooda restore` through the installed command, in real repositories."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.base.problems import InvalidInput
from rooda.front.cli.commands.trees import Compared, compared, known_snapshots, words_of_diff
from support.children import Nursery
from support.finished import Rooda
from support.gitrepo import stored, walk
from support.recorded import HANGS, SUCCESS, asked, git, refused, versioned, within
from support.screen import Screen
from support.states import state_of
from support.workspace import Workspace


@pytest.fixture
def repo(workspace: Workspace) -> Workspace:
    return versioned(workspace)


@pytest.fixture
def rooda(repo: Workspace, monkeypatch: pytest.MonkeyPatch) -> Rooda:
    """Run `rooda ARGS` in this process."""
    monkeypatch.setenv("GIT_PAGER", "cat")
    return repo.inside


def state_of_user(workspace: Workspace) -> dict[str, str]:
    """Return the branch, index, stash, reflog and user's refs, which rooda must not change."""
    return {
        "branch": git(workspace, "symbolic-ref", "HEAD"),
        "index": git(workspace, "ls-files", "-s", "-v"),
        "staged": git(workspace, "diff", "--cached"),
        "stash": git(workspace, "stash", "list", "--format=%H %gs"),
        "refs": git(workspace, "for-each-ref"),
        "log": git(workspace, "reflog", "--all", "--format=%H %gs"),
    }


def modes(top: Path) -> Iterator[tuple[str, int]]:
    for path in sorted(top.rglob("*")):
        if not {".git", ".rooda"} & set(path.parts) and not path.is_symlink():
            yield str(path), stat.S_IMODE(path.stat().st_mode) & 0o111


@pytest.mark.long
def test_diff_on_a_terminal_shows_control_codes_and_obeys_none(
    repo: Workspace, screen: Screen
) -> None:
    hostile = "a\\033[2Jb \\033]8;;http://x\\007c \\342\\200\\256d \\033[8mhidden \\377\\r\\n"
    agent = repo.agent(f"printf '{hostile}' > new; yes | head -n 200000 > long; {SUCCESS}")
    assert repo.work(agent).code == 0
    screen.start(repo, "diff", env={"PAGER": "sed -n '/^.*hidden/p'"})
    assert screen.finish() == 0
    line = "a^[[2Jb ^[]8;;http://x^Gc <U+202E>d ^[[8mhidden \ufffd"
    assert line in "".join(screen.lines)
    assert set(re.findall("\\x1b.", screen.sent.decode())) == {"\x1b["}, "git's colors are there"
    screen.start(repo, "diff", env={"PAGER": "head -n 1"})
    assert screen.finish() == 0, "a pager that quits early is no failure"
    screen.sent.clear()
    screen.start(repo, "diff", "--name-only", env={"PAGER": "no-such-pager -x"})
    assert screen.finish() == 0
    assert screen.lines == ["long", "new", ""], "without that pager"


WORK = (
    "echo one > new.txt; echo 'echo hi' > tool.sh; chmod +x tool.sh; ln -s new.txt link",
    "echo two > new.txt; rm kept.txt link; mkdir -p deep; printf 'a\\000b\\r\\n' > deep/raw",
    f"rm -r deep new.txt; mv tool.sh moved.sh; {SUCCESS}",
)


@pytest.mark.real
def test_diff_and_report_do_not_wait_for_a_pipe(repo: Workspace, rooda: Rooda) -> None:
    repo.work(repo.agent(f"echo new > new; {SUCCESS}"), "-n", "1")
    os.mkfifo(repo.path / ".gitattributes")
    began = time.monotonic()
    done = rooda("diff")
    assert done.code == 0
    assert rooda("report").code == 0
    (repo.path / ".gitattributes").unlink()
    (repo.path / ".git/index").unlink()
    os.mkfifo(repo.path / ".git/index")
    assert rooda("report", "--format", "markdown").code == 0
    assert time.monotonic() - began < 60


@pytest.mark.long
def test_each_iteration_can_be_shown_and_restored(repo: Workspace, rooda: Rooda) -> None:
    repo.write("staged.txt", "staged\n")
    git(repo, "add", "staged.txt")
    repo.write("stashed.txt", "stashed\n")
    git(repo, "stash", "push", "-q", "-u", "stashed.txt")
    repo.write("loose.txt", "never added\n")
    # Each agent copies the tree that it made to a folder outside, to compare with.
    aside = repo.path.parent / "aside"
    copies = [f"cp -a . {aside}/$n" for _ in WORK]
    aside.mkdir()
    command = repo.agents(*(f"{body}; {copy}" for body, copy in zip(WORK, copies, strict=True)))
    trees = [walk(repo.path)]
    git_before = state_of_user(repo)
    assert repo.rooda("work", "--ai-cmd", command).code == 0
    assert state_of_user(repo) == git_before
    trees += [walk(aside / str(number)) for number in (1, 2, 3)]
    ignored = {"agent.sh", "starts"}
    trees = [{k: v for k, v in tree.items() if k not in ignored} for tree in trees]

    def now() -> object:
        return {k: v for k, v in walk(repo.path).items() if k not in ignored}

    assert now() == trees[3]
    for number in (2, 0, 1, 3):
        done = rooda("restore", str(number))
        assert done.code == 0, done.err
        state = f"of iteration {number}" if number else "from before the run"
        assert f"Restored the work tree {state} (" in done.out
        assert now() == trees[number], number
    assert state_of_user(repo) == git_before
    programs = dict(modes(aside / "1"))
    rooda("restore", "1")
    assert os.access(repo.path / "tool.sh", os.X_OK) == bool(programs[str(aside / "1/tool.sh")])


@pytest.mark.long
def test_diff_shows_what_iterations_changed(repo: Workspace, rooda: Rooda) -> None:
    assert repo.rooda("work", "--ai-cmd", repo.agents(*WORK)).code == 0
    (run,) = asked(rooda, "history")
    names = rooda("diff", "2", "--name-only")
    assert names.code == 0
    assert names.out.split() == ["deep/raw", "kept.txt", "link", "new.txt"]
    one = rooda("diff", run["run"], "2").out
    assert "-one\n+two\n" in one
    assert "deleted file mode 100644" in one
    assert "4 files changed" in rooda("diff", run["run"][:-1], "2", "--stat").out

    def changed(*words: str) -> list[str]:
        done = rooda("diff", *words, "--name-only")
        assert (done.code, done.err) == (0, "")
        return done.out.split()

    first, whole = ["link", "new.txt", "tool.sh"], ["kept.txt", "moved.sh"]
    assert changed("1") == changed("..1") == changed("last", "1..1") == first
    for words in ("", "last", "-1", "1..3", "1..", "..3", "..", "-3..", "last ..last"):
        assert changed(*words.split()) == whole, words
    later = ["kept.txt", "link", "moved.sh", "new.txt"]
    for words in ("2..3", "2..", "-2..", "-1 -2..-1", "last 2..last"):
        assert changed(*words.split()) == later, words
    assert changed("last", "last") == changed("-1", "3") == changed("3..3") == changed("3")
    assert changed("..2") == ["deep/raw", "kept.txt", "new.txt", "tool.sh"]


@pytest.mark.parametrize(
    "words,expected",
    [
        ("7..3", "iteration 7 comes after iteration 3"),
        ("9", "there is no snapshot 9 of run r; There are: 0, 1, 2, 3, 7, 8, u1"),
        ("1..9", "there is no snapshot 9"),
        ("9..", "there is no snapshot 9"),
        ("9..1", "there is no snapshot 9"),
        ("5", "there is no snapshot 5"),
        ("0", "nothing comes before 0"),
        ("0..3", "nothing comes before 0"),
        ("u1", "nothing comes before u1"),
        ("3...7", "'3...7' is not a range of iterations; Write 3, 3..7, 3.. or ..7"),
        ("a..b", "'a..b' is not a range"),
        ("../x", "'../x' is not a range"),
        ("-9..", "has no snapshot of iteration -9; It has 1, 2, 3, 7, 8"),
        ("x 1x", "'1x' is not the number of an iteration"),
        ("3 7", "For iterations 3 to 7: rooda diff 3..7"),
    ],
)
def test_range_that_does_not_exist_gives_one_clear_error(words: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        compared("r", words_of_diff(words.split())[1], ("0", "1", "2", "3", "7", "8", "u1"))
    (problem,) = refusal.value.problems
    assert expected in f"{problem.message}; {problem.suggestion}"


def test_many_snapshots_are_listed_as_a_range() -> None:
    names = [*map(str, range(31)), "u1"]
    assert known_snapshots(names) == "There are: 0 to 30, u1"
    assert known_snapshots(names[:3]) == "There are: 0, 1, 2"


def test_range_includes_both_ends_and_passes_over_iterations_without_snapshot() -> None:
    names = ("0", "1", "2", "3", "7", "8")
    for words, found in {
        "2..3": ("1", "3"),
        "5..7": ("3", "7"),
        "7": ("3", "7"),
        "2..-2": ("1", "7"),
        "20260301 ..": ("0", "8"),
        "20260301": ("0", "8"),
    }.items():
        assert compared("r", words_of_diff(words.split())[1], names) == Compared(*found), words


@pytest.mark.long
def test_restore_prints_how_to_undo_it_and_the_undo_works(repo: Workspace, rooda: Rooda) -> None:
    assert repo.rooda("work", "--ai-cmd", repo.agent("echo made > made.txt"), "-n", "1").code == 2
    repo.write("mine.txt", "written afterwards, and nowhere else\n")
    before = walk(repo.path)
    done = rooda("restore", "0")
    assert not (repo.path / "mine.txt").exists()
    assert not (repo.path / "made.txt").exists()
    last = done.out.splitlines()[-1]
    assert last.startswith("To undo: rooda restore ")
    assert rooda(*last.removeprefix("To undo: rooda ").split()).code == 0
    assert walk(repo.path) == before


@pytest.mark.long
def test_missing_snapshot_or_run_gives_one_clear_error(repo: Workspace, rooda: Rooda) -> None:
    assert repo.rooda("work", "--ai-cmd", "true", "-n", "1").code == 2
    before = walk(repo.path)
    for words, expected in {
        ("diff", "9"): ("there is no snapshot 9", "0, 1"),
        ("restore", "9"): ("there is no snapshot 9", "0, 1"),
        ("diff", "0"): ("nothing comes before 0",),
        ("diff", "u1"): ("nothing comes before u1",),
        ("restore", "HEAD"): ("'HEAD' is not the number of an iteration",),
        ("restore", "-2"): ("'-2' can be a run or an iteration", "rooda restore last -2"),
        ("restore", "last", "-2"): ("there is no snapshot -2", "0, 1"),
        ("diff", "nonsense"): ("there is no run 'nonsense'",),
        ("diff", "nonsense", "1"): ("there is no run 'nonsense'",),
        ("restore", "1", "2", "3"): ("and no more",),
    }.items():
        refused(rooda(*words), *expected)
    assert walk(repo.path) == before


@pytest.mark.real
def test_file_that_cannot_be_restored_is_named(repo: Workspace, rooda: Rooda) -> None:
    assert repo.rooda("work", "--ai-cmd", "true", "-n", "1").code == 2
    (repo.path / "kept.txt").unlink()
    repo.write("kept.txt/agent.precious", "ignored, so there is no other copy")
    done = rooda("restore", "0")
    assert done.code == 0
    assert "Not brought back: kept.txt" in done.err
    assert (repo.path / "kept.txt/agent.precious").exists()


@pytest.mark.long
def test_restore_is_refused_while_a_run_is_running(
    repo: Workspace, rooda: Rooda, nursery: Nursery
) -> None:
    running = nursery.start(repo, "work", "--ai-cmd", repo.agents("echo 1 > new.txt", HANGS))
    nursery.pid("agent")
    refused(rooda("restore", "0"), "a run is at work here", "rooda stop")
    assert (repo.path / "new.txt").exists()
    assert rooda("diff", "1", "--name-only").out == "new.txt\n"
    whole = rooda("diff", "--name-only")
    assert whole.out == "new.txt\n"
    assert whole.err.endswith("is at work: its changes up to iteration 1.\n")
    running.process.kill()
    running.finish()
    assert rooda("restore", "0").code == 0
    assert not (repo.path / "new.txt").exists()


@pytest.mark.long
def test_iterations_that_changed_nothing_can_be_restored_after_a_kill(
    repo: Workspace, rooda: Rooda, nursery: Nursery
) -> None:
    command = repo.agents("echo 1 > new.txt", ":", ":", HANGS)
    running = nursery.start(repo, "work", "--ai-cmd", command)
    nursery.pid("agent")
    done = rooda("diff", "3", "--name-only")
    assert (done.code, done.out) == (0, ""), done.err
    running.process.kill()
    running.finish()
    assert rooda("diff", "2", "--name-only").code == 0
    (repo.path / "new.txt").unlink()
    done = rooda("restore", "last")
    assert "Restored the work tree of iteration 3 (" in done.out
    assert (repo.path / "new.txt").read_text() == "1\n"
    refused(rooda("restore", "4"), "there is no snapshot 4", "There are: 0, 1, 2, 3")
    assert repo.rooda("resume", "-n", "5", "--ai-cmd", "true").code == 2
    assert rooda("diff", "5", "--name-only").code == 0


@pytest.mark.real
def test_diff_and_restore_need_no_repository(workspace: Workspace) -> None:
    workspace.write(".env", "TOKEN=1\n")
    agent = workspace.agent("echo 1 > new.txt; rm .env")
    assert workspace.work(agent, "-n", "1").code == 2
    rooda = workspace.inside
    assert rooda("diff", "1", "--name-only").out.split() == [".env", "new.txt"]
    done = rooda("restore", "0")
    assert "Brought back files that look like secrets: .env\n" in done.out
    assert not (workspace.path / "new.txt").exists()
    assert asked(rooda, "show", "1")["result"]["files_created"] == ["new.txt"]


@pytest.mark.real
def test_restore_brings_the_files_of_a_deleted_repository_back(
    repo: Workspace, rooda: Rooda
) -> None:
    repo.work(repo.agent("rm -rf .git kept.txt; echo 1 > new.txt"), "-n", "1")
    assert rooda("diff", "1", "--name-only").out.split() == ["kept.txt", "new.txt"]
    assert rooda("restore", "0").code == 0
    assert (repo.path / "kept.txt").read_text() == "of the user\n"


@pytest.mark.long
def test_restore_from_a_subfolder_restores_the_whole_tree(repo: Workspace, rooda: Rooda) -> None:
    assert repo.rooda("work", "--ai-cmd", repo.agent("echo 1 > top.txt"), "-n", "1").code == 2
    below = within(repo, "deep")
    done = below.rooda("restore", "0")
    assert done.code == 0, done.err
    assert not (repo.path / "top.txt").exists()
    assert below.path.is_dir()
    assert rooda("diff", "1", "--name-only").out == "top.txt\n"


@pytest.mark.real
def test_views_offer_no_snapshot_that_is_lost_and_the_report_takes_over_those_of_0_1(
    repo: Workspace, rooda: Rooda
) -> None:
    body = "echo a line of the agent > new.txt"
    assert repo.rooda("work", "-n", "2", "--ai-cmd", repo.agents(body, f"{body}.2")).code == 2
    (run,) = (one["run"] for one in asked(rooda, "history"))
    offered = rooda("show").out
    assert f"rooda restore {run} 0" in offered
    assert f"rooda diff {run}" in offered
    store = state_of(repo.path) / "git"
    git(repo, "fetch", "-q", str(store), f"refs/rooda/{run}/*:refs/rooda/{run}/*")
    shutil.rmtree(store)
    left = rooda("show").out + rooda("show", "1").out
    assert "rooda restore" not in left
    assert "rooda diff" not in left
    page = repo.path.parent / "page.html"
    assert rooda("report", "-o", str(page)).code == 0
    assert "+a line of the agent" in page.read_text()
    assert git(repo, "for-each-ref", "refs/rooda") == ""
    assert rooda("show").out == offered


@pytest.mark.long
def test_snapshots_are_deleted_together_with_their_run(repo: Workspace, rooda: Rooda) -> None:
    command = repo.agent("date +%N > new.txt")
    for _ in range(3):
        arguments = ("-n", "1", "--history-keep-runs", "2")
        assert repo.rooda("work", "--ai-cmd", command, *arguments).code == 2
    runs = [run["run"] for run in asked(rooda, "history")]
    assert len(runs) == 2
    refs = stored(repo.path, "for-each-ref", "--format=%(refname)", "refs/rooda").splitlines()
    assert {ref.split("/")[2] for ref in refs} == set(runs)
    assert {path.name for path in (state_of(repo.path) / "runs").iterdir()} == set(runs)
    assert stored(repo.path, "fsck", "--no-dangling", "--no-progress") == ""


@pytest.mark.long
def test_snapshots_can_be_turned_off(repo: Workspace, rooda: Rooda) -> None:
    command = repo.agent("echo 1 > new.txt")
    assert repo.rooda("work", "--ai-cmd", command, "-n", "1", "--no-git-snapshots").code == 2
    assert stored(repo.path, "for-each-ref", "refs/rooda") == ""
    assert asked(rooda, "show", "1")["result"]["files_created"] == ["new.txt"]
    refused(rooda("restore", "0"), "there is no snapshot 0", "This run has none")
    refused(rooda("diff"), "has no snapshots", "git.snapshots off", "rooda show")


# Makes an index claim that a file on disk has the content of HEAD. Git then does not read it.
FORGE = """\
import hashlib, pathlib, subprocess, sys
name, target = sys.argv[1:]
say = lambda *words: subprocess.check_output(["git", *words], text=True).strip()
subprocess.run(["git", "add", name], check=True)
index = pathlib.Path(".git/index").read_bytes()[:-20]
new, old = say("rev-parse", ":" + name), say("rev-parse", "HEAD:" + name)
index = index.replace(bytes.fromhex(new), bytes.fromhex(old))
pathlib.Path(target).write_bytes(index + hashlib.sha1(index).digest())
"""
# Long after the file was written: otherwise git reads it in any case.
HIDE = "echo of an agent > kept.txt; touch -d 2001-01-01 kept.txt; sleep 1.1"


def forging(target: str) -> str:
    """Return the command that writes a forged index to a path."""
    return f"{shlex.join([sys.executable, '-c', FORGE, 'kept.txt'])} {target}"


@pytest.mark.long
@pytest.mark.parametrize(
    "deed",
    [
        "git replace $(git rev-parse HEAD:kept.txt) $(git hash-object -w kept.txt)",
        "git replace $(git hash-object -w kept.txt) $(git rev-parse HEAD:kept.txt)",
        forging(".git/index"),
    ],
    ids=["the old file", "the new file", "the user's index"],
)
def test_an_agent_cannot_hide_a_change_from_show_diff_and_restore(
    repo: Workspace, rooda: Rooda, deed: str
) -> None:
    agent = repo.agent(f"{HIDE}; {deed}")
    assert repo.rooda("work", "--ai-cmd", agent, "-n", "1").code == 2
    assert "kept.txt" in rooda("show", "1").out
    assert "-of the user\n+of an agent\n" in rooda("diff", "1").out
    done = rooda("restore", "0")
    assert "(1 file changed)" in done.out
    assert (repo.path / "kept.txt").read_text() == "of the user\n"
    assert rooda("restore", "u1").code == 0
    assert (repo.path / "kept.txt").read_text() == "of an agent\n"


@pytest.mark.real
def test_restore_does_not_believe_an_index_that_was_forged_after_the_run(
    repo: Workspace, rooda: Rooda
) -> None:
    assert repo.rooda("work", "--ai-cmd", "true", "-n", "1").code == 2
    script = f"{HIDE}; {forging('.git/index')}"
    subprocess.run(["sh", "-ec", script], cwd=repo.path, env=repo.environ(), check=True)
    assert rooda("restore", "0").code == 0
    assert (repo.path / "kept.txt").read_text() == "of the user\n"
    assert rooda("restore", "u1").code == 0
    assert (repo.path / "kept.txt").read_text() == "of an agent\n"


@pytest.mark.long
def test_a_repository_of_another_user_is_named_with_the_command_that_fixes_it(
    repo: Workspace,
) -> None:
    # Git's own switch for its tests. Without root, a test can't give a folder to another user.
    repo.env["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
    fix = f"git config --global --add safe.directory {repo.path.resolve()}"
    run = ("work", "--ai-cmd", repo.agent("echo made > made.txt"), "-n", "2")
    done = repo.rooda(*run)
    assert done.code == 2, done.err
    printed = done.out + done.err
    assert printed.count(f"run `{fix}`") == 1, printed
    assert printed.index(fix) < printed.index("Iteration 1/2 starting")
    assert "made.txt" in repo.rooda("show", "1").out
    assert f"run `{fix}`" in repo.rooda("doctor").out
    done = repo.rooda("restore", "0")
    assert fix in done.err
    assert not (repo.path / "made.txt").exists()
    subprocess.run(fix.split(), env=repo.environ(), check=True)
    done = repo.rooda(*run)
    assert "snapshots" not in done.out + done.err
    assert repo.rooda("restore", "0").code == 0


@pytest.mark.real
def test_restore_names_what_no_snapshot_contains(repo: Workspace, rooda: Rooda) -> None:
    for name in ("gone.bin", "stays.bin"):
        with repo.write(name, "").open("wb") as file:
            file.truncate(60 * 1024**2)
    git(repo, "init", "-q", "inner")
    repo.write("inner/file", "in a repository of its own\n")
    deed = "rm -r gone.bin inner; truncate -s 60M new.bin"
    assert repo.rooda("work", "--ai-cmd", repo.agent(deed), "-n", "1").code == 2
    done = rooda("restore", "0")
    assert done.code == 0
    assert done.err.splitlines() == [
        "Not brought back: gone.bin",
        "Left as it is, because no snapshot contains it: new.bin, stays.bin",
    ]
    assert (repo.path / "stays.bin").stat().st_size == 60 * 1024**2
    assert (repo.path / "inner/file").read_text() == "in a repository of its own\n"


@pytest.mark.long
def test_restore_keeps_modes_and_links_where_git_is_told_to_ignore_them(
    repo: Workspace, rooda: Rooda
) -> None:
    repo.write("tool.sh", "echo hi\n").chmod(0o755)
    repo.write("plain.sh", "echo hi\n").chmod(0o644)
    (repo.path / "link").symlink_to("kept.txt")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a program and a link")
    for key in ("core.fileMode", "core.symlinks"):
        git(repo, "config", key, "false")
    repo.write("new.sh", "echo hi\n").chmod(0o755)
    (repo.path / "new-link").symlink_to("new.sh")
    before = walk(repo.path)
    deed = "chmod -x tool.sh; chmod +x plain.sh; rm new.sh link new-link"
    assert repo.rooda("work", "--ai-cmd", repo.agent(deed), "-n", "1").code == 2
    after = walk(repo.path)
    names = rooda("diff", "1", "--name-only").out.split()
    assert names == ["link", "new-link", "new.sh", "plain.sh", "tool.sh"]
    for number, expected in (("0", before), ("1", after), ("0", before)):
        assert rooda("restore", number).code == 0
        now = walk(repo.path)
        assert {name: now.get(name) for name in expected} == expected
