"""Switch to the branch that the settings name, before the first iteration."""

import shlex

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.loop.events.work import BranchSwitched
from rooda.loop.publish.user_git import UserGit
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import GIT_BRANCH
from rooda.world.git.branches import Branches
from rooda.world.git.git import Git, GitError, GitInterruptedError

_SHOWN = 1000


def switch_branch(plan: Plan) -> BranchSwitched | None:
    """Create the branch or switch to it, with the user's git; None if there is nothing to do.

    Raises InvalidInput if git refuses. After a signal the caller ends the run.
    """
    name, tools = plan.values[GIT_BRANCH], plan.tools
    if name is None:
        return None
    try:
        branches = Branches.find(Git(plan.working_dir, tools))
    except GitInterruptedError:
        return None
    except GitError as error:
        raise _refused(plan, str(error)) from None
    if branches.current == name:
        return None
    arguments = branches.way_to(name)
    finished = UserGit(plan, tools, None).run("switch", "--quiet", *arguments)
    if finished.was_interrupted:
        return None
    if not finished.passed:
        said = one_line(finished.last_words(_SHOWN)) or finished.error
        if _is_on(plan, name):
            raise _failed_after_switch(plan, name, branches.current, said)
        raise _refused(plan, f"git switch: {said}")
    return BranchSwitched(name, "-c" in arguments, branches.current)


def _is_on(plan: Plan, name: str) -> bool:
    """Return whether HEAD is on the branch now."""
    try:
        return Branches.find(Git(plan.working_dir, plan.tools)).current == name
    except GitError:
        return False


def _failed_after_switch(plan: Plan, name: str, before: str | None, said: str) -> InvalidInput:
    """Return the error of a hook `post-checkout`: git runs it on the new branch."""
    message = f"git has switched to the branch {name}, and failed after that: {said}"
    back = f"; to go back: git switch {shlex.quote(before)}" if before else ""
    fix = f"Check the hook post-checkout; the next start with this branch runs no switch{back}"
    return _problem(plan, message, fix)


def _refused(plan: Plan, reason: str) -> InvalidInput:
    message = f"rooda could not switch to the branch {plan.values[GIT_BRANCH]}: {reason}"
    return _problem(plan, message, "Switch to it by hand (git switch), then start again")


def _problem(plan: Plan, message: str, fix: str) -> InvalidInput:
    values = plan.values
    origin, field = values.origin(GIT_BRANCH), values.field(GIT_BRANCH)
    return InvalidInput([Problem.at(origin, field, message, fix, title="Branch can't be used")])
