"""Prompts of several megabytes, read at once, last or never, with both kinds of capture."""

import hashlib

import pytest

from support.children import Nursery
from support.workspace import Workspace

pytestmark = pytest.mark.real

FIVE_MEGABYTES = 5_000_000
LINE = "a line of the context, with an umlaut: ü\n"
BOTH = pytest.mark.parametrize("capture", ["file", "pipe"])
SUCCESS = 'os.write(1, b"\\n<promise>SUCCESS</promise>\\n")'
# Records the size and hash of its input, and checks for the end of the file.
READS = """
import hashlib, os, sys
def read():
    pieces = []
    while piece := os.read(0, 1 << 20):
        pieces.append(piece)
    text = b"".join(pieces)
    assert os.read(0, 1) == b""
    with open("read", "w") as file:
        file.write(f"{len(text)} {hashlib.sha256(text).hexdigest()}")
"""
PRINTS = f"""
rest = {FIVE_MEGABYTES}
while rest:
    rest -= os.write(rest % 2 + 1, b"x" * min(rest, 65_537))
"""


def run(workspace: Workspace, nursery: Nursery, body: str, capture: str) -> bytes:
    """Run an agent with a prompt of more than five megabytes; return the prompt."""
    workspace.write("context.md", LINE * (FIVE_MEGABYTES // len(LINE.encode()) + 1))
    command = workspace.python_agent(body)
    running = nursery.start(
        workspace, "work", "--ai-cmd", command, "--context", "context.md", "--capture", capture,
        "-n", "1",
    )  # fmt: skip
    done = running.finish(timeout=30)
    assert done.code == 0, done.err
    prompt = (workspace.kept() / "prompt.md").read_bytes()
    assert len(prompt) > FIVE_MEGABYTES
    assert LINE.encode() * 1000 in prompt
    return prompt


def read_by_agent(workspace: Workspace) -> tuple[int, str]:
    size, digest = (workspace.path / "read").read_text().split()
    return int(size), digest


def identity(prompt: bytes) -> tuple[int, str]:
    return len(prompt), hashlib.sha256(prompt).hexdigest()


def printed(workspace: Workspace) -> int:
    kept = workspace.kept()
    return sum((kept / name).read_bytes().count(b"x") for name in ("stdout.log", "stderr.log"))


@pytest.mark.real(rows=1)
@BOTH
def test_prompt_that_is_read_at_once_is_complete(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    prompt = run(workspace, nursery, f"{READS}\nread()\n{PRINTS}\n{SUCCESS}", capture)
    assert read_by_agent(workspace) == identity(prompt)
    assert printed(workspace) == FIVE_MEGABYTES


@pytest.mark.real(rows=1)
@BOTH
def test_prompt_that_is_read_last_is_complete(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    prompt = run(workspace, nursery, f"{READS}\n{PRINTS}\nread()\n{SUCCESS}", capture)
    assert read_by_agent(workspace) == identity(prompt)
    assert printed(workspace) == FIVE_MEGABYTES


@pytest.mark.long
@BOTH
def test_prompt_that_is_never_read_blocks_nothing(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    run(workspace, nursery, f"import os\n{PRINTS}\n{SUCCESS}", capture)
    assert printed(workspace) == FIVE_MEGABYTES


def test_echoed_prompt_gives_no_signal(workspace: Workspace, nursery: Nursery) -> None:
    """The prompt contains the promise as an instruction; printing the prompt is no promise."""
    workspace.write("context.md", LINE * (FIVE_MEGABYTES // len(LINE.encode()) + 1))
    args = ("--ai-cmd", "cat", "--context", "context.md", "-n", "1")
    assert nursery.start(workspace, "work", *args).finish(timeout=30).code == 2
    kept = workspace.kept()
    assert (kept / "stdout.log").read_bytes() == (kept / "prompt.md").read_bytes()


@pytest.mark.real(rows=1)
@BOTH
def test_every_iteration_gets_the_prompt_from_its_start(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    command = workspace.agent("cat | wc -c >> sizes; cat | wc -c >> sizes")
    running = nursery.start(workspace, "work", "--ai-cmd", command, "-n", "3", "--capture", capture)
    assert running.finish().code == 2
    size = (workspace.kept() / "prompt.md").stat().st_size
    assert (workspace.path / "sizes").read_text().split() == [str(size), "0"] * 3
