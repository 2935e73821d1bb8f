"""Checks before the first iteration: can git do what is configured, and are there secrets?"""

import os
from pathlib import Path

import pytest

from rooda.base.problems import Problem, Severity, errors
from rooda.base.secrets.sensitive import is_allowed, looks_like_a_secret
from rooda.plan.prepare import Prepared
from support.config import planned
from support.gitrepo import git
from support.tables import each_row
from support.workspace import Workspace

AGENT = "--ai-cmd=true"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Create a repository in the folder that `planned` uses."""
    work = tmp_path / "work"
    git(tmp_path, "init", "-q", "work")
    return work


def fill(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")


def about_git(prepared: Prepared) -> list[Problem]:
    return [p for p in prepared.all_problems() if "git" in p.field or p.field == "--commit"]


# -- git itself ----------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.parametrize(
    "flag,off",
    [
        ("--commit", "--no-commit"),
        ("--push", "--no-push"),
        ("--git-require-changes", "--no-git-require-changes"),
    ],
)
def test_git_setting_outside_of_a_work_tree_is_an_error_with_advice(
    flag: str, off: str, tmp_path: Path
) -> None:
    prepared = planned(tmp_path, "build", AGENT, flag)
    [problem] = errors(prepared.all_problems())
    assert problem.field == flag
    assert f"{tmp_path / 'work'} is in no git work tree" in problem.message
    assert "git init" in problem.suggestion
    assert off in problem.suggestion
    assert not prepared.valid


@pytest.mark.git
def test_git_setting_without_git_is_an_error_with_advice(work: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agent").symlink_to("/bin/true")
    env = {"PATH": str(tmp_path / "bin")}
    prepared = planned(tmp_path, "build", "--ai-cmd=agent", "--commit", env=env)
    [problem] = errors(prepared.all_problems())
    assert "git is not installed" in problem.message
    assert "Install git" in problem.suggestion
    assert work.is_dir()


@pytest.mark.real
@pytest.mark.parametrize(
    "files,env,place",
    [
        (
            {"workspace": "\nloop: {git: {push: true}}"},
            {},
            ("rooda-config.yml", 2, "loop.git.push"),
        ),
        (
            {"workspace": "procedures: {build: {git: {push: true}}}"},
            {},
            ("rooda-config.yml", 1, "procedures.build.git.push"),
        ),
        ({"workspace": None}, {"ROODA_LOOP_GIT_PUSH": "1"}, ("", None, "ROODA_LOOP_GIT_PUSH")),
    ],
)
def test_error_names_the_place_of_the_setting(
    files: dict[str, str | None],
    env: dict[str, str],
    place: tuple[str, int | None, str],
    tmp_path: Path,
) -> None:
    prepared = planned(tmp_path, "build", AGENT, workspace=files["workspace"], env=env)
    [problem] = errors(prepared.all_problems())
    assert (problem.file, problem.line, problem.field) == place


@pytest.mark.real
def test_all_git_settings_are_reported_at_once(tmp_path: Path) -> None:
    text = "loop: {git: {commit: true, push: true, require_changes: true}}"
    found = errors(planned(tmp_path, "build", AGENT, workspace=text).all_problems())
    assert [p.field for p in found] == [
        "loop.git.commit",
        "loop.git.push",
        "loop.git.require_changes",
    ]


@pytest.mark.real
def test_git_setting_of_a_preset_is_only_a_warning(tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", AGENT, "--preset=v1", "-n", "1")
    [problem] = about_git(prepared)
    assert problem.severity is Severity.WARNING
    assert "git.push is on, but" in problem.message
    assert prepared.valid


@pytest.mark.real
def test_git_setting_of_a_preset_that_the_user_repeats_is_an_error(tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", AGENT, "--preset=v1", "-n", "1", "--push")
    assert [p.severity for p in about_git(prepared)] == []
    [problem] = errors(prepared.all_problems())
    assert problem.field == "--push"


@each_row("flags", [["--no-commit"], ["--git-snapshots"], ["--git-message=x"], []])
def test_no_git_is_needed_without_a_git_setting(flags: list[str], tmp_path: Path) -> None:
    assert planned(tmp_path, "build", AGENT, *flags).all_problems() == []


@pytest.mark.real
def test_subfolder_of_a_work_tree_is_accepted(work: Path, tmp_path: Path) -> None:
    (work / "sub").mkdir()
    git(work, "remote", "add", "origin", "/nowhere")
    flags = ("--commit", "--push", "--git-require-changes", "--working-dir", "sub")
    assert planned(tmp_path, "build", AGENT, *flags).all_problems() == []


@pytest.mark.real
def test_bare_repository_is_no_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "work")
    [problem] = errors(planned(tmp_path, "build", AGENT, "--commit").all_problems())
    assert "is in no git work tree" in problem.message


@pytest.mark.real
def test_repository_that_git_refuses_is_reported_with_git_s_message(
    work: Path, tmp_path: Path
) -> None:
    (work / ".git" / "config").write_text("[core\nbroken")
    [problem] = errors(planned(tmp_path, "build", AGENT, "--commit").all_problems())
    assert "git refuses to work here: git rev-parse: fatal: bad config line" in problem.message
    assert "git status" in problem.suggestion


@pytest.mark.real
def test_variables_of_a_git_hook_are_ignored(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "other")
    env = {"GIT_DIR": str(tmp_path / "other" / ".git"), "GIT_WORK_TREE": str(tmp_path / "other")}
    [problem] = errors(planned(tmp_path, "build", AGENT, "--commit", env=env).all_problems())
    assert "is in no git work tree" in problem.message


def test_missing_working_dir_is_reported_once(tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", AGENT, "--commit", "--working-dir", "gone")
    [problem] = errors(prepared.all_problems())
    assert problem.field == "--working-dir"


# -- secrets -------------------------------------------------------------------------------

SECRETS = [
    ".env",
    ".env.local",
    ".env.production",
    "prod.env",
    ".envrc",
    "server.pem",
    "tls/private.key",
    "store.p12",
    "cert.pfx",
    "release.jks",
    "passwords.kdbx",
    "id_rsa",
    "deploy/id_ed25519",
    "id_rsa_work",
    "id_ecdsa.old",
    "credentials.json",
    "credentials-prod.json",
    "gcp-credentials.json",
    ".aws/credentials",
    "credentials",
    "secrets.yml",
    "config/secrets.yaml",
    "secrets.prod.toml",
    "client_secret_123.json",
    "service-account.json",
    "my.secret",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".htpasswd",
    ".docker/config.json",
    "sub/.kube/config",
    "terraform.tfvars",
    "ID_RSA",
    "Server.PEM",
    ".env_prod",
    ".env-staging",
    ".env~",
    ".server.pem.swp",
    "server.key.bak",
    "server.pem\n",
]
HARMLESS = [
    ".env.example",
    ".env.sample",
    ".env.template",
    ".env.dist",
    "example.env",
    "id_rsa.pub",
    "id_ed25519.pub",
    "public.pem",
    "signing.pub.key",
    "credentials.example.json",
    "secrets.sample.yml",
    "secrets.yml.dist",
    "terraform.tfvars.example",
    "environment.py",
    "env",
    "venv/pyvenv.cfg",
    "src/credentials.py",
    "src/secrets.go",
    "test_secrets.py",
    "docs/secrets.md",
    "keys.py",
    "monkey",
    "key",
    "package.json",
    "config.json",
    "config",
    "kube/config",
    "id_rsa_parser.py",
    "secretary.json",
    ".npmrc",
    "a.key/",
    "",
    "/",
]


@each_row("name", SECRETS)
def test_secret_is_recognised_by_its_name(name: str) -> None:
    assert looks_like_a_secret(name)
    assert looks_like_a_secret(f"deep/down/{name}")


@each_row("name", HARMLESS)
def test_other_names_are_no_secrets(name: str) -> None:
    assert not looks_like_a_secret(name)


@each_row(
    "pattern,names,others",
    [
        ("*.pem", ["a.pem", "b/c.pem"], ["a.key", "a.pem/b.key"]),
        ("dev.key", ["dev.key", "b/dev.key"], ["adev.key", "b/DEV.key"]),
        ("tests/*", ["tests/a.pem", "tests/b/c.pem"], ["b/tests/a.pem", "tests.pem"]),
        ("tests/", ["tests/a.pem", "tests/b/c.pem"], ["tests.pem"]),
        ("tests/**/*.pem", ["tests/a.pem", "tests/b/c/d.pem"], ["tests/a.key"]),
        ("**/dev.key", ["dev.key", "b/c/dev.key"], ["other.key"]),
        ("./dev.key", ["dev.key"], ["other.key"]),
        ("/dev.key", ["dev.key"], ["b/dev.key"]),
        ("*", ["a.pem", "b/.env"], []),
    ],
)
def test_pattern_allows_names_or_paths(pattern: str, names: list[str], others: list[str]) -> None:
    assert [name for name in (*names, *others) if is_allowed(name, ["x", pattern])] == names


@pytest.mark.real
def test_secrets_that_rooda_will_not_commit_are_warned_about_by_name(
    work: Path, tmp_path: Path
) -> None:
    fill(work, ".env", "keys/server.pem", ".env.example", "main.py", "ignored.key")
    (work / ".gitignore").write_text("ignored.key\n")
    prepared = planned(tmp_path, "build", AGENT, workspace="\nloop: {git: {commit: true}}")
    [problem] = prepared.all_problems()
    assert problem.severity is Severity.WARNING
    assert problem.message.endswith("rooda will not commit them: .env, keys/server.pem")
    assert (problem.file, problem.line, problem.field) == ("rooda-config.yml", 2, "loop.git.commit")
    assert ".gitignore" in problem.suggestion
    assert prepared.valid


@pytest.mark.real
def test_secrets_are_not_checked_without_commit(work: Path, tmp_path: Path) -> None:
    fill(work, ".env")
    assert planned(tmp_path, "build", AGENT, "--git-require-changes").all_problems() == []


@pytest.mark.real
def test_new_secrets_count_and_not_tracked_or_allowed_ones(work: Path, tmp_path: Path) -> None:
    fill(work, "old.pem", "modified.pem", "deleted.pem", "removed.pem")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    (work / "modified.pem").write_text("changed")
    (work / "deleted.pem").unlink()
    git(work, "rm", "-q", "removed.pem")
    fill(work, "staged.pem", "intended.pem", "new.pem", "tests/allowed.pem")
    git(work, "add", "staged.pem")
    git(work, "add", "-N", "intended.pem")
    flags = ("--commit", "--git-dirty=commit", "--git-allow-secrets", "tests/*")
    [problem] = planned(tmp_path, "build", AGENT, *flags).all_problems()
    assert problem.message.endswith("commit them: intended.pem, new.pem, staged.pem")


@pytest.mark.real
def test_allowed_secrets_have_to_be_patterns(work: Path, tmp_path: Path) -> None:
    text = "loop: {git: {commit: true, allow_secrets: true}}"
    [problem] = errors(planned(tmp_path, "build", AGENT, workspace=text).all_problems())
    assert problem.field == "loop.git.allow_secrets"
    assert "*.pem" in problem.suggestion
    assert work.is_dir()


@pytest.mark.real
def test_secrets_of_the_whole_work_tree_count(work: Path, tmp_path: Path) -> None:
    fill(work, "at/top.pem", "sub/.env")
    [problem] = planned(tmp_path, "build", AGENT, "--commit", "--working-dir", "sub").all_problems()
    assert problem.message.endswith("commit them: at/top.pem, sub/.env")


@pytest.mark.real
def test_many_secrets_are_counted(work: Path, tmp_path: Path) -> None:
    fill(work, *(f"{letter}.key" for letter in "abcdefgh"))
    [problem] = planned(tmp_path, "build", AGENT, "--commit").all_problems()
    assert problem.message.endswith(": a.key, b.key, c.key, d.key, e.key and 3 more")


@pytest.mark.real(rows=3)
@pytest.mark.parametrize(
    "content,named",
    [
        ("//registry.example.org/:_authToken=npm_abc123\n", [".npmrc"]),
        ("_password = abc\n", [".npmrc"]),
        ("//registry.example.org/:_authToken=${NPM_TOKEN}\n", []),
        ("registry=https://registry.example.org/\nsave-exact=true\n", []),
    ],
)
def test_npmrc_is_a_secret_only_with_a_token(
    content: str, named: list[str], work: Path, tmp_path: Path
) -> None:
    (work / ".npmrc").write_text(content)
    found = planned(tmp_path, "build", AGENT, "--commit").all_problems()
    assert [p.message.rpartition(": ")[2] for p in found] == named


@pytest.mark.real
def test_link_in_place_of_a_file_is_not_followed(work: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("_authToken=npm_abc123")
    (work / ".npmrc").symlink_to(tmp_path / "token")
    assert planned(tmp_path, "build", AGENT, "--commit").all_problems() == []


@pytest.mark.real
def test_names_with_control_codes_are_shown_on_one_line(work: Path, tmp_path: Path) -> None:
    fill(work, "two\nlines.pem", "\x1b[31mred.pem", os.fsdecode(b"\xff.pem"))
    [problem] = planned(tmp_path, "build", AGENT, "--commit").all_problems()
    assert "\n" not in problem.message
    assert "\x1b" not in problem.message
    assert problem.message.count(".pem") == 3


@pytest.mark.real
def test_checks_take_no_lock_and_write_nothing(work: Path, tmp_path: Path) -> None:
    fill(work, ".env", "main.py")
    git(work, "add", "main.py")
    (work / ".git" / "index.lock").touch()
    before = (work / ".git" / "index").stat().st_mtime_ns
    problems = planned(tmp_path, "build", AGENT, "--commit").all_problems()
    assert [one.message.rpartition(": ")[2] for one in problems] == [".env", "main.py"]
    assert (work / ".git" / "index").stat().st_mtime_ns == before


@pytest.mark.real
def test_check_for_secrets_starts_no_program_of_the_repository(work: Path, tmp_path: Path) -> None:
    hook = work / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    hook.chmod(0o755)
    git(work, "config", "core.fsmonitor", str(hook))
    planned(tmp_path, "build", AGENT, "--commit")
    assert not (tmp_path / "started").exists()


# -- through the command -------------------------------------------------------------------


@pytest.mark.real
def test_run_that_could_not_commit_starts_no_agent(workspace: Workspace) -> None:
    done = workspace.work(workspace.agents("exit 0"), "--commit", "-n", "1")
    assert (done.code, workspace.starts) == (1, 0)
    assert "Error: --commit: git.commit is on, but " in done.err
    assert "or turn it off with --no-commit" in done.err


@pytest.mark.real
def test_run_warns_about_secrets_at_its_start(workspace: Workspace) -> None:
    git(workspace.path, "init", "-q")
    git(workspace.path, "config", "user.name", "me")
    git(workspace.path, "config", "user.email", "me@localhost")
    fill(workspace.path, ".env")
    done = workspace.work("true", "--commit", "--dry-run")
    assert done.code == 0
    warning = "! --commit: new files look like secrets, so rooda will not commit them: .env"
    assert warning in done.out


# -- changes that the user has not committed ---------------------------------------------------


@pytest.mark.real
def test_every_kind_of_uncommitted_change_to_a_tracked_file_is_listed(
    work: Path, tmp_path: Path
) -> None:
    fill(work, "modified", "deleted", "staged", "renamed", "same", "log")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    fill(work, "untracked", "added")
    for name in ("modified", "staged", "log"):
        (work / name).write_text("changed")
    (work / "deleted").unlink()
    git(work, "add", "staged", "added")
    git(work, "mv", "renamed", "moved")
    (work / "same").touch()
    flags = (AGENT, "--commit", "--log-file", "log")
    [problem] = planned(tmp_path, "build", *flags).all_problems()
    names = problem.message.rpartition(": ")[2].split(", ")
    assert sorted(names) == ["added", "deleted", "modified", "moved", "renamed", "staged"]
    assert planned(tmp_path, "build", *flags, "--git-dirty=commit").all_problems() == []
    assert planned(tmp_path, "build", *flags, "--preset=ralph").valid
    assert planned(tmp_path, "build", *flags, "--no-commit").all_problems() == []


@pytest.mark.real
def test_many_changed_files_are_counted(work: Path, tmp_path: Path) -> None:
    fill(work, *(f"{number:02}" for number in range(25)))
    git(work, "add", "-A")
    [problem] = planned(tmp_path, "build", AGENT, "--commit").all_problems()
    assert problem.message.endswith("18, 19 and 5 more")
