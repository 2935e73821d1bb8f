"""Protected paths, through the installed command: what an agent may not change stays as it was."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import PROCEDURE, Workspace

thorough = pytest.mark.long
CI = ".github/workflows/ci.yml"
CHANGED = "WARN: Protected files were changed; rooda has restored them"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        found.write(CI, "on: push\n")
        found.write("tests/test_a.py", "assert 1\n")
        found.write("docs/guide.md", "guide\n")
        found.write(".gitignore", ".env\n")
        found.write(".env", "KEY=1\n").chmod(0o600)
        found.commit()
        yield found


def said(work: GitWork, number: int) -> str:
    """Return the prompt of an iteration."""
    return (work.kept(number) / "prompt.md").read_text()


@pytest.mark.real
@thorough
def test_restore_undoes_what_the_agent_did_and_committed_and_goes_on(work: GitWork) -> None:
    """Also an ignored file, a folder linked outside, and a file that is now a folder."""
    outside = work.tools / "outside"
    outside.mkdir()
    agent = work.agents(
        f"echo evil > {CI}; rm tests/test_a.py; mkdir tests/test_a.py; touch tests/test_a.py/x\n"
        f"rm -r docs; ln -s {outside} docs; echo KEY=2 > .env; chmod 644 .env\n"
        "echo new > tests/test_new.py; git add -A; git commit -qm mine",
        "echo more >> tests/test_new.py; echo work > work.py",
        f"git rm -qf {CI}; rm .env",
    )
    # What the user does between two iterations is no change of the agent.
    work.settings(
        git={"commit": True},
        protect=[".github/", "tests", "docs/*", ".env", "nothing"],
        hooks={"pre_iteration": [f"test ! -e work.py || echo by the user > {CI}"]},
    )
    done = work.work(agent, "-n", "3")
    assert done.code == 2
    assert (work.path / CI).read_text() == "by the user\n"
    assert (work.path / "tests/test_a.py").read_text() == "assert 1\n"
    assert (work.path / "docs/guide.md").read_text() == "guide\n"
    assert not (work.path / "docs").is_symlink()
    assert (work.path / ".env").read_text() == "KEY=1\n"
    assert (work.path / ".env").stat().st_mode & 0o777 == 0o600
    assert list(outside.iterdir()) == []
    assert (work.path / "tests/test_new.py").read_text() == "new\nmore\n", "it is the agent's own"
    assert work.git("status", "--porcelain") == "", "rooda's commit has the restored files"
    assert work.git("show", f"HEAD:{CI}") == "by the user"
    assert work.git("show", f"HEAD~2:{CI}") == "on: push", "the commit after the agent's first"

    first, second, third = work.record()
    assert [one["status"] for one in (first, second, third)] == ["completed"] * 3
    (change,) = first["protected"]
    assert dict(zip(change["files"], change["how"], strict=True)) == {
        CI: "changed",
        "tests/test_a.py": "replaced by a folder",
        "docs/guide.md": "deleted",
        ".env": "changed",
    }
    assert set(change["committed"]) == {CI, "tests/test_a.py", "docs/guide.md"}
    assert CI in first["result"]["files_modified"], "the list says what the agent did"
    assert not second["protected"]
    assert set(third["protected"][0]["files"]) == {CI, ".env"}
    assert not third["result"]["progress_detected"]
    assert "You may not change these files" in said(work, 2)
    assert "docs/guide.md" in said(work, 2)
    assert "You may not change" not in said(work, 3)

    lines = [line for line in done.err.splitlines() if CHANGED in line]
    assert [CI in line for line in lines] == [True, True]
    assert "No file matches these patterns" in done.err
    assert "patterns=nothing" in done.err
    shown = work.rooda("show", "1").out
    assert "restored: " in shown
    assert f"{CI} +1 -1 (protected: restored)" in shown
    replaced = work.kept(1) / "replaced"
    assert sorted(one.read_text() for one in replaced.iterdir() if one.name.endswith("ci.yml")) == [
        "evil\n"
    ]
    assert "Protected files restored" in work.rooda("why", "1").out
    assert "protected files" in work.rooda("show").out
    assert "evil" not in work.rooda("diff", "1", "--", CI).out, "the snapshot has restored files"


@pytest.mark.real
@thorough
def test_fail_leaves_the_files_commits_nothing_and_holds_until_they_are_back(work: GitWork) -> None:
    agent = work.agents(
        f"echo evil > {CI}; echo good > good.py; echo '<promise>SUCCESS</promise>'",
        "echo more > more.py",
        f"echo 'on: push' > {CI}; echo '<promise>SUCCESS</promise>'",
    )
    work.settings(git={"commit": True}, protect={"paths": [".github/"], "on_change": "fail"})
    done = work.work(agent, "-n", "5", "--verify", work.counted("true"))
    assert done.code == 0
    first, second, third = work.record()
    assert [one["status"] for one in (first, second, third)] == ["failed", "failed", "completed"]
    for one in (first, second):
        assert one["kind"] == "protected"
        assert one["reason"] == f"protected files were changed: {CI}"
        assert one["commit"] is None
    assert [one["commit"] is not None for one in (second, third)] == [False, True]
    assert work.checks() == 2, "verify runs at the start and after the last iteration"
    for number in (2, 3):
        assert "Bring them back exactly as they were before" in said(work, number)
    assert "the iteration fails" in done.err
    why = work.rooda("why", "1").out
    assert "Kind: protected" in why
    assert "loop.protect.on_change" in why


@pytest.mark.real
@thorough
def test_verify_may_not_change_protected_files_and_warn_only_warns(work: GitWork) -> None:
    """verify runs code that the agent wrote, so rooda looks again before the commit."""
    work.settings(git={"commit": True}, verify={"baseline": False})
    args = ("-n", "1", "--protect", "tests/", "--verify", "echo x > tests/test_a.py")
    done = work.work("touch new.py", *args)
    assert done.code == 2
    assert "by=verify" in done.err
    assert work.tracked().count("new.py") == 1
    assert work.git("show", "HEAD:tests/test_a.py") == "assert 1"
    assert work.git("status", "--porcelain") == ""

    done = work.work("sh -c 'echo x > tests/test_a.py'", *args[:4], "--protect-on-change", "warn")
    assert done.code == 2
    assert "WARN: Protected files were changed files=tests/test_a.py" in done.err
    assert work.git("show", "HEAD:tests/test_a.py") == "x"


@pytest.mark.real
@thorough
def test_push_waits_until_the_restored_file_is_committed(work: GitWork) -> None:
    """A failed iteration is pushed too, but not with a CI file that the agent changed."""
    agent = work.agents(
        f"echo evil > {CI}; git commit -qam mine; exit 1", "exit 1", "echo work > work.py"
    )
    work.settings(git={"commit": True, "push": True}, protect=[".github/"])
    done = work.work(agent, "-n", "3")
    assert done.code == 2
    first, second, third = work.record()
    for one in (first, second):
        assert one["push"] is None
        assert "the last commit changes protected files" in one["push_failed"]["error"]
    assert third["push"]["commit"] == work.git("rev-parse", "HEAD")
    assert work.git("show", f"main:{CI}", cwd=work.remote) == "on: push"

    # Without rooda's commits, the agent and the user learn that the file has to be committed.
    work.settings(protect=[".github/"])
    agent = work.agent(f"cat > {work.marker('prompt')}; echo bad > {CI}; git commit -qam mine")
    done = work.work(agent, "-n", "2")
    assert "Try: The agent has committed its changes of" in done.err
    assert "commit the restored files" in work.marker("prompt").read_text()


@pytest.mark.real
@thorough
def test_a_change_that_is_only_in_a_commit_is_not_pushed(work: GitWork) -> None:
    """The agent commits a change, and brings the file in the work tree back."""
    agent = work.agents(f"echo evil > {CI}; git commit -qam mine; git checkout -q HEAD~ -- {CI}")
    work.settings(git={"push": True}, protect=[".github/"])
    done = work.work(agent, "-n", "1")
    assert f"{CI} (changed in a commit)" in done.err
    (first,) = work.record()
    assert first["protected"][0]["how"] == ["changed in a commit"]
    assert first["push"] is None
    assert "the last commit changes protected files" in first["push_failed"]["error"]
    assert (work.path / CI).read_text() == "on: push\n"


@pytest.mark.real
@thorough
def test_files_come_back_without_a_repository_and_without_git_of_the_user(
    workspace: Workspace,
) -> None:
    workspace.write("spec.md", "spec\n")
    workspace.config(f"loop:\n  protect: [spec.md, rooda-config.yml]\n{PROCEDURE}")
    before = (workspace.path / "rooda-config.yml").read_text()
    agent = "sh -c 'rm -rf .git $STATE spec.md rooda-config.yml; mkdir spec.md'"
    done = workspace.work(agent, "-n", "2")
    assert done.code == 2
    assert (workspace.path / "spec.md").read_text() == "spec\n"
    assert (workspace.path / "rooda-config.yml").read_text() == before

    with git_work(workspace) as work:
        done = work.work(agent, "-n", "1", "--protect", "spec.md", "--protect", "README")
        assert done.code == 2
        assert (work.path / "spec.md").read_text() == "spec\n"
        assert CHANGED in done.err


@pytest.mark.real
@thorough
def test_resumed_run_protects_what_existed_at_its_start(work: GitWork) -> None:
    agent = work.agents("echo 1 > tests/new.py", "echo 2 > tests/new.py; echo x > tests/test_a.py")
    flags = ("--protect", "tests")
    assert work.work(agent, "-n", "1", *flags).code == 2
    done = work.rooda("resume", "-n", "2")
    assert done.code == 2, done.err
    assert (work.path / "tests/new.py").read_text() == "2\n"
    assert (work.path / "tests/test_a.py").read_text() == "assert 1\n"


@pytest.mark.long
def test_too_many_bytes_and_wrong_patterns_are_one_clear_error(work: GitWork) -> None:
    os.truncate(work.write("big.bin", "x"), 65 * 1024 * 1024)
    done = work.work("true", "--protect", "big.bin")
    assert done.code == 1
    assert "the files have more than 64.0 MB in all (big.bin is one of them)" in done.err
    assert "Name fewer files in protect.paths" in done.err
    for wrong in ("../up", "/", "!x"):
        done = work.work("true", "--protect", wrong)
        assert done.code == 1
        assert "Write a list of names or paths in the work tree" in done.err


@pytest.mark.git
def test_init_proposes_config_prompts_and_ci_files(work: GitWork) -> None:
    work.write("prompts/build.md", "x")
    done = work.rooda("init")
    assert done.code == 0
    text = (work.path / "rooda-config.yml").read_text()
    assert "    #paths: [rooda-config.yml, prompts/, .github/workflows/]\n" in text
    assert "Protect: rooda-config.yml, prompts/, .github/workflows/, not in use yet" in done.out
    active = text.replace("  #protect:", "  protect:").replace("    #paths:", "    paths:")
    Path(work.path / "rooda-config.yml").write_text(active)
    assert work.rooda("config", "check").code == 0
