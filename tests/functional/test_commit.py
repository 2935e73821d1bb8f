"""`git.commit` through the installed command: no question, a timeout, and no lost changes."""

import hashlib
import itertools
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.children import Nursery
from support.gitwork import GitWork, git_work
from support.screen import Screen
from support.states import state_of
from support.workspace import Workspace, alive, wait_for

SUCCESS = "echo '<promise>SUCCESS</promise>'"
LOCK = ".git/index.lock"
# Ask as hard as git does: read standard input, then open the terminal itself.
ASKS = """
if read answer; then :; elif read answer < /dev/tty; then echo "the user logged $answer"; fi
echo 'the lint says no' >&2
exit 1
"""


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def signing_with(work: GitWork, body: str) -> None:
    """Configure git to sign commits with a program that runs `body`."""
    work.git("config", "commit.gpgSign", "true")
    work.git("config", "gpg.program", work.script("gpg", body))


@pytest.mark.real
def test_message_is_the_headline_with_the_run_as_a_trailer(work: GitWork) -> None:
    work.settings(git={"commit": True})
    work.git_hook(
        "commit-msg", 'git interpret-trailers --in-place --trailer "Change-Id: I1" "$1"; exit 0'
    )
    long = "Rewrote the join so that keys which are null never match, and added three more tests"
    agent = work.agents(
        "touch 1; echo 'I made a plan. Then more.'",
        "touch 2; git config commit.cleanup strip; echo '#2 is fixed'",
        f"touch 3; git config commit.cleanup scissors; echo '{long}'",
        "touch 4; git config commit.cleanup verbatim; echo 'fixup! the beginning'",
        f"touch 5; {SUCCESS}",
    )
    done = work.work(agent)
    assert done.code == 0, done.err
    run = work.run_record()["run"]
    subjects = [
        "I made a plan",
        '"#2 is fixed"',
        "Rewrote the join so that keys which are null never match, and added\u2026",
        '"fixup! the beginning"',
        "work: iteration 5",
    ]
    assert work.subjects()[1:] == subjects
    trailers = "--format=%(trailers:key=Rooda-Run,valueonly,separator=)"
    assert work.git("log", "--reverse", trailers).splitlines()[-5:] == [
        f"{run}/{number}" for number in range(1, 6)
    ]
    for number in range(5):
        text = work.git("log", "-1", "--format=%(trailers)", f"HEAD~{number}")
        assert [line.partition(":")[0] for line in text.split("\n") if line] == [
            "Rooda-Run",
            "Change-Id",
        ]
    assert f"\n\n{long}\n\nRooda-Run: " in work.git("log", "-1", "--format=%B", "HEAD~2")
    assert [row["commit"]["message"].split("\n")[0] for row in work.record()] == subjects
    assert "Commit" in work.rooda("show", "3").out
    assert "Rooda-Run" not in work.rooda("show", "3").out


@pytest.mark.real
def test_changes_of_good_iterations_are_committed(work: GitWork) -> None:
    work.settings(git={"commit": True, "message": "{procedure} {iteration}: {summary}"})
    agent = work.agents(
        "touch 1; echo 'Summary: a {run}'; echo 'and more'",
        "touch 2; exit 7",
        "rm README",
        "exit 0",
        "touch 5; git add 5; git commit -qm 'by the agent'",
        f"touch 6; {SUCCESS}",
    )
    done = work.work(agent, "-n", "6")
    assert done.code == 0
    assert work.subjects() == [
        "the beginning",
        "work 1: a {run} and more",
        "work 3:",
        "by the agent",
        "work 6:",
    ]
    assert work.git("show", "--format=", "--name-status", "HEAD~2") == "A\t2\nD\tREADME"
    assert work.git("log", "-1", "--format=%an") == "A User", "the author is the user"
    commits = [one["commit"] and one["commit"]["message"] for one in work.record()]
    third = "work 3:\n\nwith the work of iteration 2 (failed)"
    assert commits == ["work 1: a {run} and more", None, third, None, None, "work 6:"]
    assert work.record()[-1]["commit"]["commit"] == work.git("rev-parse", "main")
    assert work.git("status", "--porcelain") == ""
    assert "Committed" not in done.err, "the detail lines name the commits"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", ["pre-commit", "commit-msg"])
def test_failing_git_hook_is_quoted_and_the_changes_stay_in_the_work_tree(
    work: GitWork, name: str
) -> None:
    work.git_hook(name, "test -e neat || { echo 'lint: not neat' >&2; exit 1; }")
    done = work.work(work.agents("echo mine > new", "touch neat"), "-n", "2", "--commit")
    assert done.code == 2
    first, second = work.record()
    assert (first["status"], first["kind"]) == ("failed", "commit")
    assert "ERROR: The work could not be committed; it is still in the work tree" in done.err
    assert "    | lint: not neat" in done.err
    assert "    lint: not neat" in second["prompt"].partition("## FEEDBACK")[2]
    assert (second["status"], second["commit_failed"]) == ("completed", None)
    assert work.subjects() == ["the beginning", "work: iteration 2"]
    assert (work.path / "new").read_text() == "mine\n"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("what", ["hook", "signing"])
def test_timeout_kills_a_hanging_commit_and_its_whole_process_tree(
    work: GitWork, what: str
) -> None:
    hangs = f"echo $$ > {work.marker('hangs.pid')}; exec sleep 60"
    if what == "hook":
        work.git_hook("pre-commit", hangs)
    else:
        signing_with(work, hangs)
    work.settings(git={"commit": True, "commit_timeout": "3s"})
    done = work.work(work.agent("touch new"), "-n", "1")
    assert done.code == 2
    assert not alive(int(wait_for(work.marker("hangs.pid"))))
    (one,) = work.record()
    assert (one["kind"], one["reason"]) == ("commit", "commit failed: timed out after 3s")
    assert (work.path / "new").exists()
    assert not (work.path / LOCK).exists(), "no stale lock blocks the user's next commit"
    assert work.subjects() == ["the beginning"]


@pytest.mark.real
def test_file_that_is_too_large_for_a_commit_is_named_at_once(work: GitWork) -> None:
    agent = work.agents("truncate -s 1T huge.bin; touch mine", "rm huge.bin")
    began = time.monotonic()
    done = work.work(agent, "-n", "2", "--commit")
    assert time.monotonic() - began < 120, "git did not read the file until git.commit_timeout"
    first, second = work.record()
    error = "too large to be committed within git.commit_timeout (300s): huge.bin (1024.0 GB)"
    assert (first["kind"], first["commit_failed"]["error"]) == ("commit", error)
    assert error in done.err
    assert "add it to .gitignore" in done.err
    assert error in second["prompt"].partition("## FEEDBACK")[2]
    assert work.subjects() == ["the beginning", "work: iteration 2"]
    assert work.tracked() == ["README", "mine"]


@pytest.mark.real
def test_timeout_of_a_commit_names_the_large_files(work: GitWork) -> None:
    work.settings(git={"commit": True, "commit_timeout": "1s"})
    done = work.work(work.agent("truncate -s 1000M large.bin"), "-n", "1")
    (one,) = work.record()
    assert one["commit_failed"]["error"].startswith("timed out after 1s")
    assert "Large files may be the cause: large.bin (1.0 GB)" in done.err
    assert not (work.path / LOCK).exists()


@pytest.mark.real
def test_signing_program_cannot_ask_a_question_on_the_terminal(
    work: GitWork, nursery: Nursery, screen: Screen
) -> None:
    """Rooda has a controlling terminal here; the processes it starts have none."""
    assert nursery.folder == work.path
    signing_with(work, f"read answer < /dev/tty && echo asked > {work.marker('asked')}; exit 1")
    (work.path / "rooda-config.yml").unlink()
    work.settings()
    agent = work.agent("touch new")
    screen.start(work, "work", "--ai-cmd", agent, "-n", "1", "--commit")
    screen.wait_for("could not be committed")
    screen.type(b"secret\n")
    assert screen.finish() == 2
    assert not work.marker("asked").exists()
    (one,) = work.record()
    assert "gpg failed to sign the data" in one["commit_failed"]["error"]
    assert "Signing must work without a question" in one["commit_failed"]["suggestion"]


@pytest.mark.real
def test_signing_program_sees_no_gpg_tty(work: GitWork) -> None:
    """With GPG_TTY set, gpg-agent, which runs outside of rooda's process tree, would ask there."""
    signing_with(work, f'echo "tty: $GPG_TTY" > {work.marker("seen")}; exit 1')
    work.work(work.agent("touch new"), "-n", "1", "--commit", env={"GPG_TTY": "/dev/pts/0"})
    assert work.marker("seen").read_text() == "tty: \n"


@pytest.mark.real
def test_git_hook_cannot_ask_a_question_and_no_editor_opens(work: GitWork) -> None:
    editor = work.script("editor", f"echo opened > {work.marker('opened')}")
    work.git("config", "core.editor", editor)
    work.git("config", "commit.verbose", "true")
    work.git_hook("pre-commit", f"test -e neat || {{\n{ASKS}\n}}")
    done = work.work(
        work.agents("touch new", "touch neat"),
        *("-n", "2", "--commit"),
        env={"GIT_EDITOR": editor, "VISUAL": editor, "EDITOR": editor},
    )
    assert "    | the lint says no" in done.err
    assert "the user said" not in done.err
    assert work.subjects() == ["the beginning", "work: iteration 2"]
    assert not work.marker("opened").exists()


@pytest.mark.real
def test_commit_without_a_user_name_explains_how_to_configure_one(work: GitWork) -> None:
    forget = f"printf '[user]\\nuseConfigOnly = true\\n' > {work.home / '.gitconfig'}"
    agent = work.agents(f"touch new; {forget}")
    done = work.work(agent, "-n", "1", "--commit")
    assert done.code == 2
    (one,) = work.record()
    assert one["kind"] == "commit"
    assert "Tell git who you are: git config user.name and user.email" in done.err
    again = work.work(agent, "--commit", "--git-dirty", "commit")
    assert (again.code, work.starts) == (1, 1), "now rooda knows it before an agent starts"
    assert again.err == (
        "Error: --commit: git.commit is on, but git knows no name and no email for commits\n"
        "  Tell git who you are: git config --global user.name ...; git config --global "
        "user.email ..., or turn it off with --no-commit\n"
    )
    assert work.work(agent, "--commit", "--dry-run").code == 1


@pytest.mark.real
def test_nothing_is_committed_during_a_merge_rebase_cherry_pick_or_on_a_detached_head(
    work: GitWork,
) -> None:
    work.git("switch", "-qc", "other")
    work.write("README", "another\n")
    other = work.commit("other")
    work.git("switch", "-q", "main")
    work.write("README", "mine\n")
    work.commit("mine")
    agent = work.agents(
        "touch new; git checkout -q --detach",
        "git switch -q main; git rebase -q other; exit 0",
        "git rebase --abort; git merge -q other; exit 0",
        f"git merge --abort; git cherry-pick {other}; exit 0",
        "git cherry-pick --abort",
    )
    done = work.work(agent, "-n", "5", "--failure-threshold", "9", "--commit")
    assert done.code == 2
    errors = [one["commit_failed"] and one["commit_failed"]["error"] for one in work.record()]
    assert errors == [
        "HEAD is detached: a commit would belong to no branch",
        "a rebase is in progress",
        "a merge is in progress",
        "a cherry-pick is in progress",
        None,
    ]
    assert [one["kind"] for one in work.record()] == ["commit"] * 4 + [None]
    assert all(error in done.err for error in errors if error)
    assert "git switch -c NAME" in done.err
    assert work.subjects() == ["the beginning", "mine", "work: iteration 5"]
    assert work.tracked() == ["README", "new"]


@pytest.mark.real
def test_error_names_an_index_lock_that_stays(work: GitWork) -> None:
    done = work.work(work.agents(f"touch new {LOCK}", f"rm {LOCK}"), "-n", "2", "--commit")
    first, second = work.record()
    assert (first["kind"], second["status"]) == ("commit", "completed")
    assert f"{LOCK}': File exists" in first["commit_failed"]["error"]
    logged = done.err.partition("could not be committed")[2].partition("Iteration 2")[0]
    assert f"{LOCK}': File exists" in logged
    assert "if none is, remove that file" in logged
    assert work.subjects() == ["the beginning", "work: iteration 2"]


@pytest.mark.real
def test_commit_is_retried_until_the_index_lock_is_gone(work: GitWork) -> None:
    git = shutil.which("git")
    adds = '*" add -A --pathspec"*)'
    tries = f'case "$*" in {adds} test ! -e tried || rm -f {LOCK}; touch tried ;; esac'
    work.script("bin/git", f'{tries}; exec {git} "$@"')
    work.write(".gitignore", "tried\n")
    path = f"{work.tools / 'bin'}{os.pathsep}{work.environ()['PATH']}"
    done = work.work(work.agent(f"touch new {LOCK}"), "-n", "1", "--commit", env={"PATH": path})
    assert done.code == 2
    assert (work.path / "tried").exists()
    assert work.record()[0]["status"] == "completed"
    assert work.subjects() == ["the beginning", "work: iteration 1"]


@pytest.mark.real
def test_git_gc_runs_after_a_commit(work: GitWork) -> None:
    """Git runs gc in the background by default, and rooda would kill that background process."""
    loose = (f"{number}\n" for number in itertools.count())
    # Git estimates the number of loose objects by those with a name that starts with 17.
    seventeens = (
        text
        for text in loose
        if hashlib.sha1(f"blob {len(text)}\0{text}".encode()).hexdigest().startswith("17")
    )
    for text in itertools.islice(seventeens, 3):
        work.write(text.strip(), text)
    work.commit("many objects")
    work.git("config", "gc.auto", "1")
    assert work.work(work.agent("touch new"), "-n", "1", "--commit").code == 2
    assert work.subjects()[2:] == ["work: iteration 1"]
    assert list((work.path / ".git/objects/pack").glob("*.pack"))


@pytest.mark.real
def test_rooda_s_own_files_are_never_committed(work: GitWork) -> None:
    """The record and the log file are never committed, even if the agent staged them."""
    agent = work.agents("touch 1", "touch 2; git add -A", "touch 3; git add -A -f .")
    log = ("--log-file", "rooda.log")
    assert work.work(agent, "-n", "3", "--commit", *log).code == 2
    assert (work.path / "rooda.log").exists()
    assert work.subjects()[1:] == [f"work: iteration {number}" for number in (1, 2, 3)]
    everything = work.git("log", "--format=", "--name-only", "main").split()
    assert sorted(everything) == ["1", "2", "3", "README"]


@pytest.mark.real
def test_submodule_with_changes_does_not_fail_the_commit(work: GitWork) -> None:
    library = work.sibling("library")
    work.git("init", "-q", cwd=library.path)
    work.commit(cwd=library.path)
    work.git("submodule", "--quiet", "add", str(library.path), "library")
    work.commit("with a library")
    agent = work.agents("touch library/dirty", "touch mine")
    assert work.work(agent, "-n", "2", "--commit", "--failure-threshold", "1").code == 2
    assert work.subjects()[2:] == ["work: iteration 2"]
    assert (work.path / "library/dirty").exists()


@pytest.mark.real
def test_changes_of_the_whole_repository_are_committed_from_a_subfolder(work: GitWork) -> None:
    """Also if GIT_DIR points to another repository, as it does inside a git hook."""
    elsewhere = work.sibling("elsewhere")
    work.git("init", "-q", cwd=elsewhere.path)
    below = work.path / "some/where"
    below.mkdir(parents=True)
    inside = replace(work, path=below)
    misleading = {"GIT_DIR": str(elsewhere.path / ".git"), "GIT_INDEX_FILE": "nowhere"}
    agent = inside.agent("unset GIT_DIR GIT_INDEX_FILE; touch ../../at-the-top here")
    assert inside.work(agent, "-n", "1", "--commit", env=misleading).code == 2
    assert work.tracked() == ["README", "at-the-top", "some/where/here"]
    assert not (state_of(below)).exists(), "the record is at the top"
    assert work.record()[0]["result"]["files_created"] == ["at-the-top", "some/where/here"]


@pytest.mark.git
def test_run_with_commit_on_is_refused_without_git(work: GitWork, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    done = work.work(work.agents("exit 0"), "--commit", env={"PATH": str(empty)})
    assert (done.code, work.starts) == (1, 0)
    assert "git.commit is on, but git is not installed" in done.err


@pytest.mark.real
def test_rooda_can_make_the_first_commit_of_a_repository(work: GitWork) -> None:
    work.git("checkout", "-q", "--orphan", "fresh")
    work.git("rm", "-q", "-r", "--cached", ".")
    agent = work.agent("touch new; git add -A -f")
    flags = ("--commit", "--git-untracked", "commit", "--push", "--log-file", "log")
    assert work.work(agent, "-n", "2", *flags).code == 2
    assert work.git("log", "--format=%s", "fresh") == "work: iteration 1"
    assert work.tracked() == ["README", "new"]
    assert work.git("rev-parse", "fresh@{upstream}") == work.git("rev-parse", "fresh")


@pytest.mark.real
def test_commit_after_the_agent_deleted_the_repository_fails_with_a_clear_error(
    work: GitWork,
) -> None:
    done = work.work(work.agents("rm -rf .git; touch new", SUCCESS), "-n", "1", "--commit")
    assert done.code == 2
    assert work.record()[0]["kind"] == "commit"
    assert "was deleted or replaced during the run" in done.err
    assert "Traceback" not in done.err
    assert (work.path / "new").exists()


@pytest.mark.real
def test_ctrl_c_during_a_commit_ends_the_run_and_keeps_the_changes(work: GitWork) -> None:
    work.git_hook("pre-commit", f"echo $$ > {work.marker('hook.pid')}; exec sleep 60")
    running = work.begin(work.agent("touch new"), "--commit", "--push")
    hook = int(wait_for(work.marker("hook.pid")))
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert not alive(hook)
    assert [one["status"] for one in work.record()] == ["interrupted"]
    assert work.subjects() == ["the beginning"]
    assert work.git("for-each-ref", cwd=work.remote) == ""
    assert (work.path / "new").exists()
    assert not (work.path / LOCK).exists()


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("is_first", [False, True])
def test_commit_that_git_made_before_a_signal_counts(work: GitWork, *, is_first: bool) -> None:
    if is_first:
        work.git("update-ref", "-d", "HEAD")
        work.git("rm", "-q", "-r", "--cached", ".")
    another_subject = 'sed -i "1s/work: //" "$1"'
    work.git_hook("commit-msg", f'{another_subject}; printf "\\nChange-Id: 1\\n" >> "$1"')
    work.git_hook("post-commit", f"echo $$ > {work.marker('hook.pid')}; exec sleep 60")
    running = work.begin(work.agent("date +%N > new"), "--commit", "-n", "2")
    hook = int(wait_for(work.marker("hook.pid")))
    running.signal(signal.SIGTERM)
    assert running.finish().code == 130
    assert not alive(hook)
    [only] = work.record()
    assert (only["status"], only["attempt"]) == ("completed", 1)
    assert only["commit"]["commit"] == work.git("rev-parse", "HEAD")
    work.git_hook("post-commit", "exit 0")
    assert work.rooda("resume").code == 2
    made = ["iteration 1", "iteration 2"]
    assert work.subjects() == (made if is_first else ["the beginning", *made])


@pytest.mark.real
def test_repository_that_the_agent_makes_within_the_work_tree_prevents_no_commit(
    work: GitWork,
) -> None:
    """Git stages nothing while a repository without a commit is in the work tree."""
    prompt = work.marker("prompt")
    agent = work.agents(
        "mkdir sub; echo in > sub/in; git -C sub init -q; echo one > one",
        f"cat > {prompt}; echo two > two",
        "rm -rf sub/.git",
    )
    done = work.work(agent, "-n", "3", "--commit")
    assert work.subjects()[1:] == [f"work: iteration {number}" for number in (1, 2, 3)]
    assert work.tracked() == ["README", "one", "sub/in", "two"]
    said = "Not committed, because these folders are git repositories of their own folders=sub/"
    assert done.err.count(said) == 1
    assert "rooda did not commit these folders" in Path(prompt).read_text()
    assert "a linked work tree: git worktree remove" in done.err


@pytest.mark.real
def test_repository_that_the_agent_stages_stays_out_unless_it_is_a_submodule(work: GitWork) -> None:
    library = "git init -q lib; git -C lib commit -q --allow-empty -m one; touch lib/in"
    agent = work.agents(
        f"{library}; git -c advice.addEmbeddedRepo=false add -A; touch one",
        f"git submodule --quiet add {work.path / 'lib'} real; touch two",
    )
    done = work.work(agent, "-n", "2", "--commit")
    assert work.subjects()[1:] == ["work: iteration 1", "work: iteration 2"]
    assert work.tracked() == [".gitmodules", "README", "one", "real", "two"]
    said = "Not committed, because these folders are git repositories of their own folders=lib/"
    assert done.err.count(said) == 1
