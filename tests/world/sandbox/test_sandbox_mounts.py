"""What programs in the sandbox see, and what they can change. Real bubblewrap, real git."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from rooda.world.agents.facts import SandboxNeeds
from rooda.world.sandbox.sandbox import Sandbox
from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind
from rooda.world.state.folder import make_state_folder
from rooda.world.state.record_place import fleet_state, take_over_database
from support.gitrepo import git
from support.sandboxes import Inside, require_bwrap
from support.states import state_of

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux"),
]

# `mv` would copy the folder, and delete all that it can.
READ_ONLY = "Read-only file system"


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    require_bwrap()
    home, tree = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    git(tree, "init", "-q", "-b", "main")
    git(tree, "config", "user.name", "A User")
    git(tree, "config", "user.email", "user@example.org")
    (tree / "a.txt").write_text("alpha\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "first")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "SECRET": "s3cret", "LANG": "C"}
    return Inside(tree, home, environ)


def test_home_is_private_empty_and_kept_and_the_rest_of_the_machine_is_absent(
    inside: Inside,
) -> None:
    (inside.home / ".ssh").mkdir()
    (inside.home / ".ssh/id").write_text("key")
    outside = inside.tree.parent / "outside"
    outside.write_text("other")
    assert inside.sh("ls -A ~; echo cache > ~/.cache-of-npm") == ""
    assert inside.sh("cat ~/.cache-of-npm") == "cache"
    assert not (inside.home / ".cache-of-npm").exists()
    assert "No such file" in inside.sh(f"cat {outside}")
    assert "No such file" in inside.sh("cat /etc/shadow")
    assert inside.sh("ls /root /sys 2>&1 | grep -vc 'No such file'") == "0"
    assert READ_ONLY in inside.sh("touch /x /usr/x /etc/x")
    assert inside.sh("touch /tmp/x /var/tmp/x ~/x x && ls -A /run") == "user"
    above = state_of(inside.tree)
    assert oct((above / "home").stat().st_mode)[-3:] == "700"
    inside.sh("chmod 777 ~")
    assert oct(above.stat().st_mode)[-3:] == "700", "a program can't open it to other users"


def test_environment_has_only_what_a_shell_the_adapter_and_the_user_let_in(inside: Inside) -> None:
    inside.environ |= {"MY_TOKEN": "1", "ACME_API_KEY": "2", "ROODA_FLEET_DATABASE": "pw"}
    look = "env; cat /proc/*/environ | tr '\\0' '\\n'"
    plain = inside.sh(look)
    for secret in ("s3cret", "MY_TOKEN", "ACME_API_KEY", "ROODA_FLEET"):
        assert secret not in plain
    assert f"HOME={inside.home}" in plain
    needs = SandboxNeeds(variables=("ACME_*",), environ={"IS_SANDBOX": "1"})
    chosen = inside.sh(look, needs, env=("MY_TOKEN",))
    assert {"MY_TOKEN=1", "ACME_API_KEY=2", "IS_SANDBOX=1"} <= set(chosen.splitlines())
    assert "s3cret" not in chosen


def test_credentials_of_a_cli_are_writable_and_its_settings_read_only(inside: Inside) -> None:
    for name in (".cli/auth.json", ".cli/settings.json", ".cli/plugin.js"):
        (inside.home / name).parent.mkdir(exist_ok=True)
        (inside.home / name).write_text("old")
    needs = SandboxNeeds(credentials=(".cli/auth.json",), settings=(".cli/settings.json", ".none"))
    said = inside.sh("cd ~/.cli; ls; echo new > auth.json; echo x > settings.json", needs)
    assert said.splitlines()[:2] == ["auth.json", "settings.json"]
    assert READ_ONLY in said
    assert (inside.home / ".cli/auth.json").read_text() == "new\n"
    assert (inside.home / ".cli/settings.json").read_text() == "old"


def test_git_commits_inside_but_what_git_executes_is_read_only(inside: Inside) -> None:
    tree = inside.tree
    git(tree, "config", "include.path", os.devnull)  # then programs work in the user's own folder
    (tree / ".claude").mkdir()
    (tree / "rooda-config.yml").write_text("loop: {}\n")
    said = inside.sh(
        """echo b > b.txt; git add -A; git commit -qm second; git log --format='%an <%ae> %s'
        git branch other; git worktree list | wc -l
        for file in .git/config .git/hooks/x .git/info/attributes .git/objects/info/alternates \\
            .git/commondir rooda-config.yml .claude/settings.json; do
            (echo x >> $file) 2>/dev/null && echo "wrote $file"
        done
        for name in .git .git/objects .git/hooks .git/commondir rooda-config.yml; do
            perl -e 'rename shift, "away" and print "moved\\n"' $name
        done"""
    )
    assert said.splitlines() == ["A User <user@example.org> second", "me <me@localhost> first", "1"]
    assert git(tree, "log", "--format=%s") == "second\nfirst"
    assert not (tree / ".git/commondir").exists()


def test_state_folder_is_absent_but_for_the_private_home(inside: Inside) -> None:
    state = state_of(inside.tree)
    make_state_folder(state)
    (state / "rooda.db").write_text("record")
    said = inside.sh(f"cat {state}/rooda.db; ls {state} {state.parent}; echo kept > ~/x; ls -A ~")
    assert "record" not in said
    assert said.count("No such file or directory") == 3
    assert (state / "home/x").read_text() == "kept\n"


def test_files_that_git_reads_settings_from_are_read_only(inside: Inside) -> None:
    """Git outside would run the programs that they name: `core.sshCommand`, `receivepack`."""
    tree = inside.tree
    (tree / ".gitconfig").write_text("[include]\n\tpath = more/settings\n")
    (tree / "more").mkdir()
    (tree / "more/settings").write_text("[alias]\n\tst = status\n")
    git(tree, "config", "include.path", "../.gitconfig")
    (tree / "not-yet").write_text("")
    git(tree, "config", "includeIf.onbranch:other.path", f"{tree}/not-yet")
    said = inside.sh(
        """for file in .gitconfig more/settings not-yet; do
            (echo x >> $file) 2>/dev/null && echo "wrote $file"
            perl -e 'rename shift, "away" and print "moved\n"' $file
        done; perl -e 'rename shift, "away" and print "moved\n"' more; git st --short"""
    )
    assert said.splitlines() == ["?? .gitconfig", "?? more/", "?? not-yet"]
    (tree / "not-yet").unlink()
    with pytest.raises(SandboxError, match=f"includes {tree}/not-yet, which is missing"):
        Sandbox.of(inside.plan())


def test_settings_in_a_repository_elsewhere_that_it_includes_are_read_only(inside: Inside) -> None:
    tree, elsewhere = inside.tree, inside.tree.parent / "elsewhere"
    git(tree, "init", "-q", f"--separate-git-dir={elsewhere}")
    git(tree, "config", "core.worktree", str(tree))
    git(tree, "config", "include.path", "more")
    (elsewhere / "more").write_text("[alias]\n\tst = status\n")
    assert inside.sh(f"(echo x >> {elsewhere}/more) 2>/dev/null || git st --short") == ""
    assert (elsewhere / "more").read_text() == "[alias]\n\tst = status\n"


def test_commondir_of_a_killed_run_is_accepted_and_another_one_is_refused(inside: Inside) -> None:
    file = inside.tree / ".git/commondir"
    file.write_text(".\n")
    assert inside.sh("git log --format=%s") == "first"
    assert not file.exists()
    file.write_text("../evil\n")
    with pytest.raises(SandboxError, match="git does not work with"):
        Sandbox.of(inside.plan())
    assert file.read_text() == "../evil\n"


def test_linked_work_tree_can_commit_but_not_touch_the_main_one_or_others(inside: Inside) -> None:
    main, linked = inside.tree, inside.tree.parent / "linked tree"
    git(main, "worktree", "add", "-q", "-b", "side", str(linked))
    git(main, "worktree", "add", "-q", "-b", "third", str(main.parent / "third"))
    inside.tree = linked
    said = inside.sh(
        f"""echo c > c.txt; git add -A; git commit -qm linked; git log -1 --format=%s
        for file in .git {main}/.git/config {main}/.git/HEAD {main}/.git/index \\
            {main}/.git/hooks/x {main}/.git/commondir {main}/.git/objects/info/alternates \\
            {main}/.git/worktrees/third/HEAD {main}/.git/worktrees/linked*/commondir; do
            (echo x >> "$file") 2>/dev/null && echo "wrote $file"
        done; ls {main}; git worktree prune; true"""
    )
    assert said.splitlines()[0] == "linked"
    assert "wrote" not in said
    assert git(main, "log", "-1", "--format=%s", "side") == "linked"
    assert len(git(main, "worktree", "list").splitlines()) == 3


@pytest.fixture
def other(inside: Inside) -> Path:
    """Return the repository of another project of the user."""
    place = inside.home / "other"
    git(place, "init", "-q")
    (place / "secret").write_text("not for the agent\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "theirs")
    return place


def test_alternates_show_objects_and_no_other_folder(inside: Inside, other: Path) -> None:
    (inside.home / ".ssh").mkdir()
    (inside.home / ".ssh/id").write_text("key")
    alternates = inside.tree / ".git/objects/info/alternates"
    alternates.write_text(f"../../../home/.ssh\n{other}/.git/objects\n")
    said = inside.sh(f"cat ~/.ssh/id; git cat-file -t {git(other, 'rev-parse', 'HEAD')}")
    assert "No such file" in said
    assert said.splitlines()[-1] == "commit"


@pytest.mark.parametrize("file", [".git", ".git/commondir"])
def test_repository_elsewhere_that_does_not_name_the_work_tree_is_refused(
    inside: Inside, other: Path, file: str
) -> None:
    """An agent can write these files in a folder without a repository, for the next run."""
    if file == ".git":
        shutil.rmtree(inside.tree / ".git")
        (inside.tree / file).write_text(f"gitdir: {other}/.git\n")
    else:
        (inside.tree / ".git/gitdir").write_text(f"{inside.tree}/.git\n")
        (inside.tree / file).write_text(f"{other}/.git\n")
    with pytest.raises(SandboxError, match="does not name this work tree") as caught:
        Sandbox.of(inside.plan())
    assert not (other / ".git/commondir").exists()
    if file == ".git":
        assert f"git config core.worktree {inside.tree}" in caught.value.fix
        git(inside.tree, "config", "core.worktree", str(inside.tree))
        assert inside.sh("git log --format=%s") == "theirs"


def test_submodule_can_be_committed_to_but_its_settings_are_read_only(inside: Inside) -> None:
    tree, sub = inside.tree, inside.tree.parent / "sub"
    shutil.copytree(tree, sub)
    git(tree, "submodule", "add", "-q", str(sub), "libs/sub")
    git(tree, "commit", "-qm", "with a submodule")
    module = tree / ".git/modules/libs/sub"
    said = inside.sh(
        """cd libs/sub; echo d > d.txt; git add -A; git commit -qm inner; git log -1 --format=%s
        cd ../..; for file in libs/sub/.git .git/modules/libs/sub/config \\
            .git/modules/libs/sub/hooks/x .git/modules/libs/sub/commondir; do
            (echo x >> $file) 2>/dev/null && echo "wrote $file"
        done; for name in libs libs/sub .git/modules/libs .git/modules/libs/sub; do
            perl -e 'rename shift, "away" and print "moved\\n"' $name
        done"""
    )
    assert said == "inner"
    assert not (module / "commondir").exists()
    assert git(tree / "libs/sub", "log", "-1", "--format=%s") == "inner"


def test_objects_that_a_clone_borrows_can_be_read(inside: Inside) -> None:
    lender, clone = inside.tree, inside.tree.parent / "clone"
    git(lender.parent, "clone", "-q", "--shared", str(lender), str(clone))
    git(clone, "config", "user.name", "B")
    git(clone, "config", "user.email", "b@example.org")
    inside.tree = clone
    said = inside.sh(
        f"git log --format=%s; git commit -q --allow-empty -m own; git log --format=%s | wc -l; "
        f"touch {lender}/.git/objects/x {lender}/none/x"
    )
    assert said.splitlines()[:2] == ["first", "2"]
    assert READ_ONLY in said
    assert (lender / "a.txt").read_text() == "alpha\n"


def test_links_that_a_program_has_planted_are_not_mounted(inside: Inside) -> None:
    outside = inside.tree.parent / "outside"
    outside.mkdir()
    inside.sh(f"ln -s {outside} .claude")
    with pytest.raises(SandboxError, match=r"\.claude is a symbolic link"):
        Sandbox.of(inside.plan())
    assert not (inside.tree / ".git/commondir").exists()


def test_readable_and_writable_folders_and_no_network(inside: Inside) -> None:
    base = inside.tree.parent
    for name in ("docs", "shared"):
        (base / name).mkdir()
        (base / name / "x").write_text("x")
    (inside.tree / "fixed").mkdir()
    said = inside.sh(
        f"cat {base}/docs/x {base}/shared/x; echo; echo y > {base}/docs/y; echo y > fixed/y; "
        f"echo y > {base}/shared/y; grep -c : /proc/net/dev",
        readable=(base / "docs", inside.tree / "fixed"),
        writable=(base / "shared",),
        network=False,
    )
    assert said.splitlines()[0] == "xx"
    assert said.count(READ_ONLY) == 2
    assert said.splitlines()[-1] == "1"  # the loopback alone
    assert (base / "shared/y").exists()


def test_program_that_is_reached_by_links_runs_inside(inside: Inside) -> None:
    package = inside.home / "tools/node_modules/cli"
    package.mkdir(parents=True)
    (package / "cli.sh").write_text('#!/bin/sh\n. "$(dirname "$(readlink -f "$0")")"/part\n')
    (package / "cli.sh").chmod(0o755)
    (package / "part").write_text("echo found\n")
    (inside.home / "bin").mkdir()
    (inside.home / "bin/cli").symlink_to(package / "cli.sh")
    inside.environ["PATH"] = f"{inside.home}/bin:{inside.environ['PATH']}"
    with inside.sandbox() as sandbox:
        assert inside.run(("cli",), sandbox).stdout.tail == b"found\n"


def test_program_that_an_agent_may_have_made_shows_no_folder(inside: Inside) -> None:
    private = inside.home / "private"
    private.mkdir()
    (private / "tool").write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
    (private / "tool").chmod(0o755)
    (inside.tree / "agent").write_text(f"#!{private}/tool\n")
    (inside.tree / "agent").chmod(0o755)
    (inside.tree / "link").symlink_to(private / "tool")
    (inside.home / "bin").mkdir()
    (inside.home / "bin/through").symlink_to(inside.tree / "link")
    (inside.home / "bin/to-script").symlink_to(inside.tree / "agent")
    inside.environ["PATH"] = f"{inside.home}/bin:{inside.environ['PATH']}"
    with inside.sandbox() as sandbox:
        for program in ("./agent", "./link", "through", "to-script", "env"):
            words = sandbox.wrap((program, "./link"), inside.tree, inside.environ).jail
            assert not [word for word in words if word.startswith(f"{private}")], program
        words = sandbox.wrap((f"{private}/tool",), inside.tree, inside.environ).jail
        assert str(private) in words, "the user has named this one"


@pytest.mark.parametrize("kind", ["home", "readable", "writable"])
def test_folders_that_would_show_too_much_are_refused(inside: Inside, kind: str) -> None:
    base = inside.tree.parent
    more: dict[str, object] = {}
    if kind == "home":
        inside.home = inside.tree / "home"
    else:
        more[kind] = (base,)
    with pytest.raises(SandboxError, match="home folder"):
        Sandbox.of(inside.plan(**more))


def test_path_that_does_not_exist_is_refused(inside: Inside) -> None:
    with pytest.raises(SandboxError, match=r"sandbox\.readable does not exist"):
        Sandbox.of(inside.plan(readable=(inside.tree / "nowhere",)))


def test_command_is_put_before_the_program(inside: Inside) -> None:
    words = ("run", "-v", "{workspace}:/w", "--home={home}", "{cwd}", "{{x}}")
    with inside.sandbox(kind=SandboxKind.COMMAND, command=words) as sandbox:
        wrapped = sandbox.wrap(("cli", "-p"), inside.tree / "sub", inside.environ)
    tree = inside.tree
    start = ("run", "-v", f"{tree}:/w", f"--home={sandbox.home}", f"{tree}/sub", "{x}")
    assert wrapped.argv == (*start, "cli", "-p")
    assert wrapped.jail == ()
    assert "SECRET" not in wrapped.environ


PLANT = "mkdir -p {git}/rooda; echo forged > {git}/rooda/fleet.sqlite"


@pytest.mark.parametrize("has_fleet", [True, False])
@pytest.mark.parametrize("is_linked", [True, False])
def test_database_of_a_fleet_is_out_of_reach_and_one_in_the_git_folder_is_never_read(
    inside: Inside, *, has_fleet: bool, is_linked: bool
) -> None:
    """The database decides which commands workers run, outside of this sandbox."""
    main = inside.tree
    if is_linked:
        inside.tree = main.parent / "linked"
        git(main, "worktree", "add", "-q", str(inside.tree))
    state = fleet_state(main / ".git", inside.environ)
    if has_fleet:  # of version 0.1
        old = main / ".git/rooda/fleet.sqlite"
        old.parent.mkdir()
        old.write_text("runs")
    found = inside.sh(f"cat {main}/.git/rooda/* {state}/*; {PLANT.format(git=main / '.git')}")
    assert "runs" not in found
    assert take_over_database(main / ".git", state) is None
    database = state / "fleet.sqlite"
    assert (database.read_text() if database.exists() else "") == ("runs" if has_fleet else "")
