"""Links in the place of a log file: rooda writes to no file outside of the work tree for one."""

import os
from pathlib import Path

import pytest

from rooda.views.terminal.log import LogFile
from support.sandboxes import require_bwrap
from support.workspace import Workspace

SUCCESS = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return a file of the user outside of the work tree."""
    file = tmp_path / "victim/profile"
    file.parent.mkdir()
    file.write_text("of the user\n")
    return file


@pytest.mark.parametrize("name", ["run.log", "logs/profile"])
def test_log_file_behind_a_link_out_of_the_work_tree_is_an_error(
    workspace: Workspace, victim: Path, name: str
) -> None:
    (workspace.path / "run.log").symlink_to(victim)
    (workspace.path / "logs").symlink_to(victim.parent)
    for flags in ((), ("--dry-run",)):
        done = workspace.work("true", "--log-file", name, *flags)
        assert done.code == 1
        assert f"{name}: a symbolic link leads out of the work tree" in done.err + done.out
    assert victim.read_text() == "of the user\n"


@pytest.mark.real
def test_session_log_behind_a_link_out_of_the_work_tree_is_a_warning(
    workspace: Workspace, victim: Path
) -> None:
    (workspace.path / "run.log").symlink_to(victim)
    done = workspace.work(SUCCESS, "--session-log", "run.log")
    assert done.code == 0
    assert "run.log can't be written: a symbolic link leads out of the work tree" in done.err
    assert victim.read_text() == "of the user\n"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("flag", ["--log-file", "--session-log"])
def test_link_that_the_agent_puts_in_place_of_a_log_is_replaced(
    workspace: Workspace, victim: Path, flag: str
) -> None:
    agent = workspace.agent(f"rm run.log; ln -s '{victim}' run.log; {SUCCESS}")
    done = workspace.work(agent, flag, "run.log")
    assert done.code == 0, done.err
    assert victim.read_text() == "of the user\n"
    log = workspace.path / "run.log"
    assert not log.is_symlink()
    assert "SUCCESS" in log.read_text()


def test_link_that_appears_while_the_log_is_opened_again_is_not_followed(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is at work while rooda writes the log."""
    folder, real = tmp_path / "logs", os.path.realpath
    folder.mkdir()
    log = LogFile(folder / "profile")
    (folder / "profile").unlink()

    def looked_at(path: Path) -> str:
        found = real(path)
        folder.rename(tmp_path / "away")
        folder.symlink_to(victim.parent)
        return found

    monkeypatch.setattr(os.path, "realpath", looked_at)
    with pytest.raises(OSError, match="Not a directory"):
        log.write("words of the agent")
    log.close()
    assert victim.read_text() == "of the user\n"


@pytest.mark.real
def test_folder_of_a_log_that_the_agent_replaces_by_a_link_is_not_followed(
    workspace: Workspace, victim: Path
) -> None:
    (workspace.path / "logs").mkdir()
    agent = workspace.agent(f"rm -r logs; ln -s '{victim.parent}' logs; {SUCCESS}")
    done = workspace.work(agent, "--log-file", "logs/profile")
    assert done.code == 0, done.err
    assert "a symbolic link now leads elsewhere" in done.err
    assert victim.read_text() == "of the user\n"


@pytest.mark.real
def test_log_behind_a_link_to_a_folder_of_git_is_refused(workspace: Workspace) -> None:
    """A sandbox makes hooks and settings of git read-only for the agent that makes the link."""
    hook = workspace.write(".git/hooks/post-commit", "true\n")
    (workspace.path / "run.log").symlink_to(hook)
    (workspace.path / "logs").symlink_to(hook.parent)
    for name in ("run.log", "logs/post-commit"):
        done = workspace.work(SUCCESS, "--log-file", name)
        assert done.code == 1
        assert f"{name}: a symbolic link leads out" in done.err
        done = workspace.work(SUCCESS, "--session-log", name)
        assert f"{Path(name).name} can't be written: a symbolic link leads out" in done.err
    assert hook.read_text() == "true\n"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("flag", ["--log-file", "--session-log", "--report"])
def test_link_in_another_work_tree_of_the_agent_leads_no_file_out(
    workspace: Workspace, victim: Path, flag: str
) -> None:
    """The agent works in another tree than the user, or may write to another folder."""
    require_bwrap()
    other = workspace.sibling("other")
    name = f"{victim.name}.md"
    (other.path / "logs").symlink_to(victim.parent)
    for where in (
        ("--working-dir", str(other.path)),
        ("--sandbox", "bwrap", "--sandbox-writable", str(other.path)),
    ):
        done = workspace.work(SUCCESS, *where, flag, f"{other.path}/logs/{name}")
        assert "link" in done.err
        assert [one.name for one in victim.parent.iterdir()] == [victim.name]


@pytest.mark.real
def test_log_file_may_be_a_link_within_the_work_tree_or_to_a_device(workspace: Workspace) -> None:
    (workspace.path / "latest.log").symlink_to("first.log")
    assert workspace.work(SUCCESS, "--log-file", "latest.log").code == 0
    assert "Starting procedure" in (workspace.path / "first.log").read_text()
    done = workspace.work(SUCCESS, "--log-file", "/dev/stdout")
    assert done.code == 0, done.err
    assert "Starting procedure" in done.out
