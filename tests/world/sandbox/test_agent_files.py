"""What an agent CLI finds in the sandbox, and what it can change of it."""

import json
import os
import sys

import pytest

from support.finished import Finished
from support.recorded import SUCCESS, versioned
from support.sandboxes import require_bwrap
from support.workspace import Workspace

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux"),
]


@pytest.fixture(autouse=True)
def _bwrap() -> None:
    require_bwrap()


def _run(workspace: Workspace, program: str, **variables: str) -> Finished:
    flags = ("--sandbox", "bwrap", "-n", "2", "--failure-threshold", "1")
    return workspace.work(program, *flags, env=variables)


def _as_claude(workspace: Workspace, *bodies: str) -> str:
    """Return an agent that rooda takes for claude, outside of the work tree."""
    script = workspace.agents(*bodies)
    place = workspace.write(str(workspace.home / "programs/claude"), f"#!/bin/sh\nexec {script}\n")
    place.chmod(0o755)
    return str(place)


def test_credentials_can_be_renewed_and_settings_cannot_be_changed(workspace: Workspace) -> None:
    home = workspace.home
    for name in ("settings.json", ".credentials.json", "plugins/mine.json", "history.jsonl"):
        workspace.write(str(home / ".claude" / name), "{}")
    script = f"""set -e
    cd ~/.claude
    test "$(ls -A | sort | tr '\\n' ' ')" = ".credentials.json settings.json "
    echo evil > settings.json || true
    rm -f settings.json || true
    echo renewed > .credentials.json
    test "$IS_SANDBOX" = 1
    {SUCCESS}"""
    done = _run(versioned(workspace), _as_claude(workspace, script))
    assert done.code == 0, done.err
    assert (home / ".claude/settings.json").read_text() == "{}"
    assert (home / ".claude/.credentials.json").read_text() == "renewed\n"


def test_set_uid_bits_of_the_login_and_of_writable_folders_are_cleared(
    workspace: Workspace,
) -> None:
    login, shared = workspace.home / ".claude/.credentials.json", workspace.home / "shared"
    workspace.write(str(login), "{}")
    shared.mkdir()
    script = f"touch {shared}/x; chmod 4755 {shared}/x ~/.claude/.credentials.json; {SUCCESS}"
    agent = _as_claude(versioned(workspace), script)
    done = _run(workspace, agent, ROODA_LOOP_SANDBOX_WRITABLE=str(shared))
    assert done.code == 0, done.err
    assert "Took away the set-uid and set-gid bits" in done.err
    assert [oct(one.stat().st_mode)[-4:] for one in (login, shared / "x")] == ["0755", "0755"]


def test_links_in_the_private_home_lead_nowhere(workspace: Workspace) -> None:
    """Assert that the next start makes no file where the link of an agent leads."""
    outside = workspace.home / "outside"
    outside.mkdir()
    workspace.write(str(workspace.home / ".claude/settings.json"), "mine")
    workspace.write(str(workspace.home / ".local/bin/tool"), "a program")
    # While bubblewrap mounts, it has the whole disk below this folder.
    plant = f"mv $1 $1.old && ln -s /oldroot{outside} $1"
    done = _run(
        versioned(workspace),
        _as_claude(
            workspace,
            f"plant() {{ {plant}; }}; set -e; plant ~/.claude; plant ~/.local; echo planted",
            f"set -e; cat ~/.claude/settings.json; cat ~/.local/bin/tool; {SUCCESS}",
        ),
    )
    assert done.code == 0, done.err
    assert not list(outside.iterdir())


def test_place_of_a_file_that_the_user_deleted_is_gone(workspace: Workspace) -> None:
    settings = workspace.write(str(workspace.home / ".claude/settings.json"), "mine")
    present, absent = "test -s ~/.claude/settings.json", "test ! -e ~/.claude/settings.json"
    versioned(workspace)
    for check in (present, absent):
        done = _run(workspace, _as_claude(workspace, f"set -e; {check}; {SUCCESS}"))
        assert done.code == 0, done.err
        settings.unlink(missing_ok=True)


def test_interpreter_and_certificates_of_the_user_are_there(workspace: Workspace) -> None:
    tools = workspace.home / "node-of-mine/bin"
    workspace.write(str(tools / "nodelike"), '#!/bin/sh\nexec /bin/sh "$@"\n').chmod(0o755)
    script = f'#!/usr/bin/env nodelike\nset -e\ncat "$NODE_EXTRA_CA_CERTS"\n{SUCCESS}\n'
    program = workspace.write(str(workspace.home / "programs/agent"), script)
    program.chmod(0o755)
    certificate = workspace.write(str(workspace.home / "company/ca.pem"), "a certificate\n")
    path = os.pathsep.join([os.environ["PATH"], str(tools)])
    # No file can have such a name: like a folder of another user, it is an error to ask for it.
    strange = {"PYENV_ROOT": f"/{'x' * 300}", "SSL_CERT_FILE": f"/{'y' * 300}"}
    variables = {"PATH": path, "NODE_EXTRA_CA_CERTS": str(certificate), **strange}
    done = _run(versioned(workspace), str(program), **variables)
    assert done.code == 0, done.err


@pytest.mark.real(rows=1)
@pytest.mark.skipif(os.geteuid() != 0, reason="claude refuses only root")
@pytest.mark.parametrize("kind,topics", [("bwrap", []), ("none", ["root"])])
def test_doctor_knows_that_claude_runs_as_root_in_a_sandbox(
    workspace: Workspace, kind: str, topics: list[str]
) -> None:
    _as_claude(workspace, "echo 2.1.197")
    path = os.pathsep.join([str(workspace.home / "programs"), os.environ["PATH"]])
    workspace.config(f"loop:\n  sandbox: {kind}\n  ai_cmd_alias: claude\n")
    done = workspace.rooda("doctor", "--json", env={"PATH": path, "IS_SANDBOX": None})
    (found,) = [one for one in json.loads(done.out)["agents"] if one["name"] == "claude"]
    assert [one["topic"] for one in found["findings"] if one["topic"] == "root"] == topics
