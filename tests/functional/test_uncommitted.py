"""What the user had not committed before a run with `git.commit`: changed and untracked files."""

import json
import signal
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.ralphs import COMPLETE, ralph_work
from support.workspace import Workspace, wait_for

pytestmark = pytest.mark.real

SUCCESS = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def committed(work: GitWork, commit: str = "HEAD") -> list[str]:
    """Return the files that a commit changed."""
    return work.git("show", "--format=", "--name-only", commit).split()


def test_run_with_commit_does_not_start_while_tracked_files_have_changes(work: GitWork) -> None:
    work.write("README", "half done\n")
    agent = work.agents("touch new")
    done = work.work(agent, "-n", "1", "--commit")
    assert (done.code, work.starts) == (1, 0)
    assert done.err == (
        "Error: --commit: git.commit is on, but tracked files have uncommitted changes: README\n"
        "  Commit them, put them aside with `git stash`, or let rooda commit them with the agent's "
        "work: --git-dirty commit\n"
    )
    shown = work.work(agent, "--commit", "--dry-run")
    assert shown.code == 1
    assert "✗ --commit: git.commit is on, but tracked files" in shown.out
    assert work.work(agent, "--dry-run").code == 0, "the agent's own commits are its own affair"


def test_changed_files_are_committed_if_the_user_says_so(work: GitWork) -> None:
    work.write("README", "half done\n")
    work.write("notes", "mine\n")
    flags = ("-n", "1", "--commit", "--git-dirty", "commit")
    assert work.work(work.agent("touch new"), *flags).code == 2
    assert committed(work) == ["README", "new"]


def test_untracked_files_of_the_user_stay_out_of_commits_until_the_agent_changes_them(
    work: GitWork,
) -> None:
    for name in ("notes", "touched", "data/1", "data/2", "mixed/mine", "ü\n"):
        work.write(name, "mine\n")
    (work.path / "link").symlink_to("notes")
    work.git("init", "-q", str(work.path / "vendored"))
    work.write("vendored/code", "mine\n")
    work.commit("of the vendor", cwd=work.path / "vendored")
    agent = work.agents(
        "touch new mixed/new touched",
        "git add -A; touch 2",
        "echo more >> data/1; echo data/2 > .gitignore",
        "rm notes; echo mine > notes; chmod +x mixed/mine; ln -sf README link",
    )
    assert work.work(agent, "-n", "4", "--commit").code == 2
    assert committed(work, "HEAD~3") == ["mixed/new", "new"]
    assert committed(work, "HEAD~2") == ["2"], "the agent has staged them and changed nothing"
    assert committed(work, "HEAD~1") == [".gitignore", "data/1"]
    assert committed(work) == ["link", "mixed/mine"]
    left = work.git("ls-files", "-z", "--others", "--exclude-standard").strip("\0").split("\0")
    assert left == ["notes", "touched", "vendored/", "ü\n"]


def test_resumed_run_knows_the_untracked_files_of_its_start_and_accepts_changed_ones(
    work: GitWork,
) -> None:
    work.write("notes", "mine\n")
    stuck = work.agent(f"echo more >> README; touch new; echo . > {work.marker('on')}; sleep 60")
    running = work.begin(stuck, "-n", "2", "--commit")
    wait_for(work.marker("on"))
    running.signal(signal.SIGTERM)
    assert running.finish().code == 130
    done = work.rooda("resume", "--ai-cmd", work.agent(SUCCESS, "other"))
    assert done.code == 0
    assert committed(work) == ["README", "new"]


def paused(work: GitWork, number: signal.Signals = signal.SIGTERM) -> None:
    """Interrupt a run whose agent has changed `a` and made `new`, then edit as the user."""
    work.write("a", "a\n")
    work.commit("more")
    on = work.marker("on")
    stuck = work.agent(f"echo more >> a; echo agent > new; echo . > {on}; sleep 60")
    running = work.begin(stuck, "-n", "2", "--commit")
    wait_for(on)
    running.signal(number)
    running.finish()
    work.write("notes", "mine\n")


# Ways to pause a run in its second iteration: what the agent does then, and the flags of the run.
COST = """echo '{"type": "result", "is_error": false, "result": "done", "total_cost_usd": 1}'"""
PAUSES = {
    "stop": ("{on}; until [ -e {off} ]; do sleep 0.05; done", ()),
    "stop --now": ("{on}; sleep 60", ()),
    "Ctrl+C": ("{on}; sleep 60", ()),
    "Ctrl+C twice": ("trap 'echo . > {off}' TERM; {on}; while :; do sleep 0.1; done", ()),
    "pause-after": ("{on}", ("--pause-after", "2")),
    "max-iters": ("{on}", ("-n", "2")),
    "abort": ("{on}; exit 1", ("--failure-threshold", "1")),
    "max-cost": ("{on}", ("--max-cost", "2")),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("pause", PAUSES)
def test_what_the_user_does_in_a_pause_stays_out_of_commits(work: GitWork, pause: str) -> None:
    work.write("a", "a\n")
    work.commit("more")
    body, flags = PAUSES[pause]
    on, off = work.marker("on"), work.marker("off")
    agent = work.agents(
        f"echo one > one; {COST}",
        f"echo more >> a; echo agent > new; {COST}; {body.format(on=f'echo . > {on}', off=off)}",
    )
    claude = work.marker("claude")  # only a known agent reports a cost
    claude.symlink_to(agent.strip("'"))
    if pause == "max-cost":
        agent = f"{claude} -p --output-format stream-json --verbose"
    running = work.begin(agent, "-n", "9", "--commit", *flags)
    wait_for(on)
    if pause.startswith("stop"):
        assert work.rooda(*pause.split()).code == 0
        off.touch()
    elif pause.startswith("Ctrl+C"):
        running.signal(signal.SIGINT)
        if pause.endswith("twice"):
            wait_for(off)
            running.signal(signal.SIGINT)
    running.finish()
    assert "new" in [*committed(work), *work.git("ls-files", "--others").split()]
    work.write("my notes", "mine\n")
    work.write("README", "half done\n")
    resume = ("resume", "-n", "9", "--max-cost", "9", "--ai-cmd", work.agent(SUCCESS, "other"))
    done = work.rooda(*resume)
    assert done.code == 1
    assert "tracked files have uncommitted changes: README\n" in done.err
    assert "stay out of commits until the agent changes them: my notes\n" in done.err
    work.git("checkout", "-q", "README")
    assert work.rooda(*resume).code == 0
    assert work.git("status", "--porcelain") == '?? "my notes"', "the rest is the run's"


def test_new_files_of_a_pause_stay_out_of_commits(work: GitWork) -> None:
    paused(work)
    (work.path / "a").touch()  # the content is the same
    done = work.rooda("resume", "--ai-cmd", work.agent(SUCCESS, "other"))
    assert done.code == 0
    assert committed(work) == ["a", "new"], "what the interrupted iteration left is the run's"


def test_tracked_files_that_changed_in_a_pause_stop_the_resumed_run(work: GitWork) -> None:
    paused(work)
    work.write("README", "half done\n")
    agent = ("--ai-cmd", work.agent(SUCCESS, "other"))
    for _ in range(2):
        done = work.rooda("resume", *agent)
        assert done.code == 1
        assert "tracked files have uncommitted changes: README\n" in done.err
        assert "--git-dirty commit" in done.err
    work.git("checkout", "-q", "README")
    work.write("a", "of the user\n")
    assert "uncommitted changes: a\n" in work.rooda("resume", *agent).err
    assert work.rooda("resume", *agent, "--git-dirty", "commit").code == 0
    assert committed(work) == ["a", "new"]


def test_after_a_kill_all_uncommitted_files_are_the_users_unless_they_say_otherwise(
    work: GitWork,
) -> None:
    paused(work, signal.SIGKILL)
    agent = ("--ai-cmd", work.agent(SUCCESS, "other"))
    done = work.rooda("resume", *agent)
    assert done.code == 1
    assert "uncommitted changes: a\n" in done.err
    assert "stay out of commits until the agent changes them: new, notes\n" in done.err
    done = work.rooda("resume", *agent, "--git-dirty", "commit")
    assert done.code == 0
    assert "git.dirty is commit, so commits contain them: new, notes" in done.err
    assert committed(work) == ["a", "new", "notes"]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("sender", ["push", "publish"])
def test_what_the_user_changes_during_a_slow_push_stays_out_of_commits(
    work: GitWork, sender: str
) -> None:
    on, off = work.marker("on"), work.marker("off")
    slow = f"echo . > {on}; until [ -e {off} ]; do sleep 0.05; done"
    work.git_hook("pre-push", slow)
    flags = ("--push",) if sender == "push" else ("--publish", slow)
    agent = work.agents("echo one > one", "echo two > two; echo more >> both", SUCCESS)
    running = work.begin(agent, "-n", "3", "--commit", *flags)
    wait_for(on)
    work.write("notes", "mine\n")
    work.write("README", "half done\n")
    work.write("both", "mine\n")
    off.touch()
    done = running.finish()
    assert done.code == 0
    assert committed(work) == ["both", "two"]
    assert "commits leave them out until the agent changes them files=" in done.err
    assert done.err.count("Changed while no agent worked") == 1
    assert work.git("status", "--porcelain") == " M README\n?? notes"


def test_ralph_commits_everything_as_git_add_does(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        work.agent_does(f"touch new; echo a plan > .ralph/implementation_plan.md; {COMPLETE}")
        work.write("README", "half done\n")
        work.write("notes", "mine\n")
        assert work.ralph("plan").code == 0
        assert {"README", "new", "notes"} <= set(committed(work))


@pytest.mark.long
def test_commit_names_the_failed_iterations_whose_work_it_contains(work: GitWork) -> None:
    agent = work.agents("touch one; exit 1", "exit 1", "touch three; exit 1", "echo Four is done.")
    assert work.work(agent, "-n", "4", "--commit", "--failure-threshold", "9").code == 2
    assert committed(work) == ["one", "three"]
    message = work.git("log", "-1", "--format=%B").splitlines()
    assert message[:4] == ["Four is done", "", "with the work of iterations 1 and 3 (failed)", ""]
    assert message[4].startswith("Rooda-Run: ")
    commit = work.git("rev-parse", "--short=7", "HEAD")
    holds = f"{commit} also contains the work of iterations 1 and 3 (failed)"
    held = f"{commit}, the commit of iteration 4, contains its work"
    for number, words in ((1, held), (3, held), (4, holds)):
        assert words in work.rooda("show", str(number)).out
        assert f"Iteration {number}: {words}.\n" in work.rooda("diff", str(number)).err
    assert "contains" not in work.rooda("show", "2").out
    assert work.rooda("diff", "2").err == ""
    table = work.rooda("show").out
    assert table.count(f" in {commit} ") == 2
    assert f" {commit} (with 1, 3) " in table
    report = work.rooda("report", "--format", "markdown", "--output", "-").out
    assert report.count(f"| in `{commit}` |") == 2
    assert f"| `{commit}` (with 1, 3) |" in report
    page = work.rooda("report", "--output", "-").out
    assert page.count(held) == 2
    assert holds in page
    iterations = json.loads(work.rooda("show", "--json").out)["iterations"]
    assert [one["held_by"] for one in iterations] == [4, None, 4, None]
    assert iterations[0]["held_in"] == work.git("rev-parse", "HEAD")


def test_commit_does_not_name_failed_work_that_the_user_has_committed(work: GitWork) -> None:
    agent = work.agents("touch one; exit 1", "touch two")
    assert work.work(agent, "-n", "2", "--commit", "--failure-threshold", "1").code == 1
    work.commit("by hand")
    assert work.rooda("resume").code == 2
    assert committed(work) == ["two"]
    assert "with the work" not in work.git("log", "-1", "--format=%B")


# What the agents do, all but the last of which fail, and what the message of the last commit names.
LEFTOVERS = {
    "the agent that fails commits a part": (
        ("touch one; git add one; git commit -qm own; touch two; exit 1", "touch three"),
        "with the work of iteration 1 (failed)",
    ),
    "a later agent commits it": (
        ("touch one; exit 1", "git add -A; git commit -qm own; touch two"),
        "",
    ),
    "a later agent undoes it": (
        ("echo more >> README; exit 1", "git checkout -q README; touch two"),
        "",
    ),
    "a secret stays out": (("touch .env; exit 1", "touch two"), ""),
    "one of two is undone": (
        ("touch one; exit 1", "touch two; exit 1", "rm one; touch three"),
        "with the work of iteration 2 (failed)",
    ),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("case", LEFTOVERS)
def test_commit_names_only_failed_work_that_it_contains(work: GitWork, case: str) -> None:
    bodies, words = LEFTOVERS[case]
    last = len(bodies)
    flags = ("-n", str(last), "--commit", "--failure-threshold", "9")
    assert work.work(work.agents(*bodies), *flags).code == 2
    message = work.git("log", "-1", "--format=%B")
    assert [line for line in message.splitlines() if line.startswith("with ")] == [words][
        : len(words)
    ]
    iterations = json.loads(work.rooda("show", "--json").out)["iterations"]
    held = [one["number"] for one in iterations if one["held_by"] == last]
    assert held == iterations[-1]["commit"]["holds"]
    assert [f"iteration {number} " in words for number in held] == [True] * words.count("iteration")
