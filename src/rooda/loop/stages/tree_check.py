"""The stage that checks what programs in the sandbox left in the work tree.

It runs after each of them, before rooda's git or another program outside uses the tree. Without a
sandbox it does nothing.
"""

from rooda.loop.context import IterationContext
from rooda.loop.events.tree import HardLinksFound, UnsafeTree
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.services import Services
from rooda.loop.stages.verify import indented
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.sandbox.tree_findings import Action, Finding

_MOST_NAMED = 100
_TOLD = {
    Action.REMOVED: "rooda removed these after the last iteration",
    Action.CLEARED: "rooda took the set-uid and set-gid bits of these files away",
    Action.EXCLUDED: "rooda commits nothing of these folders",
    Action.KEPT: "rooda did not take these over",
    Action.REFUSED: "rooda committed and pushed nothing, because these must not change",
}

_LOST = "The repository is damaged: git no longer has the commits of these"
_BRING_BACK = "Bring them back if you can, for example from a remote. Delete nothing in `.git`."
# What the next prompt says about the agent's git folder.
_OF_GIT = {
    Finding.KEPT_COMMITS: (
        "The user changed the branch while you worked on it, so your commits are not on it. They "
        "are on these branches"
    ),
    Finding.UNFINISHED: "Finish or abort this in git: until then your commits stay where they are",
    Finding.REFUSED_COMMITS: (
        "rooda could not take your commits over, so it made `.git` again without them. The files "
        "are still there: commit them again. The reason, and the old folder"
    ),
}


def report_hard_links(services: Services) -> None:
    """Warn once, before the first iteration, of files that have names outside of the tree."""
    check = services.tree_check
    if check is not None and check.hard_link_count:
        services.emit(HardLinksFound(check.hard_links, check.hard_link_count))


def check_tree(context: IterationContext) -> None:
    """Check the tree if a program ran since the last check; fail the iteration if need be."""
    for event in look(context.services, context.number, context.place):
        context.add_feedback(_words(event))
        if event.action is Action.REFUSED:
            context.refusal = context.refusal or _refusal(event)
    if context.refusal and context.outcome is not None and context.outcome.is_good:
        context.outcome = Outcome(
            Verdict.FAILURE, FailureKind.UNSAFE_TREE, context.refusal, evidence=context.refusal
        )


def look(services: Services, number: int, place: str) -> list[UnsafeTree]:
    """Check the tree if a program ran since the last check; act on what is found, and report it."""
    if services.tree_check is None or not services.tree_check.is_due:
        return []
    found = [
        UnsafeTree(
            number, one.finding, one.action, one.names[:_MOST_NAMED], len(one.names), one.place
        )
        for one in services.tree_check.run(place)
    ]
    for event in found:
        services.emit(event)
    return found


def _refusal(event: UnsafeTree) -> str:
    names = f": {event.names}" if event.names else ""
    if event.finding is Finding.LOST_COMMITS:
        return f"the repository is damaged, because commits are missing{names}"
    if event.finding is Finding.REFUSED_COMMITS:
        return f"rooda could not take over the agent's commits{names}"
    return f"the work tree has {event.finding.what} that are new or changed{names}"


def _words(event: UnsafeTree) -> str:
    """Return words for the next prompt."""
    names = f":\n\n{indented(event.names)}\n\n" if event.names else ". "
    if event.finding is Finding.LOST_COMMITS:
        return f"{_LOST}{names}{_BRING_BACK}"
    if event.finding in _OF_GIT:
        return f"{_OF_GIT[event.finding]}{names}"
    why = f"They are {event.finding.what}, and {event.finding.danger}."
    return f"{_TOLD[event.action]}{names}{why} Do without them."
