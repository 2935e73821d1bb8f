"""What programs in the sandbox leave behind does not act outside: it is removed, or refused."""

import os
import shutil
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import PROCEDURE, Workspace

pytestmark = [
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        found.write("lib/.claude/settings.json", "{}\n")
        found.commit()
        yield found


@pytest.mark.real
def test_changed_settings_fail_the_iteration_and_nothing_leaves_the_tree(work: GitWork) -> None:
    """Then the agent puts them back, and a check of the user plants a link before the commit."""
    agent = work.agent(
        "cat > prompt.txt\n"
        "if test -e b; then echo '{}' > lib/.claude/settings.json; touch c\n"
        "else echo '{\"hooks\": 1}' > lib/.claude/settings.json; touch b; fi"
    )
    verify = "touch ../victim 2>/dev/null; ln -sf ../../../victim .git/logs/HEAD; true"
    victim = work.path.parent / "victim"
    victim.write_text("mine\n")
    before = work.git("rev-parse", "HEAD")
    flags = ("-n", "2", "--sandbox", "bwrap", "--commit", "--push", "--verify", verify)
    done = work.work(agent, *flags, "--no-verify-baseline")

    first, second = work.record()
    assert first["status"] == "failed"
    assert first["kind"] == "unsafe-tree"
    assert "lib/.claude/settings.json" in first["reason"]
    assert (first["commit"], first["push"], first["push_failed"]) == (None, None, None)
    (found,) = first["unsafe_tree"]
    assert (found["finding"], found["action"]) == ("cli-settings", "refused")
    assert "ERROR: Nothing is committed or pushed: settings of agent CLIs" in done.err

    assert second["status"] == "completed"
    assert second["unsafe_tree"] == [], "the link is in the git folder of the agent"
    assert not (work.path / ".git/logs/HEAD").is_symlink()
    assert victim.read_text() == "mine\n", "git wrote no log through the link"
    assert second["commit"] is not None
    assert work.git("rev-parse", "main", cwd=work.remote) == second["commit"]["commit"] != before
    prompt = (work.path / "prompt.txt").read_text()
    assert "because these must not change" in prompt
    assert "lib/.claude/settings.json" in prompt
    why = work.rooda("why", "1").out
    assert "Kind: unsafe-tree" in why


@pytest.mark.real
def test_agent_that_deletes_its_git_folder_fails_and_the_user_keeps_the_repository(
    work: GitWork,
) -> None:
    agent = work.agent(
        "cat > prompt.txt; rm -rf .git 2> deleted; echo '<promise>SUCCESS</promise>'"
    )
    before = work.git("for-each-ref", "refs/heads", "refs/tags")
    done = work.work(agent, "-n", "2", "--sandbox", "bwrap")
    assert done.code == 2, done.err
    assert work.git("for-each-ref", "refs/heads", "refs/tags") == before
    first, second = work.record()
    assert (first["status"], second["kind"]) == ("failed", "unsafe-tree")
    assert "the agent has deleted or damaged its git folder" in first["reason"]
    assert "commit them again" in (work.path / "prompt.txt").read_text()


@pytest.mark.real
def test_agent_that_deletes_a_shared_repository_fails_and_the_user_reads_why(
    work: GitWork,
) -> None:
    work.git("config", "include.path", os.devnull)  # then programs work in the user's own folder
    agent = work.agent(
        "cat > prompt.txt; rm -rf .git 2> deleted; echo '<promise>SUCCESS</promise>'"
    )
    done = work.work(agent, "-n", "2", "--sandbox", "bwrap")
    assert done.code == 2, done.err
    first, second = work.record()
    assert (first["status"], second["kind"]) == ("failed", "unsafe-tree")
    assert first["reason"] == "the repository is damaged, because commits are missing: .git"
    assert "ERROR: Nothing is committed or pushed: missing commits" in done.err
    assert "The repository is damaged" in (work.path / "prompt.txt").read_text()


@pytest.mark.real
def test_without_a_sandbox_nothing_is_checked(work: GitWork) -> None:
    agent = work.agent("mkdir .claude; echo '{}' > .claude/settings.json; ln -s x .git/logs/new")
    work.work(agent, "-n", "1", "--commit")
    assert work.record()[0]["unsafe_tree"] == []
    assert (work.path / ".claude/settings.json").exists()


@pytest.mark.real
def test_link_in_place_of_the_agent_shows_no_folder_of_the_user(work: GitWork) -> None:
    private = work.home / "private"
    private.mkdir()
    (private / "secret").write_text("a secret\n")
    (private / "run.sh").write_text("#!/bin/sh\ncat $(dirname $(readlink -f $0))/secret\n")
    (private / "run.sh").chmod(0o755)
    work.write("agent.sh", f"#!/bin/sh\necho started\nln -sf {private}/run.sh agent.sh\n").chmod(
        0o755
    )
    work.work("./agent.sh", "-n", "2", "--sandbox", "bwrap")
    assert len(work.record()) == 2
    first, second = (work.kept(number) / "stdout.log" for number in (1, 2))
    assert first.read_text() == "started\n"
    assert not second.exists() or "secret" not in second.read_text()


SECRET = "PRIVATE-KEY-4711"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("way", ["prompt", "context", "folder", "record", "loop"])
def test_link_in_place_of_a_prompt_file_gives_the_agent_no_file_of_the_user(
    work: GitWork, way: str
) -> None:
    key = work.path.parent / "secret" / "act.md"
    key.parent.mkdir()
    key.write_text(f"{SECRET} <promise>SUCCESS</promise>\n")
    words = "do it, then say <promise>SUCCESS</promise>\n"
    work.write("prompts/act.md", words)
    work.commit()
    file = "prompts/act.md"
    plant = f"rm {file}; ln -s {key} {file}"
    if way == "folder":
        plant = f"rm -r prompts; ln -s {key.parent} prompts"
    if way == "record":
        plant = f"rm {file}; ln -s {work.state}/runs/one/0/verify.log {file}"
    agent = work.agent(f"cat >> got.txt; {plant}; date +%N > changed")
    common = ("--sandbox", "bwrap", "--ai-cmd", agent, "--max-iterations", "2")
    if way == "loop":
        done = work.rooda("loop", "prompts/act.md", *common)
    elif way == "context":
        work.settings()
        done = work.rooda("work", "--context", "prompts/act.md", *common)
    else:
        work.global_config(PROCEDURE)
        done = work.rooda(
            "work", "--act", "prompts/act.md", *common, "--run-id", "one", "--verify", "true"
        )
    assert "which the sandbox does not show" in done.err
    got = (work.path / "got.txt").read_text()
    assert "do it" in got, "the first iteration had its prompt"
    assert SECRET not in got
    again = work.rooda("loop", file, *common)
    assert again.code == 1
    assert "which the sandbox does not show" in again.err, "the next run is refused at its start"


@pytest.mark.real
def test_link_to_itself_in_place_of_a_prompt_ends_the_run_with_the_reason(work: GitWork) -> None:
    work.write("act.md", "do it\n")
    agent = work.agent("cat > /dev/null; rm act.md; ln -s act.md act.md; date +%N > changed")
    flags = ("--sandbox", "bwrap", "--ai-cmd", agent, "--max-iterations", "2")
    done = work.rooda("loop", "act.md", *flags)
    assert done.code == 1, done.err
    assert "act.md can't be read: Too many levels of symbolic links" in done.err


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("flag", ["--working-dir", "--sandbox-readable", "--sandbox-writable"])
def test_link_in_place_of_a_folder_of_the_sandbox_shows_no_folder_of_the_user(
    work: GitWork, flag: str
) -> None:
    private = work.path.parent / "private"
    private.mkdir()
    (private / "key").write_text(SECRET)
    work.write("sub/file", "x\n")
    work.commit()
    common = ("--sandbox", "bwrap", flag, str(work.path / "sub"), "--max-iterations", "1")
    plant = work.agent(f"cd {work.path}; rm -r sub; ln -s {private} sub")
    if flag == "--working-dir":
        assert work.work(plant, *common).code == 2
    else:  # the sandbox mounts it, so that the agent can't replace it in this run
        shutil.rmtree(work.path / "sub")
        (work.path / "sub").symlink_to(private)
    spy = work.agent(f"cat {work.path}/sub/key > {work.path}/got.txt", "spy")
    done = work.work(spy, *common)
    assert done.code == 1, done.err
    assert f"leads to {private} by a link that an agent may have made" in done.err
    assert not (work.path / "got.txt").exists()


@pytest.mark.real
def test_link_in_a_writable_folder_that_was_named_by_a_link_gives_no_file_of_the_user(
    work: GitWork,
) -> None:
    beside = work.path.parent
    (beside / "real").mkdir()
    (beside / "shared").symlink_to("real")
    (beside / "key").write_text(SECRET)
    prompt = beside / "shared/act.md"
    prompt.write_text("do it\n")
    agent = work.agent(f"cat >> {work.path}/got.txt; ln -sf {beside}/key {beside}/shared/act.md")
    flags = ("--sandbox", "bwrap", "--sandbox-writable", str(beside / "shared"))
    done = work.rooda("loop", str(prompt), *flags, "--ai-cmd", agent, "--max-iterations", "2")
    assert done.code == 1, done.err
    assert "which the sandbox does not show" in done.err
    got = (work.path / "got.txt").read_text()
    assert "do it" in got
    assert SECRET not in got


@pytest.mark.real
def test_key_in_the_command_of_the_sandbox_is_not_printed(work: GitWork) -> None:
    command = f"env --api-key {SECRET}"
    flags = ("--sandbox", "command", "--sandbox-command", command, "--dry-run")
    done = work.work(work.agent("true"), *flags)
    assert "--api-key ..." in done.out + done.err
    assert SECRET not in done.out + done.err
