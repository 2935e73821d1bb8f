"""The headline of an iteration through the installed command."""

import json
import os

import pytest

from support.voices import VOICES, line
from support.workspace import PROCEDURE, Workspace

CLAUDE = VOICES[0]


@pytest.mark.real
def test_headline_is_in_the_record_for_text_and_for_events(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    text = workspace.agents(
        "echo 'Added a **parser**. All tests pass.'",
        "printf 'Hm, well.\\n\\n## Summary\\n\\n- Fixed `it`.\\n'",
        "echo '<promise>SUCCESS</promise>'",
    )
    assert workspace.work(text).code == 0
    events = [
        *CLAUDE.begins(),
        *CLAUDE.says("I will look at the code first."),
        *CLAUDE.uses("Read", {"file_path": "a.py"}),
        *CLAUDE.tool_prints("Printed by a tool."),
        *CLAUDE.says("The parser reads dates now. See a.py.\n\n<promise>SUCCESS</promise>"),
        *CLAUDE.ends("The parser reads dates now. See a.py.\n\n<promise>SUCCESS</promise>"),
    ]
    shown = json.loads(workspace.rooda("show", "--json").out)
    assert [one["headline"] for one in shown["iterations"]] == [
        "Added a parser",
        "Fixed it",
        None,
    ]
    folder = workspace.home / "bin"
    folder.mkdir()
    (folder / "events").write_bytes(b"".join(map(line, events)))
    claude = folder / "claude"
    claude.write_text(f"#!/bin/sh\ncat {folder}/events\n")
    claude.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    assert workspace.work(CLAUDE.command, env={"PATH": path}).code == 0
    shown = json.loads(workspace.rooda("show", "1", "--json").out)
    assert shown["headline"] == "The parser reads dates now"
