"""The outcome matrix through the installed command: signals, exit codes, log lines."""

import re

import pytest

from support.workspace import Workspace

SUCCESS = "echo '<promise>SUCCESS</promise>'"
FAILURE = "echo '<promise>FAILURE</promise>'"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "body,code,line",
    [
        ("exit 0", 2, "completed in X (success)"),
        (SUCCESS, 0, "completed in X (success)"),
        (FAILURE, 1, "completed in X (failure, consecutive: 1/1)"),
        (f"{SUCCESS}; {FAILURE}", 1, "completed in X (failure, consecutive: 1/1)"),
        ("exit 7", 1, "completed in X (failure, consecutive: 1/1)"),
        (f"{SUCCESS}; exit 7", 0, "completed in X (success)"),
        (f"{FAILURE}; exit 7", 1, "completed in X (failure, consecutive: 1/1)"),
        (f"{SUCCESS}; {FAILURE}; exit 7", 1, "completed in X (failure, consecutive: 1/1)"),
    ],
    ids=["0", "0+S", "0+F", "0+both", "7", "7+S", "7+F", "7+both"],
)
def test_each_row_of_the_outcome_matrix(
    workspace: Workspace, body: str, code: int, line: str
) -> None:
    done = workspace.work(workspace.agent(body), "-n", "1", "--failure-threshold", "1")
    assert done.code == code
    assert f"Iteration 1/1 {line}" in re.sub(r"in [\d.]+s", "in X", done.err)
