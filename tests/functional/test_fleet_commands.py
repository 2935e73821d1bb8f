"""`rooda fleet` as a user types it: tasks in, the table, one run at a time, and its end."""

import contextlib
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.children import Nursery
from support.gitrepo import git
from support.recorded import refused
from support.sandboxes import require_bwrap
from support.screen import Screen
from support.workspace import Workspace, wait_for

pytestmark = pytest.mark.usefixtures("unmeasured")  # coverage counts nothing of the fleet

TASKS = "Keep the style.\n\n## Auth\n\nWrite it.\n\n## The API\n\nWrite that.\n"
# What it writes differs from run to run, so that two runs conflict.
AGENT = """\
cat > /dev/null
echo line $PPID >> work.txt
echo "wrote line $(wc -l < work.txt)"
if [ "$(wc -l < work.txt)" -ge 2 ]; then echo '<promise>SUCCESS</promise>'; fi
"""


@pytest.fixture
def user(workspace: Workspace) -> Workspace:
    """A user in a repository with a file of tasks; the agent is elsewhere."""
    git(workspace.path, "init", "-q", "-b", "main")
    git(workspace.path, "config", "user.name", "me")
    git(workspace.path, "config", "user.email", "me@localhost")
    git(workspace.path, "commit", "-q", "--allow-empty", "-m", "first")
    workspace.write("TASKS.md", TASKS)
    return workspace


@pytest.fixture
def screen() -> Iterator[Screen]:
    found = Screen(columns=100)
    yield found
    found.close()


def agent_of(user: Workspace, body: str = AGENT) -> str:
    path = user.path.parent / "agent.sh"
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(0o755)
    return str(path)


def refs_of(folder: Path) -> list[str]:
    return git(folder, "for-each-ref", "--format=%(refname)").splitlines()


WITHOUT_EXTRA = """\
import sys
sys.modules["dbos"] = sys.modules["sqlalchemy"] = None
from rooda.front.cli.main import main
sys.exit(main())
"""


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "words",
    [
        ["fleet"],
        ["fleet", "run", "TASKS.md"],
        ["fleet", "show", "x"],
        ["fleet", "demo"],
        ["worker"],
    ],
    ids=" ".join,
)
def test_without_the_extra_the_command_that_installs_it_is_named(
    user: Workspace, words: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA, *words],
        cwd=user.path,
        env=user.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Install them: pip install 'rooda[fleet]'" in done.stderr
    assert refs_of(user.path) == ["refs/heads/main"]


@pytest.mark.real
def test_without_runs_the_table_says_how_to_start_and_makes_nothing(user: Workspace) -> None:
    done = user.rooda("fleet")
    assert (done.code, done.out) == (0, "")
    assert "rooda fleet run TASKS.md" in done.err
    assert not (user.path / ".git/rooda").exists()
    outside = Workspace(user.home, user.home).rooda("fleet")
    assert outside.code == 1
    assert "is in no git repository" in outside.err


@pytest.mark.real
def test_state_home_in_the_work_tree_is_refused(user: Workspace) -> None:
    (user.path / "TASKS.md").write_text("# Tasks\n\n## One\n\nDo it.\n")
    inside = user.path / "states"
    done = user.rooda("fleet", "run", "TASKS.md", env={"ROODA_STATE_HOME": str(inside)})
    refused(done, f"a part of the work tree {user.path}", "Set ROODA_STATE_HOME")
    assert not inside.exists()


@pytest.mark.long
def test_mistakes_are_found_before_anything_is_added(user: Workspace) -> None:
    user.write("bytes", b"\0")
    (user.path / "link").symlink_to("/etc/passwd")
    for words, message in (
        (["TASKS.md"], "must specify AI command"),
        (["TASKS.md", "-a", "clude"], "Did you mean 'claude'?"),
        (["TASKS.md", "--ai-cmd", "x", "-n", "many"], "must be a whole number"),
        (["TASKS.md", "--ai-cmd", "x", "--env", "API_TOKEN=hush"], "looks like a secret"),
        (["TASKS.md", "--ai-cmd", "x", "--no-commit"], "publishes commits"),
        (["TASKS.md", "--ai-cmd", "x", "--max-cost", "lots"], "amount of US dollars"),
        (["TASKS.md", "--ai-cmd", "x", "--base", "gone"], "there is no commit 'gone'"),
        (["TASKS.md", "--ai-cmd", "x", "--procedure", "buidl"], "Did you mean 'build'?"),
        (["gone.md", "--ai-cmd", "x"], "gone.md does not exist"),
        (["TASKS.md", "--no-such-flag"], "No such option"),
        (["TASKS.md", "--ai-cmd", "x", "--context", "bytes"], "bytes is not text"),
        (["TASKS.md", "--ai-cmd", "x", "--context", "link"], "link leads to"),
    ):
        done = user.rooda("fleet", "add", *words)
        assert done.code == 1, words
        assert message in done.err, done.err
        assert "hush" not in done.err
    done = user.rooda("fleet", "run", "TASKS.md", "--ai-cmd", "no-such-agent -p")
    assert (done.code, "AI command binary not found: no-such-agent" in done.err) == (1, True)
    assert refs_of(user.path) == ["refs/heads/main"]


@pytest.mark.long
def test_a_run_is_added_shown_stopped_and_forgotten(user: Workspace) -> None:
    user.config("loop: {ai_cmd: agent}\n")
    words = ["-n", "7", "--max-cost", "40", "--finish", "pr", "--json"]
    added = user.rooda("fleet", "add", "TASKS.md", *words)
    assert added.code == 0, added.err
    assert "will not become a pull request" in added.err  # a warning: there is no `origin`
    assert "rooda-config.yml" in added.err  # a warning: it is not committed
    assert [one["run"] for one in json.loads(added.out)] == ["auth", "the-api"]
    table = user.rooda("fleet")
    assert "auth" in table.out
    assert "queued" in table.out
    assert "rooda worker" in table.out
    shown = json.loads(user.rooda("fleet", "--json").out)
    assert [one["state"] for one in shown["runs"]] == ["queued", "queued"]
    assert "State      queued" in user.rooda("fleet", "show", "the").out
    assert user.rooda("fleet", "why", "auth").out == "auth: queued\n"
    wrong = user.rooda("fleet", "why", "aut-h")
    assert (wrong.code, "Did you mean 'auth'?" in wrong.err) == (1, True)
    again = user.rooda("fleet", "add", "TASKS.md", "--ai-cmd", "x")
    assert "No task is new" in again.err
    user.write("TASKS.md", TASKS.replace("Write it.", "Write it well.") + "\n## Third\n\nGo.\n")
    again = user.rooda("fleet", "add", "TASKS.md", "--ai-cmd", "x")
    assert "TASKS.md:3: the project has a run 'auth' already, with another text" in again.err
    user.write("TASKS.md", TASKS + "\n## Third\n\nGo.\n")
    again = user.rooda("fleet", "add", "TASKS.md", "--ai-cmd", "x")
    assert again.out == "Added 1 run: third\n"
    assert "already: auth, the-api." in again.err
    assert user.rooda("fleet", "stop", "third").code == 0
    assert user.rooda("fleet", "forget", "third").code == 0
    assert user.rooda("fleet", "forget", "auth").code == 1
    assert user.rooda("fleet", "stop", "auth").out == "auth is stopped.\n"
    assert "Next: rooda fleet retry auth\n" in user.rooda("fleet", "why", "auth").out
    again = user.rooda("fleet", "retry", "auth", "--max-cost", "55")
    assert again.out == "auth is queued again.\n"
    assert "`rooda fleet run` works on it here" in again.err
    assert "$0.00 of $55.00" in user.rooda("fleet").out
    assert user.rooda("fleet", "stop", "--all", "--now").code == 0
    assert user.rooda("fleet", "forget", "auth").out == "auth is forgotten.\n"
    assert refs_of(user.path) == ["refs/heads/main"]
    assert refs_of(user.state / "fence.git") == ["refs/rooda/fleet/the-api"]


@pytest.mark.long
def test_run_comes_back_from_git_after_the_user_agreed_to_its_command(user: Workspace) -> None:
    user.config("loop: {ai_cmd: agent}\n")
    words = ["-n", "7", "--finish", "pr"]
    assert user.rooda("fleet", "add", "TASKS.md", *words).code == 0
    for file in user.state.glob("fleet.sqlite*"):
        file.unlink()
    answer = user.rooda("fleet", "adopt")
    assert (answer.code, answer.out) == (1, "")
    base = git(user.path, "rev-parse", "--short=12", "main")
    command = "rooda loop TASK --max-iterations 7 --finish pr"
    assert f"{command}\n    for auth at {base}, the-api at {base}" in answer.err
    assert "rooda fleet adopt --trust" in answer.err
    assert "the-api" not in user.rooda("fleet").out
    adopted = user.rooda("fleet", "adopt", "--trust")
    assert adopted.out == "auth: queued, iteration 0\nthe-api: queued, iteration 0\n"
    assert "the-api" in user.rooda("fleet").out


@pytest.mark.real
def test_fleet_of_version_0_1_is_taken_over_with_one_line(user: Workspace) -> None:
    """As version 0.1 left it: the database in the git folder, the records in the user's refs."""
    assert user.rooda("fleet", "add", "TASKS.md", "--ai-cmd", agent_of(user)).code == 0
    state, git_dir = user.state, user.path / ".git"
    refs = refs_of(state / "fence.git")
    git(user.path, "fetch", "-q", str(state / "fence.git"), "refs/rooda/*:refs/rooda/*")
    (git_dir / "rooda").mkdir()
    for file in state.glob("fleet.sqlite*"):
        file.rename(git_dir / "rooda" / file.name)
    shutil.rmtree(state)
    shown = user.rooda("fleet")
    assert shown.err.startswith(f"Took over the fleet of version 0.1 from {git_dir}: its database ")
    assert f"and 2 records are in {state} now.\n" in shown.err
    assert "the-api" in shown.out
    assert refs_of(user.path) == ["refs/heads/main"]
    assert refs_of(state / "fence.git") == refs
    assert not (git_dir / "rooda").exists()
    assert "Took over" not in user.rooda("fleet").err
    done = user.rooda("worker", "-j", "2", "--drain")
    assert (done.code, refs_of(user.path)) == (
        0,
        ["refs/heads/main", "refs/heads/rooda/auth", "refs/heads/rooda/the-api"],
    )


@pytest.mark.real
def test_fleet_of_a_repository_that_was_moved_goes_on(user: Workspace) -> None:
    assert user.rooda("fleet", "add", "TASKS.md", "--ai-cmd", agent_of(user)).code == 0
    moved = Workspace(user.path.rename(user.path.parent / "moved"), user.home)
    assert not moved.state.exists()
    shown = moved.rooda("fleet")
    assert shown.err.startswith(f"This work tree was moved from {user.path}: its record came along")
    assert "the-api" in shown.out
    assert moved.rooda("worker", "-j", "2", "--drain").code == 0
    assert refs_of(moved.path) == [
        "refs/heads/main",
        "refs/heads/rooda/auth",
        "refs/heads/rooda/the-api",
    ]
    # A new repository at the old path is another project.
    git(moved.path.parent, "init", "-q", "-b", "main", str(user.path))
    assert "the-api" not in user.rooda("fleet").out


@pytest.mark.real
def test_state_of_a_fleet_is_not_deleted_while_a_worker_is_at_work(
    user: Workspace, nursery: Nursery
) -> None:
    user.write("TASKS.md", "- one task\n")
    up, go = (user.path.parent / name for name in ("up", "go"))
    agent = agent_of(user, f"echo up > {up}; until [ -e {go} ]; do sleep 0.05; done")
    user.rooda("fleet", "add", "TASKS.md", "--ai-cmd", agent)
    worker = nursery.start(user, "worker", "-j", "1")
    wait_for(up)
    done = user.rooda("record", "forget", "--yes")
    refused(done, "the fleet of", "Stop its workers first")
    worker.signal(signal.SIGTERM)
    go.touch()
    worker.finish(60)
    assert user.rooda("record", "forget", "--yes").code == 0
    assert not user.state.exists()


@pytest.mark.long
def test_forged_database_is_one_clear_error(user: Workspace) -> None:
    assert user.rooda("fleet", "add", "TASKS.md", "--ai-cmd", agent_of(user)).code == 0
    with contextlib.closing(sqlite3.connect(user.state / "fleet.sqlite")) as connection:
        connection.execute("UPDATE rooda_batches SET data = ?", ['{"name": 5}'])
        connection.commit()
    user.write("MORE.md", "## More\n\nWrite it.\n")
    for words in ((), ("--json",), ("why", "auth"), ("add", "MORE.md")):
        done = user.rooda("fleet", *words)
        assert done.code == 1, (words, done.err)
        assert "has a wrong value: Expected `str`, got `int` - at `$.name`" in done.err
        assert "the column `data` of the batch" in done.err
        assert "rooda fleet adopt" in done.err


@pytest.mark.long
def test_the_diff_of_a_run_leaves_out_the_work_of_the_runs_before_it(user: Workspace) -> None:
    user.write(
        "fleet.yml",
        "- {name: one, context: x}\n- {name: two, context: x}\n"
        "- {name: three, context: x, after: [one, two]}\n",
    )
    write = 'name=$(git branch --show-current); echo x > "${name#rooda/}.txt"\n'
    agent = agent_of(user, f"cat > /dev/null\n{write}echo '<promise>SUCCESS</promise>'\n")
    done = user.rooda("fleet", "run", "fleet.yml", "-j", "2", "--ai-cmd", agent, timeout=60)
    assert done.code == 0, done.err
    assert git(user.path, "show", "rooda/three:one.txt") == "x"
    shown = user.rooda("fleet", "diff", "three", "--stat").out
    assert "three.txt" in shown
    assert "one.txt" not in shown
    assert "two.txt" not in shown


@pytest.mark.long
def test_a_file_of_tasks_is_worked_on_until_all_have_ended(user: Workspace) -> None:
    before = git(user.path, "status", "--porcelain=v1")
    words = ["TASKS.md", "-j", "2", "--ai-cmd", agent_of(user), "-c", "Mind the tests."]
    done = user.rooda("fleet", "run", *words, timeout=60)
    assert done.code == 0, done.err
    assert any(line.startswith("auth: iteration 2/5 done") for line in done.log)
    assert "the-api" in done.out
    assert "branch only: git merge rooda/auth" in done.out
    assert git(user.path, "show", "rooda/auth:work.txt").count("line") == 2
    assert git(user.path, "status", "--porcelain=v1") == before
    shown = user.rooda("fleet", "show", "auth").out
    assert "wrote line 2" in shown
    assert "Rule: signal" in user.rooda("fleet", "why", "auth").out
    assert "+line" in user.rooda("fleet", "diff", "auth").out
    assert "work.txt | 2 ++" in user.rooda("fleet", "diff", "auth", "--stat").out
    refused = user.rooda("fleet", "merge", "--into", "main")
    assert (refused.code, "is checked out" in refused.err) == (1, True)
    merged = user.rooda("fleet", "merge", "--into", "night", "--verify", "test -e work.txt")
    assert merged.out == "auth: merged\nthe-api: conflict with auth: work.txt\n"
    assert merged.code == 1
    assert "Next: rooda fleet retry the-api --onto night" in merged.err
    states = [one["words"] for one in json.loads(user.rooda("fleet", "--json").out)["runs"]]
    assert states == ["merged", "conflict with auth: work.txt"]
    again = user.rooda("fleet", "retry", "auth")
    assert (again.code, "nothing left to do" in again.err) == (1, True)
    resolve = 'git merge -q "$(grep -o "git merge [0-9a-f]*" | head -1 | cut -c11-)" || true\n'
    resolve += "git checkout -q --theirs work.txt && git add work.txt && git commit -qm both\n"
    agent_of(user, f"{resolve}echo '<promise>SUCCESS</promise>'\n")
    onto = user.rooda("fleet", "retry", "the-api", "--onto", "night")
    assert onto.out == "Added the-api-onto-night, which brings the work of the-api onto night.\n"
    assert user.rooda("fleet", "run", timeout=60).code == 0
    both = user.rooda("fleet", "merge", "--into", "night")
    assert both.code == 0, both.err
    assert "the-api-onto-night: merged" in both.out
    assert "the-api: merged with another run" in both.out
    last = user.rooda("fleet", "merge", "--into", "night")
    assert "the-api: already merged" in last.out
    git(user.path, "branch", "-D", "-q", "night")
    kept = user.rooda("fleet", "forget", "auth")
    assert kept.out == "auth is forgotten; its branch rooda/auth stays.\n"
    git(user.path, "merge", "-q", "rooda/the-api")
    gone = user.rooda("fleet", "forget", "the-api")
    assert gone.out == "the-api is forgotten, with its branch.\n"


@pytest.mark.long
def test_ctrl_c_lets_the_iteration_end_and_the_runs_wait(user: Workspace, screen: Screen) -> None:
    folder = user.path.parent
    body = f"touch {folder}/started; until [ -e {folder}/go ]; do sleep 0.05; done\n{AGENT}"
    screen.start(user, "fleet", "run", "TASKS.md", "-j", "1", "--ai-cmd", agent_of(user, body))
    screen.wait_for("auth  iteration 1", timeout=30)
    while not (folder / "started").exists():
        screen.read(0.05)
    screen.type(b"\x03")
    screen.wait_for("press Ctrl+C again to stop those at work now")
    (folder / "go").touch()
    assert screen.finish(timeout=40) == 130
    shown = json.loads(user.rooda("fleet", "--json").out)
    assert [(one["state"], one["iteration"]) for one in shown["runs"]] == [
        ("queued", 1),
        ("queued", 0),
    ]
    assert "iteration 1/5 done" in "\n".join(screen.lines)
    assert user.rooda("worker", "-j", "2", "--drain", timeout=60).code == 0
    assert "2 success" in user.rooda("fleet").out


@pytest.mark.long
def test_the_demo_kills_a_process_and_its_run_is_taken_over(workspace: Workspace) -> None:
    workspace.global_config("fleet: {url: 'postgresql://nowhere/x'}\n")  # takes no part
    done = workspace.rooda("fleet", "demo", env={"TMPDIR": str(workspace.path)}, timeout=60)
    assert done.code == 0, done.err
    killed = next(place for place, line in enumerate(done.log) if "kill -9" in line)
    assert any(line.startswith("farewell: taken over") for line in done.log[killed:])
    assert sum("farewell: iteration 2/5 done" in line for line in done.log) == 1
    assert "farewell: merged" in done.out
    assert list(workspace.path.iterdir()) == []


@pytest.mark.real
def test_mistake_in_a_list_of_tasks_has_its_file_and_line(user: Workspace) -> None:
    user.write(
        "fleet.yml",
        "- name: one\n  context: x\n  base: gone\n- name: two\n  procedure: buidl\n"
        "- name: ~\n  context: x\n- name: four\n  context: x\n  priority: 1e9\n",
    )
    done = user.rooda("fleet", "add", "fleet.yml", "--ai-cmd", "x")
    assert done.code == 1
    for words in (
        "fleet.yml:3: base: there is no commit 'gone'",
        "fleet.yml:5: procedure: there is no procedure or command named 'buidl'",
        "fleet.yml:6: the task has no name",
        "fleet.yml:10: priority: ",
    ):
        assert words in done.err, done.err


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_check_of_a_merge_is_in_the_sandbox_of_the_runs(user: Workspace) -> None:
    """Merged work is that of agents: without the sandbox, the check would run it as the user."""
    require_bwrap()
    user.config("loop: {ai_cmd: agent}\n")
    for flags, file in ((("--sandbox", "bwrap"), "TASKS.md"), ((), "MORE.md")):
        user.write(file, TASKS if file == "TASKS.md" else "## More\n\nWrite it.\n")
        assert user.rooda("fleet", "add", file, *flags).code == 0
    for name in ("auth", "the-api", "more"):
        git(user.path, "worktree", "add", "-q", "-b", f"rooda/{name}", f"../{name}")
        (user.path.parent / name / f"{name}.txt").write_text("work\n")
        git(user.path.parent / name, "add", "-A")
        git(user.path.parent / name, "commit", "-qm", name)
        git(user.path, "worktree", "remove", f"../{name}")
    outside = user.path.parent / "outside"
    (user.home / "secret").write_text("key")
    check = f"ls *.txt; echo agent >> {outside}; test ! -e ~/secret"
    names = ["auth", "more"]
    done = user.rooda("fleet", "merge", *names, "--into", "night", "--verify", check)
    assert done.code == 0, (done.out, done.err)
    assert done.out == "auth: merged\nmore: merged\n"
    assert not outside.exists()
    # A sandbox that is not possible is an error before the first merge.
    broken = user.rooda(
        *("fleet", "merge", "the-api", "--into", "other", "--verify", check),
        env={"ROODA_LOOP_SANDBOX_READABLE": "/no-such-folder"},
    )
    assert broken.code == 1
    assert "the check can't run" in broken.err
    assert "/no-such-folder" in broken.err
    assert "refs/heads/other" not in refs_of(user.path)
    assert not outside.exists()
