"""Run the examples in the docs and write their real output into the pages: part of `make docs`.

A block of the language `console` has lines `$ command`, each followed by what the command prints.
The blocks of a page run in order, in one scratch repository, in which `claude` is a scripted agent
(tools/scripted_agent.py). `<!-- run: command -->` runs a command that the page does not show.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools import scripted_agent

DOCS = Path(__file__).parent.parent / "docs"
_STEP = re.compile(
    r"<!-- run: (?P<hidden>.*?) -->|^```console\n(?P<block>.*?)^```", re.MULTILINE | re.DOTALL
)
# Differs from run to run: names of runs, commits, times, durations, sizes.
_CHANGING = re.compile(
    r"\d{8}-\d{6}-\w{6}|\b[0-9a-f]{7,40}\b|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\d\d:\d\d\b"
    r"|\b\d+(?:\.\d+)?(?:ms|s|m|h)\b|\bpid \d+|[\d,.]+ (?:bytes|B|kB|MB)\b"
    r"|(?<=^Time ) .*"  # of a run: a short part of its time is left out
)


def pages() -> list[Path]:
    """Return the pages that have examples."""
    return [page for page in sorted(DOCS.rglob("*.md")) if "```console" in page.read_text("utf-8")]


def updated(text: str) -> str:
    """Return the text of a page with what its examples print now."""
    with tempfile.TemporaryDirectory(prefix="rooda-examples-") as name:
        return _updated(text, _Scratch(Path(name)))


def stable(text: str) -> list[str]:
    """Return the lines of a page without what differs from run to run."""
    # Columns are as wide as their longest value, so the number of spaces differs too.
    return [re.sub(r" +|-{3,}", " ", _CHANGING.sub("?", line)) for line in text.splitlines()]


def _updated(text: str, scratch: "_Scratch") -> str:
    def replace(step: re.Match[str]) -> str:
        if step["hidden"] is not None:
            scratch.run(step["hidden"])
            return step[0]
        return f"```console\n{''.join(scratch.example(step['block']))}```"

    return _STEP.sub(replace, text)


class _Scratch:
    """A home with the project of the scripted agent, in which commands run."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = self.home / "greet"
        bin_ = self.home / ".local" / "bin"
        bin_.mkdir(parents=True)
        self.env = self._environ(bin_)
        agent = bin_ / "claude"
        script = shlex.join([sys.executable, scripted_agent.__file__])
        agent.write_text(f'#!/bin/sh\nexec {script} "$@"\n')
        agent.chmod(0o755)
        (self.home / ".gitconfig").write_text("[user]\n\tname = You\n\temail = you@example.org\n")
        # In a process of its own, because git must see the new home.
        make = "from pathlib import Path; from tools import scripted_agent as agent; "
        make += f"agent.create_project(Path({str(self.project)!r}))"
        root = DOCS.parent
        subprocess.run([sys.executable, "-c", make], cwd=root, env=self.env, check=True)

    def _environ(self, bin_: Path) -> dict[str, str]:
        # `make docs` and the tests set variables that would change what the examples print.
        dropped = ("ROODA_", "XDG_", "CI", "GIT_", "NO_COLOR", "COV", "MAKE", "MFLAGS")
        base = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
        path = os.pathsep.join([str(bin_), sysconfig.get_path("scripts"), base["PATH"]])
        return base | {"HOME": str(self.home), "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, command: str) -> str:
        """Run a command, and return what a terminal would show."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout.replace(str(self.home), "/home/you")

    def example(self, block: str) -> Iterator[str]:
        """Yield each command of a block and what it prints."""
        for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
            output = self.run(command)
            yield f"$ {command}\n"
            yield output if not output or output.endswith("\n") else f"{output}\n"


def main() -> None:
    """Write every page whose examples print something else now."""
    for page in pages():
        old = page.read_text(encoding="utf-8")
        new = updated(old)
        if stable(old) != stable(new):
            page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
