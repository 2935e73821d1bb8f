"""What programs leave in the work tree that could act outside of the sandbox, and what follows."""

import os
import shutil
import stat
import time
from pathlib import Path

import pytest

from rooda.world.git.pin import Pin
from rooda.world.sandbox import tree_walk
from rooda.world.sandbox.tree_check import Handled, TreeCheck
from rooda.world.sandbox.tree_findings import Action, Finding, TreeFacts, compare
from rooda.world.state.folder import StateFolder
from rooda.world.tools import Tools
from support.gitrepo import Repo, repository
from support.states import state_of
from support.tables import each_row
from support.users import folder_of_ordinary_user

PLACE = "runs/r/1"
LONG = "x" * 200
DEEPER = f"for i in $(seq 25); do mkdir {LONG}; cd -P {LONG}; done"


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository with a submodule, a nested repository, hooks and settings of CLIs."""
    folder = tmp_path_factory.mktemp("original")
    repo = repository(folder / "work")
    repo.write("a.txt", "alpha\n")
    repo.write("lib/.claude/settings.json", "{}")
    repo.write("rooda-config.yml", "loop: {}\n")
    repo.write(".husky/pre-commit", "true\n")
    repo.git("config", "core.hooksPath", ".husky/_")
    repo.sh("mkdir .husky/_; git init -q other; cd other; git commit -q --allow-empty -m x")
    repo.sh("git clone -q other ../sub; git submodule add -q ../sub sub")
    repo.commit()
    return repo


@pytest.fixture
def repo(original: Repo, tmp_path: Path) -> Repo:
    return original.copy(tmp_path / "work")


def kept_of(repo: Repo) -> Path:
    """Where rooda keeps what the check removes."""
    return state_of(repo.path) / PLACE / "removed"


def check_of(repo: Repo, *, protects_git: bool = True) -> TreeCheck:
    tools = Tools(repo.environ, [repo.path])
    pin = Pin.of(repo.path, tools)
    assert pin is not None
    pin.close()
    return TreeCheck.of(state_of(repo.path), repo.path, tools, pin, protects_git=protects_git)


def after(repo: Repo, script: str, *, protects_git: bool = True) -> list[Handled]:
    """Return what the check finds after a program ran this script."""
    check = check_of(repo, protects_git=protects_git)
    repo.sh(script)
    return check.run(PLACE)


HARMLESS = {
    "nothing": "true",
    "a commit": "echo b > b; git add b; git -c core.hooksPath=/dev/null commit -qm b",
    "work in the submodule": "cd sub; echo c > c; git add c; git commit -qm c",
    "work in the nested repository": "cd other; echo c > c; git add c; git commit -qm c",
    "a link in the work tree": "ln -s /etc/hostname link",
    "a set-gid folder": "mkdir shared; chmod g+s shared",
    "a rebase that stopped": (
        "git switch -qc x; echo x > a.txt; git commit -qam x --no-verify; git switch -q -;"
        "echo y > a.txt; git commit -qam y --no-verify; git rebase -q x || true"
    ),
    "the same settings again": "cp lib/.claude/settings.json x; mv x lib/.claude/settings.json",
    "a file called config": "echo x > config; mkdir -p src; echo x > src/config",
    "housekeeping of git": "git gc -q; git pack-refs --all",
    "a commit made again": "git -c core.hooksPath=/dev/null commit -q --amend -m again",
    "a branch deleted": "git branch x; git branch -D x; git stash -q; git stash clear",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("script", HARMLESS.values(), ids=HARMLESS.keys())
def test_ordinary_work_is_no_finding(repo: Repo, script: str) -> None:
    assert after(repo, script) == []


REMOVED = {
    "reflog link": (Finding.GIT_LINK, "ln -sf ../../../victim .git/logs/HEAD", ".git/logs/HEAD"),
    "message link": (
        Finding.GIT_LINK,
        "ln -sf ../../victim .git/COMMIT_EDITMSG",
        ".git/COMMIT_EDITMSG",
    ),
    "link as a folder of objects": (
        Finding.GIT_LINK,
        "mkdir ../victim; rm -rf .git/objects/00; ln -s ../../../victim .git/objects/00",
        ".git/objects/00",
    ),
    "link in a submodule": (
        Finding.GIT_LINK,
        "ln -sf /dev/null .git/modules/sub/ORIG_HEAD",
        ".git/modules/sub/ORIG_HEAD",
    ),
    "link as the folder of a work tree": (
        Finding.GIT_LINK,
        "mkdir -p .git/worktrees; ln -s ../../../victim .git/worktrees/x",
        ".git/worktrees/x",
    ),
    "new module": (Finding.MODULE, "git init -q --bare .git/modules/new", ".git/modules/new"),
    "module in a module": (
        Finding.MODULE,
        "git init -q --bare .git/modules/sub/modules/x",
        ".git/modules/sub/modules/x",
    ),
    "rebase with exec": (
        Finding.REBASE,
        "mkdir .git/rebase-merge; echo 'exec touch /tmp/x' > .git/rebase-merge/git-rebase-todo",
        ".git/rebase-merge",
    ),
    "rebase in a submodule": (
        Finding.REBASE,
        "cd .git/modules/sub; mkdir rebase-merge; echo ' x id' > rebase-merge/git-rebase-todo",
        ".git/modules/sub/rebase-merge",
    ),
    "rebase list that is too large": (
        Finding.REBASE,
        "mkdir .git/rebase-merge; truncate -s 9M .git/rebase-merge/git-rebase-todo",
        ".git/rebase-merge",
    ),
    "pipe in git's folder": (Finding.GIT_LINK, "mkfifo .git/MERGE_MSG", ".git/MERGE_MSG"),
    "pipe with the rules of a folder": (
        Finding.GIT_LINK,
        "mkdir -p a/b; mkfifo a/b/.gitattributes",
        "a/b/.gitattributes",
    ),
    "pipe in the folder of a new work tree": (
        Finding.GIT_LINK,
        "mkdir -p .git/worktrees/x; mkfifo .git/worktrees/x/HEAD",
        ".git/worktrees/x/HEAD",
    ),
    "link in the folder of a new work tree": (
        Finding.GIT_LINK,
        "mkdir -p .git/worktrees/x/logs; ln -s ../../../../../victim .git/worktrees/x/logs/HEAD",
        ".git/worktrees/x/logs/HEAD",
    ),
    "link at a depth beyond the longest path": (
        Finding.GIT_LINK,
        f"cd .git/logs; {DEEPER}; ln -s /etc x",
        f".git/logs/{'/'.join([LONG] * 25)}/x",
    ),
    "address of a remote in a file": (
        Finding.GIT_SETTINGS,
        "mkdir -p .git/remotes; echo 'URL: evil.git' > .git/remotes/origin",
        ".git/remotes/origin",
    ),
    "address of a branch in a file": (
        Finding.GIT_SETTINGS,
        "mkdir -p .git/branches; echo evil.git > .git/branches/origin",
        ".git/branches/origin",
    ),
    "settings of claude": (
        Finding.CLI_SETTINGS,
        "mkdir -p .claude/x; echo '{}' > .claude/settings.json",
        ".claude",
    ),
    "settings in an existing folder": (
        Finding.CLI_SETTINGS,
        "mkdir lib/.claude/commands; echo x > lib/.claude/commands/x.md",
        "lib/.claude/commands",
    ),
    "link to settings": (
        Finding.CLI_SETTINGS,
        "ln -s ../evil src_mcp; mv src_mcp .mcp.json",
        ".mcp.json",
    ),
    "settings in a folder": (
        Finding.CLI_SETTINGS,
        "mkdir -p a/b; echo '{}' > a/b/opencode.json",
        "a/b/opencode.json",
    ),
    "plugin of opencode": (
        Finding.CLI_SETTINGS,
        "mkdir -p .opencode/plugin; echo x > .opencode/plugin/x.js",
        ".opencode",
    ),
    "settings that rooda can't read": (
        Finding.CLI_SETTINGS,
        "mkdir .codex; echo x > .codex/config.toml; chmod 0 .codex",
        ".codex",
    ),
    "config of rooda": (
        Finding.CONFIG,
        "mkdir -p x; echo 'loop: {}' > x/rooda-config.yml",
        "x/rooda-config.yml",
    ),
    "config of ralph": (
        Finding.CONFIG,
        "mkdir .ralph; echo AGENT_CLI=evil > .ralph/config",
        ".ralph/config",
    ),
    "folder of ralph elsewhere": (Finding.CONFIG, "ln -s ../evil .ralph", ".ralph"),
    "hook of husky": (Finding.HOOK, "echo evil > .husky/pre-push", ".husky/pre-push"),
    "hook in the hooks path": (Finding.HOOK, "echo evil > .husky/_/pre-push", ".husky/_/pre-push"),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("finding,script,name", REMOVED.values(), ids=REMOVED.keys())
def test_planted_file_is_moved_into_the_record(
    repo: Repo, finding: Finding, script: str, name: str
) -> None:
    assert after(repo, script) == [Handled(finding, Action.REMOVED, (name,), str(kept_of(repo)))]
    assert not os.path.lexists(repo.path / name)
    kept = kept_of(repo) / f"1-{Path(name).name}"
    assert os.path.lexists(kept), "what was removed is in the record"
    assert stat.S_IMODE((state_of(repo.path)).stat().st_mode) == 0o700
    assert repo.git("status", "--porcelain", "--ignore-submodules=dirty") is not None


@pytest.mark.git
@each_row("mode", ["000", "311", "444"])
def test_nothing_hides_in_a_folder_that_is_closed(mode: str) -> None:
    with folder_of_ordinary_user() as top:
        (top / "of the user/in").mkdir(parents=True)
        (top / "of the user").chmod(int(mode, 8))
        check = TreeCheck(StateFolder(top / "state"), tree_walk.Places(str(top)))
        assert stat.S_IMODE((top / "of the user").stat().st_mode) == int(mode, 8)

        planted = top / "closed/sub"
        planted.mkdir(parents=True)
        (planted / ".mcp.json").write_text("evil")
        (planted / "program").touch()
        (planted / "program").chmod(0o4755)
        for folder in (planted, planted.parent):
            folder.chmod(int(mode, 8))
        (top / "of the user").chmod(0o700)
        (top / "of the user/in/.claude").mkdir()
        (top / "of the user").chmod(int(mode, 8))

        found = {(one.finding, name) for one in check.run(PLACE) for name in one.names}
        assert found == {
            (Finding.CLI_SETTINGS, "closed/sub/.mcp.json"),
            (Finding.CLI_SETTINGS, "of the user/in/.claude"),
            (Finding.SET_ID, "closed/sub/program"),
        }
        assert stat.S_IMODE((planted / "program").stat().st_mode) == 0o755
        assert stat.S_IMODE((top / "of the user").stat().st_mode) == int(mode, 8)
        (top / "of the user").chmod(0o700)
        assert not (top / "of the user/in/.claude").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a folder of another user")
def test_folder_of_another_user_is_refused_if_it_is_new() -> None:
    with folder_of_ordinary_user() as top:
        owner = os.geteuid()
        os.seteuid(0)
        (top / "old").mkdir(mode=0o700)
        os.seteuid(owner)
        check = TreeCheck(state_of(top), tree_walk.Places(str(top)))
        os.seteuid(0)
        (top / "new").mkdir(mode=0o700)
        os.seteuid(owner)
        found = check.run(PLACE)
        os.seteuid(0)
    assert found == [Handled(Finding.UNREADABLE, Action.REFUSED, ("new",))]


@pytest.mark.real
def test_removed_files_keep_their_content_and_do_not_replace_each_other(repo: Repo) -> None:
    check = check_of(repo)
    for words in ("first", "second"):
        repo.write(".mcp.json", words)
        check.run(PLACE)
    kept = kept_of(repo)
    assert (kept / "1-.mcp.json").read_text() == "first"
    assert (kept / "2-.mcp.json").read_text() == "second"


@pytest.mark.real
def test_nothing_is_moved_through_a_link_that_was_removed_before(
    repo: Repo, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    check = check_of(repo)
    (repo.path / ".ralph").symlink_to(private)
    (repo.path / ".git/zz").symlink_to(private)
    check.run(PLACE)
    repo.write(".ralph/config", "the agent's")
    (repo.path / ".git/zz").mkdir()
    (repo.path / ".git/zz/known_hosts").symlink_to("/etc/passwd")
    check.run(PLACE)
    assert not [*private.iterdir()]
    assert (kept_of(repo) / "1-config").read_text() == "the agent's"


REFUSED = {
    "changed settings": (
        Finding.CLI_SETTINGS,
        "echo '{\"hooks\": 1}' > lib/.claude/settings.json",
        "lib/.claude/settings.json",
    ),
    "deleted settings": (
        Finding.CLI_SETTINGS,
        "rm -r lib/.claude",
        "lib/.claude/settings.json",
    ),
    "changed config": (Finding.CONFIG, "echo x >> rooda-config.yml", "rooda-config.yml"),
    "changed hook": (Finding.HOOK, "echo evil >> .husky/pre-commit", ".husky/pre-commit"),
    "a hook that is now a program": (
        Finding.HOOK,
        "chmod +x .husky/pre-commit",
        ".husky/pre-commit",
    ),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("finding,script,name", REFUSED.values(), ids=REFUSED.keys())
def test_changed_file_is_refused_and_stays(
    repo: Repo, finding: Finding, script: str, name: str
) -> None:
    check = check_of(repo)
    repo.sh(script)
    expected = [Handled(finding, Action.REFUSED, (name,))]
    assert check.run(PLACE) == expected
    assert check.run(PLACE) == expected, "as long as the file is not back"
    repo.git("checkout", "--", name)
    repo.sh("chmod -x .husky/pre-commit")
    assert check.run(PLACE) == []


GIT_SETTINGS = {
    "config": (Finding.GIT_SETTINGS, Action.REFUSED, "git config core.fsmonitor x", "config"),
    "a new hook": (Finding.HOOK, Action.REMOVED, "echo x > .git/hooks/pre-push", "hooks/pre-push"),
    "commondir": (Finding.GIT_SETTINGS, Action.REMOVED, "echo ../x > .git/commondir", "commondir"),
    "attributes": (
        Finding.GIT_SETTINGS,
        Action.REMOVED,
        "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes",
        "info/attributes",
    ),
    "alternates": (
        Finding.GIT_SETTINGS,
        Action.REMOVED,
        "echo /x > .git/objects/info/alternates",
        "objects/info/alternates",
    ),
    "config of a submodule": (
        Finding.GIT_SETTINGS,
        Action.REFUSED,
        "git -C sub config core.fsmonitor x",
        "modules/sub/config",
    ),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "finding,action,script,name", GIT_SETTINGS.values(), ids=GIT_SETTINGS.keys()
)
def test_git_settings_are_compared_where_the_sandbox_does_not_protect_them(
    repo: Repo, finding: Finding, action: Action, script: str, name: str
) -> None:
    place = str(kept_of(repo)) if action is Action.REMOVED else ""
    found = after(repo, script, protects_git=False)
    assert found == [Handled(finding, action, (f".git/{name}",), place)]


FORGOTTEN = "git reflog expire --expire=now --all; git prune --expire=now"
LOST = {
    "the whole folder": ("rm -rf .git", ".git"),
    "all objects": ("rm -rf .git/objects", ".git"),
    "HEAD": ("echo x > .git/HEAD", ".git"),
    "a pipe as HEAD": ("rm .git/HEAD; mkfifo .git/HEAD", ".git"),
    "objects of a branch": ("rm -rf .git/objects/??", "refs/heads/main"),
    "a tree": (
        "rm -f $(git rev-parse HEAD^{tree} | sed 's,^..,.git/objects/&/,')",
        "refs/heads/main",
    ),
    "a branch": (f"git branch -D old; {FORGOTTEN}", "refs/heads/old"),
    "a tag": (f"git tag -d v1; {FORGOTTEN}", "refs/tags/v1"),
    "the stash": (f"git stash clear; {FORGOTTEN}", "refs/stash"),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("script,name", LOST.values(), ids=LOST.keys())
def test_lost_commits_are_refused_until_they_are_back(
    repo: Repo, tmp_path: Path, script: str, name: str
) -> None:
    repo.sh(
        "for one in old v1; do git switch -q --detach main; echo $one > a.txt;"
        "git -c core.hooksPath=/dev/null commit -qam $one; git branch $one; done;"
        "git tag v1 v1; git branch -qD v1; git switch -q main; echo stash > a.txt; git stash -q"
    )
    shutil.copytree(repo.path / ".git", tmp_path / "kept", symlinks=True)
    check = check_of(repo)
    assert check.run(PLACE) == []
    repo.sh(script)
    (found,) = (one for one in check.run(PLACE) if one.finding is Finding.LOST_COMMITS)
    assert found.action is Action.REFUSED
    assert name in found.names
    assert found == check.run(PLACE)[-1], "as long as they are not back"
    shutil.rmtree(repo.path / ".git", ignore_errors=True)
    shutil.copytree(tmp_path / "kept", repo.path / ".git", symlinks=True)
    assert check.run(PLACE) == []


@pytest.mark.real
def test_commits_that_were_missing_before_are_no_finding(repo: Repo) -> None:
    repo.sh("rm -rf .git/objects/??")
    assert after(repo, "true") == []


NESTED = {
    "new": ("git init -q new", "new"),
    "in a new folder": ("git init -q a/b/new", "a/b/new"),
    "linked": ("mkdir new; ln -s ../evil new/.git", "new"),
    "pointing elsewhere": ("mkdir new; echo 'gitdir: ../evil' > new/.git", "new"),
    "replaced submodule": ("rm sub/.git; git init -q sub", "sub"),
    "submodule that points elsewhere": ("echo 'gitdir: ../evil' > sub/.git", "sub"),
    "other settings": ("git -C other config core.fsmonitor evil", "other"),
    "other common folder": ("echo ../evil > other/.git/commondir", "other"),
    "bare": ("git init -q --bare new.git", "new.git"),
    "bare with files elsewhere": ("mkdir new; touch new/HEAD new/commondir", "new"),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("script,name", NESTED.values(), ids=NESTED.keys())
def test_unsafe_repository_is_excluded_from_git_and_reported_once(
    repo: Repo, script: str, name: str
) -> None:
    check = check_of(repo)
    repo.sh(script)
    assert check.run(PLACE) == [Handled(Finding.REPOSITORY, Action.EXCLUDED, (name,))]
    assert check.excluded == {name}
    assert check.run(PLACE) == []
    assert check.excluded == {name}
    shutil.rmtree(repo.path / name)
    check.run(PLACE)
    assert check.excluded == set()


@pytest.mark.real
def test_set_uid_file_stays_without_its_bits(repo: Repo) -> None:
    check = check_of(repo)
    modes = {"a/s": 0o4755, "g": 0o2711, "other/.git/x": 0o4755, ".git/x": 0o6755}
    for name, mode in modes.items():
        repo.write(name).chmod(mode)
    assert check.run(PLACE) == [Handled(Finding.SET_ID, Action.CLEARED, tuple(sorted(modes)))]
    for name, mode in modes.items():
        assert stat.S_IMODE((repo.path / name).stat().st_mode) == mode & 0o777


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_set_uid_file_in_another_place_that_can_be_written_stays_without_its_bits(
    tmp_path: Path, kind: str
) -> None:
    tree, other = tmp_path / "tree", tmp_path / "other"
    tree.mkdir()
    planted, old = (other / "closed/program", other / "old") if kind == "folder" else (other, tree)
    planted.parent.mkdir(parents=True, exist_ok=True)
    if kind == "folder":
        old.touch()
        old.chmod(0o4755)
    where = tree_walk.Places(str(tree))
    check = TreeCheck(state_of(tree), where, writable=lambda: [other])
    planted.touch()
    planted.chmod(0o4755)
    if kind == "folder":
        planted.parent.chmod(0o300)
    assert check.run(PLACE) == [Handled(Finding.SET_ID, Action.CLEARED, (str(planted),))]
    assert stat.S_IMODE(planted.stat().st_mode) == 0o755
    if kind == "folder":
        assert stat.S_IMODE(old.stat().st_mode) == 0o4755, "the user's own"


@pytest.mark.real
def test_linked_work_tree_refuses_what_the_user_may_have_done_in_another_one(repo: Repo) -> None:
    linked = repo.path.parent / "linked"
    repo.git("worktree", "add", "-q", "--detach", str(linked))
    tree = Repo(linked, repo.environ)
    check = check_of(tree)
    exec_line = "echo 'exec x'"
    todo = "rebase-merge/git-rebase-todo"
    shared = f"{repo.path}/.git"
    tree.sh(
        f"mkdir {shared}/rebase-merge; {exec_line} > {shared}/{todo};"
        f"git init -q --bare {shared}/modules/new; ln -s /x {shared}/ORIG_HEAD;"
        f"mkdir {shared}/worktrees/linked/rebase-merge;"
        f"{exec_line} > {shared}/worktrees/linked/{todo}"
    )
    found = {(one.finding, one.action, one.names) for one in check.run(PLACE)}
    assert found == {
        (Finding.REBASE, Action.REFUSED, (f"{shared}/rebase-merge",)),
        (Finding.REBASE, Action.REMOVED, (f"{shared}/worktrees/linked/rebase-merge",)),
        (Finding.MODULE, Action.REFUSED, (f"{shared}/modules/new",)),
        (Finding.GIT_LINK, Action.REMOVED, (f"{shared}/ORIG_HEAD",)),
    }
    assert (repo.path / ".git" / todo).exists(), "it may be the user's"


def test_folder_without_repository_is_checked_too(tmp_path: Path) -> None:
    check = TreeCheck.of(
        state_of(tmp_path), tmp_path, Tools({"PATH": os.environ["PATH"]}), None, protects_git=True
    )
    for name in (".git/config", ".mcp.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert {(one.finding, one.action) for one in check.run(PLACE)} == {
        (Finding.REPOSITORY, Action.EXCLUDED),
        (Finding.CLI_SETTINGS, Action.REMOVED),
    }


@pytest.mark.real
def test_what_can_not_be_removed_is_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    check = check_of(repo)
    repo.write(".mcp.json", "x")

    def fail(source: str, target: str, **_: int) -> None:
        raise PermissionError(source, target)

    monkeypatch.setattr(os, "rename", fail)
    assert check.run(PLACE) == [Handled(Finding.CLI_SETTINGS, Action.REFUSED, (".mcp.json",))]


@pytest.mark.real
def test_tree_that_takes_too_long_is_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    check = check_of(repo)
    monkeypatch.setattr(tree_walk, "_MOST_SECONDS", -1.0)
    assert check.run(PLACE) == [Handled(Finding.TOO_LARGE, Action.REFUSED, ())]


@pytest.mark.real
def test_tree_that_was_not_known_at_the_start_loses_nothing(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(tree_walk, "_MOST_SECONDS", -1.0)
        check = check_of(repo)
    assert check.run(PLACE) == [Handled(Finding.TOO_LARGE, Action.REFUSED, ())]
    assert (repo.path / "rooda-config.yml").exists()


@pytest.mark.real
def test_files_with_hard_links_are_counted(repo: Repo) -> None:
    assert check_of(repo).hard_link_count == 0
    outside = repo.path.parent / "outside"
    outside.write_text("x")
    os.link(outside, repo.path / "linked")
    check = check_of(repo)
    assert check.hard_link_count == 1
    assert check.hard_links == ("linked",)


@pytest.mark.real
def test_links_are_not_followed(repo: Repo) -> None:
    outside = repo.path.parent / "outside"
    outside.mkdir()
    (outside / ".mcp.json").write_text("x")
    found = after(repo, "ln -s ../outside in; ln -s ../outside .claude")
    assert found == [
        Handled(Finding.CLI_SETTINGS, Action.REMOVED, (".claude",), str(kept_of(repo)))
    ]
    assert (outside / ".mcp.json").read_text() == "x"


@pytest.mark.long
def test_a_hundred_thousand_files_take_seconds(tmp_path: Path) -> None:
    for number in range(1000):
        folder = tmp_path / "tree" / f"{number // 50}" / f"{number}"
        folder.mkdir(parents=True)
        for name in range(100):
            (folder / f"{name}").touch()
    places = tree_walk.Places(str(tmp_path / "tree"), "")
    began = time.process_time()
    assert tree_walk.look(places).facts.is_whole
    assert time.process_time() - began < 5  # 0.5 s on a free machine


def test_comparison_needs_no_disk() -> None:
    before = TreeFacts(guarded={"/w/.claude": (Finding.CLI_SETTINGS, "")})
    later = TreeFacts(
        guarded={
            "/w/.claude": (Finding.CLI_SETTINGS, ""),
            "/w/.claude/a": (Finding.CLI_SETTINGS, ""),
            "/w/.claude/a/b": (Finding.CLI_SETTINGS, "file"),
        }
    )
    assert [(one.action, one.paths) for one in compare(before, later)] == [
        (Action.REMOVED, ("/w/.claude/a",))
    ]
