"""`git.push` through the installed command: a push after each iteration, and reported failures."""

import http.server
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace, alive, wait_for

pytestmark = pytest.mark.real

COMMIT = "git commit -q --allow-empty -m"
FAILED = "WARN: Push failed; "


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def pushed(work: GitWork) -> list[bool]:
    """Return, for each iteration of the record, whether its push succeeded."""
    return [one["push"] is not None for one in work.record()]


def refusals(work: GitWork) -> list[str]:
    """Return the errors of the failed pushes."""
    return [one["push_failed"]["error"] for one in work.record() if one["push_failed"]]


def remote_is_empty(work: GitWork) -> bool:
    return work.git("for-each-ref", cwd=work.remote) == ""


def test_each_iteration_is_pushed_and_the_first_sets_the_upstream(work: GitWork) -> None:
    """A failed iteration is pushed too, and so are commits that the agent made."""
    agent = work.agents(f"{COMMIT} one", f"{COMMIT} two; exit 7", "touch three")
    done = work.work(agent, "-n", "3", "--push", "--commit")
    assert done.code == 2
    assert work.subjects(work.remote) == ["the beginning", "one", "two", "work: iteration 3"]
    assert work.git("rev-parse", "--abbrev-ref", "main@{upstream}") == "origin/main"
    assert work.git("rev-parse", "main@{upstream}") == work.git("rev-parse", "main")
    assert pushed(work) == [True, True, True]
    assert work.record()[2]["push"] == {
        "iteration": 3,
        "remote": "origin",
        "branch": "main",
        "commit": work.git("rev-parse", "main"),
    }
    assert "Pushed" not in done.err, "only what goes wrong needs a line"
    tags = work.git("for-each-ref", "--format=%(refname)", cwd=work.remote)
    assert tags == "refs/heads/main", "snapshots are not pushed"


def test_remote_that_is_ahead_is_reported_and_not_overwritten(work: GitWork) -> None:
    work.git("push", "-q", "-u", "origin", "main")
    colleague = work.path.parent / "colleague"
    work.git("clone", "-q", str(work.remote), str(colleague))
    work.git("commit", "-q", "--allow-empty", "-m", "by a colleague", cwd=colleague)
    work.git("push", "-q", cwd=colleague)
    done = work.work(work.agent(f"{COMMIT} mine"), "-n", "1", "--push")
    assert done.code == 2, "the iteration itself succeeded"
    assert FAILED in done.err
    assert "The remote has commits that are not here: git pull" in done.err
    assert "[rejected]" in refusals(work)[0]
    assert work.record()[0]["status"] == "completed"
    assert work.subjects(work.remote) == ["the beginning", "by a colleague"]


def test_next_iteration_pushes_what_a_failed_push_left(work: GitWork) -> None:
    away = f"{work.remote}.away"
    agent = work.agents(
        f"{COMMIT} one; mv {work.remote} {away}",
        f"mv {away} {work.remote}; git remote rename origin elsewhere",
        "git remote rename elsewhere origin; git remote add other nowhere; git remote remove origin"
        "; git remote remove other",
        f"git remote add origin {work.remote}; git checkout -q --detach",
        f"git switch -q main; {COMMIT} five",
    )
    done = work.work(agent, "-n", "5", "--push")
    assert done.code == 2
    assert pushed(work) == [False, True, False, False, True]
    gone, nowhere, detached = refusals(work)
    assert "does not appear to be a git repository" in gone
    assert nowhere == "there is no remote to push to"
    assert detached == "HEAD is detached: there is no branch to push"
    assert done.err.count(FAILED) == 3
    assert all(words in done.err for words in (nowhere, detached))
    assert work.subjects(work.remote) == ["the beginning", "one", "five"]


def test_output_of_a_failing_pre_push_hook_is_quoted(work: GitWork) -> None:
    work.git_hook("pre-push", "test -e neat || { echo 'guard: not neat' >&2; exit 1; }")
    done = work.work(work.agents("exit 0", "touch neat"), "-n", "2", "--push")
    assert pushed(work) == [False, True]
    assert "    | guard: not neat" in done.err
    assert [one["failures_after"] for one in work.record()] == [0, 0]


def test_timeout_kills_a_hanging_push_and_its_whole_process_tree(work: GitWork) -> None:
    work.git_hook("pre-push", f"echo $$ > {work.marker('hook.pid')}; exec sleep 60")
    work.settings(git={"push": True, "push_timeout": "3s"})
    assert work.work("true", "-n", "1").code == 2
    assert not alive(int(wait_for(work.marker("hook.pid"))))
    (refusal,) = refusals(work)
    assert refusal.startswith("timed out after 3s")  # git may append its own error
    assert remote_is_empty(work)


def test_ssh_cannot_ask_for_a_password(work: GitWork) -> None:
    login = work.script(
        "ssh",
        'if read answer < /dev/tty; then echo asked > "$0.asked"; fi\n'
        'echo "askpass: $SSH_ASKPASS_REQUIRE $(cat < /dev/null)" > "$0.seen"\n'
        "echo 'git@example.org: Permission denied (publickey,password).' >&2; exit 255",
    )
    work.git("remote", "set-url", "origin", "git@example.org:user/project.git")
    work.git("config", "core.sshCommand", login)
    done = work.work("true", "-n", "1", "--push")
    assert done.code == 2
    assert work.marker("ssh.seen").read_text() == "askpass: never \n", (
        "the ssh command of the user's git config ran"
    )
    assert not work.marker("ssh.asked").exists()
    assert "Give git a key that needs no question (ssh-add)" in done.err


class _Unauthorized(http.server.BaseHTTPRequestHandler):
    """Answers each request with 401 and asks for a password."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="a test"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def locked_server() -> Iterator[str]:
    """Yield the address of a local server that refuses each request with 401."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Unauthorized) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/project.git"
        finally:
            server.shutdown()
            thread.join()


def test_git_cannot_ask_for_a_password(work: GitWork) -> None:
    asks = work.script("asks", f"echo asked >> {work.marker('asked')}; echo secret")
    work.git("config", "core.askPass", asks)
    with locked_server() as address:
        work.git("remote", "set-url", "origin", address)
        env = {"GIT_ASKPASS": asks, "SSH_ASKPASS": asks}
        done = work.work("true", "-n", "1", "--push", env=env)
    assert done.code == 2
    assert not work.marker("asked").exists()
    assert FAILED in done.err
    assert "Give git credentials that need no question" in done.err


def test_unreachable_remote_is_reported(work: GitWork) -> None:
    with locked_server() as address:
        pass  # the server is closed: nothing listens at the address any more
    work.git("remote", "set-url", "origin", address)
    done = work.work("true", "-n", "1", "--push")
    assert done.code == 2
    assert "127.0.0.1" in refusals(work)[0]


def test_interrupted_iteration_is_not_pushed(work: GitWork) -> None:
    running = work.begin(
        work.agent(f"{COMMIT} half; echo $$ > {work.marker('agent.pid')}; exec sleep 60"), "--push"
    )
    wait_for(work.marker("agent.pid"))
    running.signal(signal.SIGINT)
    assert running.finish().code == 130
    assert work.subjects() == ["the beginning", "half"]
    assert remote_is_empty(work)


def test_ctrl_c_during_a_push_ends_the_run(work: GitWork) -> None:
    work.git_hook("pre-push", f"echo $$ > {work.marker('hook.pid')}; exec sleep 60")
    running = work.begin("true", "--push")
    hook = int(wait_for(work.marker("hook.pid")))
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert not alive(hook)
    assert FAILED not in done.err
    assert done.err.count("Received SIGINT") == 1
    assert [one["status"] for one in work.record()] == ["completed"]
    assert remote_is_empty(work)
