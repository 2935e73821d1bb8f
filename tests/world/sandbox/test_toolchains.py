"""npm, uv, cargo and go in the sandbox: they work, and their caches live in the private HOME."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from support.recorded import SUCCESS, asked, versioned
from support.sandboxes import require_bwrap
from support.toolchains import ANSWER, TOOLCHAINS, Toolchain
from support.workspace import Workspace

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux"),
]
_SECRET = "a secret of the user"


def _script(tool: Toolchain, build: str, *, expects_cache: bool) -> str:
    """Build, and fail if a file of the user's home is there."""
    absent = [f"test ! -e ~/{shlex.quote(path)}" for path in tool.secrets]
    cache = f"test {'' if expects_cache else '!'} -e ~/{tool.cache}"
    return "\n".join(["set -e", *absent, cache, build, f"test -e ~/{tool.cache}"])


def _files(home: Path) -> set[Path]:
    return {path for path in home.rglob("*") if not path.is_dir() or path.is_symlink()}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", TOOLCHAINS)
def test_cache_is_private_and_kept_between_iterations(name: str, workspace: Workspace) -> None:
    require_bwrap()
    tool = TOOLCHAINS[name]
    program = tool.find(workspace.home)
    if program is None:
        pytest.skip(f"{name} is not installed")
    tool.prepare(versioned(workspace))
    for path in tool.secrets:
        workspace.write(str(workspace.home / path), _SECRET)
    before = _files(workspace.home)
    agent = workspace.agents(
        _script(tool, tool.first, expects_cache=False),
        f"{_script(tool, tool.again, expects_cache=True)}\n{SUCCESS}",
    )
    path = os.pathsep.join([str(Path(program).parent), os.environ["PATH"]])
    done = workspace.rooda(
        *("work", "--ai-cmd", agent, "--sandbox", "bwrap", "-n", "2", "--failure-threshold", "1"),
        env={"PATH": path},
        timeout=100,
    )
    assert done.code == 0, done.err
    run = asked(workspace.rooda, "show")
    outputs = [one["result"]["stdout"] for one in run["iterations"]]
    assert len(outputs) == 2
    assert all(ANSWER in output for output in outputs)
    private = {found for found in _files(workspace.home) - before if "rooda" not in found.parts}
    assert not private, "the tool wrote into the user's own home"
