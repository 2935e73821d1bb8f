"""Install the agent programs for the tests that run them: `python -m tools.install_agents`.

They go to a folder of their own in the project, in the versions that its package.json names. Each
of them names the versions of its own native parts, so a lock file would add nothing but a list of
platforms. Nothing is done when they are there already, nor where npm is missing.
"""

import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_WANTED = _ROOT / "tests/real_agents/package.json"
_FOLDER = _ROOT / ".agents"
_DONE = _FOLDER / "installed.json"
# The install scripts of all other packages build or fetch files that the tests do not need.
_SCRIPTS = ("@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs")
_QUIET = ("--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")


def main() -> int:
    """Install what is wanted; 0 unless that fails."""
    wanted = _WANTED.read_bytes()
    if _DONE.exists() and _DONE.read_bytes() == wanted:
        return 0
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        _tell("npm is missing: the agents are not installed, and their tests are skipped")
        return 0
    _tell(f"Installing claude, codex, gemini and opencode in {_FOLDER.name} (about 1 GB) ...")
    _begin(wanted)
    commands = [[npm, "install", "--ignore-scripts", *_QUIET]]
    commands += [[node, str(_FOLDER / "node_modules" / script)] for script in _SCRIPTS]
    for command in commands:
        if code := subprocess.run(command, cwd=_FOLDER, check=False).returncode:
            _tell(f"{' '.join(command)} failed with exit code {code}")
            return 1
    _DONE.write_bytes(wanted)
    return 0


def _begin(wanted: bytes) -> None:
    """An empty folder that git doesn't see."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir()
    (_FOLDER / ".gitignore").write_text("*\n")
    (_FOLDER / "package.json").write_bytes(wanted)


def _tell(words: str) -> None:
    sys.stderr.write(f"{words}\n")


if __name__ == "__main__":
    sys.exit(main())
