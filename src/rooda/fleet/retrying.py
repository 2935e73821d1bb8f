"""A run that goes on from another branch: its agent brings its work there."""

from msgspec.structs import replace

from rooda.fleet.adding import find_base
from rooda.fleet.model import Run, Task
from rooda.workspace.git import Git


def task_onto(run: Run, onto: str, git: Git) -> Task:
    """Return the task of a run that brings its work onto a branch. Raises InvalidInput."""
    base = find_base(git, onto)
    why = run.ended if run.ended.startswith("conflict") else run.reason
    trouble = f" That did not work by itself: {why}." if why else ""
    words = (
        f"The work on this task is on the branch {run.branch}. Bring it onto {onto} (commit "
        f"{base.commit}): merge that commit into this branch, resolve every conflict so that both "
        f"sides keep their meaning, and check that all of it works.{trouble}"
    )
    return replace(run.task, text=f"{words}\n\nThe task was:\n\n{run.task.text}")
