"""What tests of the interfaces for programs share."""

import json
from pathlib import Path
from typing import Any

from support.finished import Finished
from support.workspace import Workspace

WORKS = "echo more >> work.txt"


def agent(tmp_path: Path, body: str, name: str = "agent.sh") -> str:
    """A script outside of the work tree that plays the agent."""
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def work(tree: Workspace, command: str, *flags: str) -> Finished:
    return tree.rooda("work", "--ai-cmd", command, *flags)


def result_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found
