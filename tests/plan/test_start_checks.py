"""Checks before money is spent: a remote to push to, a branch, the program of `verify`."""

from pathlib import Path

import pytest

from rooda.base.problems import Problem, Severity, errors
from rooda.plan.preflight.programs import needed_program
from rooda.views.terminal.dry_run import render
from support.config import planned
from support.gitrepo import git
from support.tables import each_row

AGENT = "--ai-cmd=true"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Create a repository with one commit, in the folder that `planned` uses."""
    git(tmp_path, "init", "-q", "-b", "main", "work")
    work = tmp_path / "work"
    git(work, "commit", "-q", "--allow-empty", "-m", "first")
    return work


def found(tmp_path: Path, *flags: str) -> list[Problem]:
    return planned(tmp_path, "build", AGENT, *flags).all_problems()


@pytest.mark.real
def test_push_needs_a_remote_that_git_can_choose(work: Path, tmp_path: Path) -> None:
    [problem] = errors(found(tmp_path, "--push"))
    assert problem.field == "--push"
    assert problem.message == "git.push is on, but the repository has no remote"
    assert "git remote add" in problem.suggestion
    assert "--no-push" in problem.suggestion
    git(work, "remote", "add", "one", "/nowhere")
    assert errors(found(tmp_path, "--push")) == []
    git(work, "remote", "add", "two", "/nowhere")
    [problem] = errors(found(tmp_path, "--push"))
    assert problem.message.endswith("which of its remotes to push to: one, two")
    git(work, "config", "remote.pushDefault", "three")
    [problem] = errors(found(tmp_path, "--push"))
    assert problem.message.endswith("does not exist: three")
    git(work, "config", "remote.pushDefault", "two")
    assert errors(found(tmp_path, "--push")) == []


@pytest.mark.real
def test_commit_and_push_need_a_branch(work: Path, tmp_path: Path) -> None:
    git(work, "remote", "add", "origin", "/nowhere")
    git(work, "checkout", "-q", "--detach")
    problems = errors(found(tmp_path, "--commit", "--push"))
    assert [one.field for one in problems] == ["--commit", "--push"]
    assert "HEAD is detached" in problems[0].message
    assert "--branch NAME" in problems[0].suggestion
    assert errors(found(tmp_path, "--commit", "--push", "--branch=night")) == []
    config = "loop: {git: {commit: true}}"
    [problem] = errors(planned(tmp_path, "build", AGENT, workspace=config).all_problems())
    assert (problem.file, problem.field) == ("rooda-config.yml", "loop.git.commit")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "sign,what",
    [
        ("rebase-merge", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ],
)
def test_no_commit_while_another_operation_is_in_progress(
    sign: str, what: str, work: Path, tmp_path: Path
) -> None:
    (work / "file").write_text("one")
    git(work, "add", "file")
    if what in ("rebase", "bisect"):
        git(work, "checkout", "-q", "--detach")
    (work / ".git" / sign).write_text("")
    for flags in ([], ["--git-dirty=commit"]):
        [problem] = errors(found(tmp_path, "--commit", *flags))
        assert problem.field == "--commit"
        assert problem.message == f"git.commit is on, but a {what} is in progress"
        assert problem.suggestion.startswith("Finish or abort it first (git status shows it), or ")
    [problem] = found(tmp_path, "--preset=ralph")
    assert (problem.severity, problem.field) == (Severity.WARNING, "loop.git.commit")
    assert problem.message.endswith(f"a {what} is in progress")
    assert errors(found(tmp_path)) == []


@pytest.mark.real
def test_commit_needs_a_name_and_an_email_for_git(work: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text("[user]\n    useConfigOnly = true\n")

    def messages(*flags: str, **env: str) -> list[str]:
        return [one.message for one in planned(tmp_path, "build", AGENT, *flags, env=env).problems]

    names = {"GIT_AUTHOR_NAME": "me", "GIT_COMMITTER_NAME": "me"}
    emails = {"GIT_AUTHOR_EMAIL": "me@localhost", "GIT_COMMITTER_EMAIL": "me@localhost"}
    unknown = "git.commit is on, but git knows no {} for commits"
    assert messages("--commit") == [unknown.format("name and no email")]
    assert messages("--commit", **names) == [unknown.format("email")]
    assert messages("--commit", **names, **emails) == []
    assert messages("--commit", **emails, GIT_AUTHOR_NAME="me") == [unknown.format("name")]
    [refused] = messages("--commit", **emails, **names | {"GIT_AUTHOR_NAME": ""})
    assert refused == unknown.format("name")
    assert messages("--preset=ralph") == messages() == []
    (tmp_path / "home/.gitconfig").write_text("")
    assert messages("--commit", **names, EMAIL="me@localhost") == []
    git(work, "config", "user.name", "me")
    git(work, "config", "user.email", "me@localhost")
    assert messages("--commit") == []
    [refused] = messages("--commit", GIT_AUTHOR_NAME=",;")
    assert "git accepts no identity for commits: fatal: name consists only of" in refused


@pytest.mark.real
def test_what_only_a_preset_asks_for_is_not_checked(work: Path, tmp_path: Path) -> None:
    git(work, "checkout", "-q", "--detach")
    assert errors(found(tmp_path, "--preset=ralph")) == []
    assert errors(found(tmp_path, "--preset=v1", "-n", "1")) == []


@each_row(
    "command,word",
    [
        ("make test", "make"),
        ("  ./check.sh;", "./check.sh"),
        ("A=1 B=x/y make", "make"),
        ("make\n", "make"),
        ("make && true", "make"),
        ("make >log 2>&1 && true", "make"),
        ("make &>log", "make"),
        ("make || true", ""),
        ("make && x || true", ""),
        ("A=1 make|cat", ""),
        ("make;true", ""),
        ("make\ntrue", ""),
        ("make & wait", ""),
        ("PATH=/opt prog", ""),
        ('"my prog" x', "my prog"),
        ("'no such; program' x", "no such; program"),
        ("./no\\ such && true", "./no such"),
        ("A='b c' 'my'prog", "myprog"),
        ("'my prog' || true", ""),
        ('"no such" --flag', "no such"),
        ("! nosuch -q x", "nosuch"),
        ("(nosuch)", "nosuch"),
        ("{ nosuch && b; }", ""),
        ("cd sub && nosuch x && b", "nosuch"),
        ("(cd sub && A=1 nosuch)", "nosuch"),
        ("cd sub/x && ./check.sh", "sub/x/./check.sh"),
        ("cd sub && cd x && ./check.sh", "cd"),
        ("cd sub && /opt/check", "/opt/check"),
        ("cd sub; nosuch", ""),
        ('cd "$X" && nosuch', "cd"),
        ("exec env A=1 nosuch", "nosuch"),
        ("env PATH=/opt nosuch", ""),
        ("env -i nosuch", ""),
        ("if nosuch; then a; else b; fi", ""),
        ("if ! nosuch -x; then a; fi", "nosuch"),
        ("if nosuch || b; then a; fi", ""),
        ("!nosuch", ""),
        ('"$HOME/my prog"', ""),
        ("$PYTHON -m pytest", ""),
        ("~/bin/check", ""),
        ("(cd a; make)", ""),
        ("[ -e x ]", ""),
        ("f() { true; }; f", ""),
        ("2>/dev/null make", ""),
        ("A=$(date) make", ""),
        ("# nothing", ""),
        ("", ""),
    ],
)
def test_needed_program_is_known_where_the_shell_can_only_mean_one(command: str, word: str) -> None:
    assert needed_program(command) == word


@pytest.mark.real
def test_verify_whose_program_does_not_exist_is_an_error(work: Path, tmp_path: Path) -> None:
    [problem] = errors(found(tmp_path, "--verify", "no-such-program --fast"))
    assert problem.field == "--verify"
    assert problem.message == "the program of the check does not exist: no-such-program"
    assert "--verify-baseline warn" in problem.suggestion
    [problem] = errors(found(tmp_path, "--verify", "'no such program'"))
    assert problem.message == "the program of the check does not exist: no such program"
    (work / "check.sh").write_text("#!/bin/sh\n")
    [problem] = errors(found(tmp_path, "--verify", "./check.sh"))
    assert problem.message == "the program of the check is not an executable file: ./check.sh"
    (work / "check.sh").chmod(0o755)
    for command in ("./check.sh", "if true; then true; fi", "cd / && true", ". ./x", "test 1 = 1"):
        assert found(tmp_path, "--verify", command) == [], command


@pytest.mark.real
@pytest.mark.parametrize(
    "flags",
    [
        ["--no-verify-baseline"],
        ["--verify-baseline", "warn"],
        ["--hooks-loop-start", "make"],
        ["--branch", "other"],
    ],
)
def test_program_that_may_appear_before_its_first_use_is_only_a_warning(
    flags: list[str], work: Path, tmp_path: Path
) -> None:
    [problem] = found(tmp_path, "--verify", "./later.sh", *flags)
    assert problem.severity is Severity.WARNING
    assert ("--verify-baseline warn" in problem.suggestion) is ("baseline" not in flags[0])
    assert work.is_dir()


@pytest.mark.parametrize("command", ["true --api-key abc123", "API_KEY=abc123 true"])
def test_dry_run_shows_no_key_of_the_agents_command(command: str, tmp_path: Path) -> None:
    flags = ("build", "--ai-cmd", command)
    shown = render(planned(tmp_path, *flags), ["rooda", *flags])
    assert "abc123" not in shown
    assert "..." in shown
