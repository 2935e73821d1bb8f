"""New files that look like secrets, through the installed command: no commit, no push."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace

pytestmark = pytest.mark.real

MAGIC = ":(top)two\nlines *.pem"
NOT_COMMITTED = "Not committed, because these new files look like secrets"
COMMIT_ALL = "git add -A; git commit -qm"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def on_remote(work: GitWork) -> list[str]:
    return work.git("ls-tree", "-r", "--name-only", "main", cwd=work.remote).splitlines()


def pushed(work: GitWork) -> list[bool]:
    """Return, for each iteration of the record, whether its push succeeded."""
    return [one["push"] is not None for one in work.record()]


def test_new_secrets_stay_uncommitted_and_are_named(work: GitWork) -> None:
    """Also those that the agent has staged, and those with names that git reads as patterns."""
    work.write("tracked.pem", "old\n")
    work.commit()
    agent = work.agents(
        "echo KEY=1 > .env; mkdir -p new/folder; echo k > new/folder/id_rsa\n"
        f"echo k > {shlex.quote(MAGIC)}; echo k > staged.pem; git add staged.pem\n"
        "echo k > intent.key; git add -N intent.key; git mv README credentials.json\n"
        "echo _authToken=npm_abc > .npmrc; echo new > tracked.pem\n"
        "touch .env.example id_rsa.pub main.py",
        "touch again.py",
        "echo k > late.pem",
    )
    done = work.work(agent, "-n", "3", "--commit", "--log-level", "debug")
    secrets = {
        *(".env", "new/folder/id_rsa", MAGIC, "staged.pem", "intent.key", "credentials.json"),
        ".npmrc",
    }
    assert done.code == 2
    assert work.subjects() == ["the beginning", "by hand", "work: iteration 1", "work: iteration 2"]
    assert work.tracked() == [".env.example", "again.py", "id_rsa.pub", "main.py", "tracked.pem"]
    assert work.git("show", "HEAD:tracked.pem") == "new"
    assert all((work.path / name).exists() for name in secrets), "rooda deletes nothing"
    untracked = work.git("status", "--porcelain", "-z", "-uall").split("\0")
    assert {f"?? {name}" for name in secrets} < set(untracked), "nothing is staged any more"

    first, second, third = work.record()
    assert set(first["secrets_left_out"]["files"]) == secrets
    assert first["secrets_left_out"]["total"] == len(secrets)
    assert [one["secrets_left_out"]["is_new"] for one in (first, second, third)] == [
        *(True, False, True)
    ]
    lines = done.err.splitlines()
    warnings = [at for at, line in enumerate(lines) if f"WARN: {NOT_COMMITTED}" in line]
    assert len(warnings) == 2, "the run warns once of each file"
    assert ".env" in lines[warnings[0]]
    advice = lines[warnings[0] + 1]
    assert ".gitignore" in advice
    assert "git.allow_secrets" in advice
    feedback = second["prompt"].partition("## FEEDBACK")[2]
    assert "rooda did not commit these new files" in feedback
    assert ".env" in feedback
    assert "rooda did not commit" not in third["prompt"]
    assert "Not committed" in work.rooda("show", "1").out
    assert "late.pem" in work.rooda("show", "3").out


def test_allowed_secrets_are_committed_and_pushed(work: GitWork) -> None:
    work.settings(git={"commit": True, "push": True, "allow_secrets": ["tests/*", "dev.key"]})
    agent = work.agent("mkdir -p tests/a b; touch tests/a/x.pem b/dev.key other.key")
    done = work.work(agent, "-n", "1")
    assert work.tracked() == ["README", "b/dev.key", "tests/a/x.pem"]
    assert on_remote(work) == work.tracked()
    assert 'files="other.key"' in done.err or "files=other.key" in done.err


def test_commits_with_new_secrets_are_not_pushed(work: GitWork) -> None:
    """Also if a later commit removes the secret, or the agent moves git's ref of the remote."""
    work.git("push", "-q", "-u", "origin", "main")
    start = work.git("rev-parse", "HEAD")
    agent = work.agents(
        f"echo k > deploy.pem; {COMMIT_ALL} 'with a key'",
        f"git rm -q deploy.pem; touch a; {COMMIT_ALL} 'without the key'",
        f"git update-ref refs/remotes/origin/main HEAD; touch b; {COMMIT_ALL} 'moved'",
        f"git reset -q --soft {start}; git commit -qm 'all at once'",
    )
    done = work.work(agent, "-n", "4", "--push")
    assert done.code == 2
    assert pushed(work) == [False, False, False, True]
    first, second, _, last = work.record()
    failed = first["push_failed"]
    assert failed["secrets"] == ["deploy.pem"]
    assert (
        "nothing was pushed: new files in the commits look like secrets: deploy.pem ("
        in (failed["error"])
    )
    assert failed["error"] in done.err
    assert "git.allow_secrets" in failed["suggestion"]
    assert "rooda pushes nothing, because commits" in second["prompt"].partition("## FEEDBACK")[2]
    assert last["push_failed"] is None
    assert on_remote(work) == ["README", "a", "b"]


def test_secrets_that_the_remote_has_already_do_not_stop_a_push(work: GitWork) -> None:
    """A colleague has pushed one, and the agent pulls it; and one is there from the beginning."""
    work.write("old.pem", "k\n")
    work.commit("with an old key")
    work.git("push", "-q", "-u", "origin", "main")
    colleague = work.path.parent / "colleague"
    work.git("clone", "-q", str(work.remote), str(colleague))
    (colleague / "shared.pem").write_text("k\n")
    work.commit("with a key", cwd=colleague)
    work.git("push", "-q", cwd=colleague)
    agent = work.agents(
        "touch mine; git add mine; git commit -qm mine; git pull -q --no-rebase --no-edit",
        "echo new > old.pem; git commit -qam 'a new key'",
    )
    done = work.work(agent, "-n", "2", "--push")
    assert pushed(work) == [True, True], done.err
    assert on_remote(work) == ["README", "mine", "old.pem", "shared.pem"]


def test_secret_of_a_merge_and_a_token_in_npmrc_are_not_pushed(work: GitWork) -> None:
    agent = work.agents(
        "git switch -qc side; touch side; git add side; git commit -qm side; git switch -q main\n"
        "git merge -q --no-ff --no-commit side; echo k > .env; git add -f .env\n"
        "git commit -qm merge",
        f"git rm -q .env; git reset -q --soft main~1; echo _password=abc > .npmrc; {COMMIT_ALL} 2",
        "git reset -q --soft main~1; git rm -q -f .npmrc; touch c; git add c; git commit -qm 3",
    )
    work.work(agent, "-n", "3", "--push")
    secrets = [one["push_failed"] and one["push_failed"]["secrets"] for one in work.record()]
    assert secrets == [[".env"], [".npmrc"], None]
    assert pushed(work) == [False, False, True]


@pytest.mark.long
def test_thousands_of_secrets_are_left_out(work: GitWork) -> None:
    agent = work.python_agent(
        "from pathlib import Path\n"
        "Path('keys').mkdir()\n"
        "for number in range(20_000):\n"
        "    Path(f'keys/{number:05}.pem').touch()\n"
        "    Path(f'keys/{number:05}.py').touch()\n"
    )
    done = work.work(agent, "-n", "1", "--commit")
    assert "and 19995 more" in done.err
    (one,) = work.record()
    assert one["secrets_left_out"]["total"] == 20_000
    assert len(one["secrets_left_out"]["files"]) == 100
    tracked = work.tracked()
    assert len(tracked) == 20_001
    assert not any(name.endswith(".pem") for name in tracked)


def test_preset_ralph_leaves_secrets_out(work: GitWork) -> None:
    done = work.work(work.agent("echo k > .env; touch main.py"), "-n", "1", "--preset", "ralph")
    assert work.tracked() == ["README", "main.py"]
    assert f"WARN: {NOT_COMMITTED} files=.env" in done.err


def test_agent_that_creates_only_a_secret_makes_no_commit(work: GitWork) -> None:
    done = work.work(work.agent("echo k > .env; git add .env"), "-n", "1", "--commit")
    assert work.subjects() == ["the beginning"]
    (one,) = work.record()
    assert (one["status"], one["commit"], one["commit_failed"]) == ("completed", None, None)
    assert f"WARN: {NOT_COMMITTED} files=.env" in done.err
    assert work.git("status", "--porcelain") == "?? .env"


def test_start_of_a_run_that_looks_for_secrets_runs_no_clean_filter(
    work: GitWork, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    filtering = work.script("filter", f"touch {started}; cat")
    work.write(".gitattributes", "* filter=f\n")
    work.commit()
    work.git("config", "filter.f.clean", filtering)
    (work.path / "README").write_text("the project\n")  # git would read it again
    work.write("new.pem", "k")
    done = work.work("true", "--commit", "--git-dirty", "commit", "--dry-run")
    assert "new files look like secrets, so rooda will not commit them: new.pem" in done.out
    assert not started.exists()
