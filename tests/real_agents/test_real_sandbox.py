"""Real agent programs in the sandbox: they work, and change nothing of the user's own home."""

import json
from pathlib import Path

import pytest

from real_agents.bench import AT_ONCE, SANDBOXED, Bench, Ran, only
from real_agents.programs import PROGRAMS
from support.recorded import git

pytestmark = pytest.mark.timeout(150)

_each = only(*(name + SANDBOXED for name in PROGRAMS))
_SECRET = "a secret of the user"
_CREDENTIALS = {
    "claude": ".claude/.credentials.json",
    "codex": ".codex/auth.json",
    "gemini": ".gemini/google_accounts.json",
    "opencode": ".local/share/opencode/auth.json",
}
# Code that the program would run, if the sandbox had it.
_CODE = {
    "claude": ".claude/plugins/mine/plugin.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/extensions/mine/gemini-extension.json",
    "opencode": ".config/opencode/plugin/mine.js",
}


def _contents(home: Path) -> dict[str, bytes]:
    """Return the user's files, without those of rooda."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and "rooda" not in path.parts
    }


def _assert_tool_ran(bench: Bench, ran: Ran) -> None:
    """Assert that the tool really ran; a broken sandbox ends with exit code 0 and a promise."""
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert (bench.workspace.path / "made.txt").read_text() == "made\n"
    assert git(bench.workspace, "log", "-1", "--format=%s by %an") == "Made by a tool by Somebody"


@_each
def test_tool_commits_and_the_home_of_the_user_stays_as_it_is(bench: Bench) -> None:
    home = bench.workspace.home
    bench.environment("commit")  # writes the settings of the program
    for path in (_CODE[bench.program.name], ".ssh/id_ed25519", ".netrc"):
        bench.workspace.write(str(home / path), _SECRET)
    bench.workspace.write(str(home / _CREDENTIALS[bench.program.name]), "{}")
    before = _contents(home)
    secret = {"DEPLOY_TOKEN": _SECRET}
    ran = bench.run("commit", *AT_ONCE, env=secret)
    _assert_tool_ran(bench, ran)
    inside = (bench.workspace.path / "env.txt").read_text()
    assert _SECRET not in inside
    assert f"HOME={home}\n" in inside
    assert _contents(home) == before


def _ask_for_own_sandbox(bench: Bench) -> str | None:
    """Set the program up to use its own sandbox; return the command, if that takes a flag."""
    home = bench.workspace.home
    match bench.program.name:
        case "claude":
            sandbox = {"enabled": True, "failIfUnavailable": True}
            settings = json.dumps({"sandbox": sandbox})
            bench.workspace.write(str(home / ".claude/settings.json"), settings)
        case "gemini":
            # The flag, because the test writes the settings itself.
            return "gemini --yolo --skip-trust --sandbox -o stream-json"
        case "codex":
            return "codex exec --sandbox workspace-write --skip-git-repo-check --json -"
    return None


@only(*(name + SANDBOXED for name in ("claude", "codex", "gemini")))
def test_sandbox_of_the_program_itself_is_off(bench: Bench) -> None:
    command = _ask_for_own_sandbox(bench)
    ran = bench.run("commit", *AT_ONCE, command=command)
    _assert_tool_ran(bench, ran)
