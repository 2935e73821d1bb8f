"""The stages that keep the files of `protect.paths` as they were before the agent started."""

import os
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from rooda.base.paths import first_names
from rooda.loop.context import IterationContext
from rooda.loop.events.protect import MOST_NAMED, ProtectedChanged, ProtectionStarted
from rooda.loop.events.work import PushFailed
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.progress import detect_progress
from rooda.loop.stages.changes import report_tree
from rooda.plan.settings.settings import GIT_COMMIT, PROTECT_ON_CHANGE
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.files.protected_files import ProtectedFiles
from rooda.world.files.put_back import Aside
from rooda.world.git.git import Git, GitError
from rooda.world.git.snapshots.tree_changes import Difference, DifferenceParser
from rooda.world.state.folder import REPLACED, make_folders

_NAMED = 20  # files in a prompt
_COMMIT_THEM = "Commit the files as they were before (git.commit lets rooda do that), then push"
_UNLIKE_HEAD = (
    *("diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames"),
    *("--relative", "HEAD"),
)
_DIFF = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--relative")


def before_agent(context: IterationContext) -> None:
    """Note how the protected files are now: what the user did between iterations counts."""
    guarded = context.services.protected
    if guarded is not None and (lost := guarded.refresh()):
        action = context.plan.values[PROTECT_ON_CHANGE]
        named = tuple(lost[:MOST_NAMED])
        context.services.emit(ProtectionStarted(len(guarded), action, lost=named))


def guard_files(context: IterationContext) -> None:
    """Restore the protected files that the agent changed, or note that it did."""
    if context.services.protected is not None and context.is_started:
        _guard(context, context.services.protected, "agent")


def guard_files_again(context: IterationContext) -> None:
    """Look again before the commit: `verify` runs code that the agent wrote."""
    guarded = context.services.protected
    if guarded is None or not context.is_started:
        return
    _guard(context, guarded, "verify")
    require_protected(context)
    context.add_feedback(_words(context))


def require_protected(context: IterationContext) -> None:
    """Count an iteration as failed that changed a protected file, where the user wants that."""
    wrong = context.violations
    if not wrong or not context.decided.is_good:
        return
    shown = first_names([*wrong])
    reason = f"protected files were changed: {shown}"
    if any(wrong.values()):
        reason = f"protected files could not be restored: {shown}"
    seen = "; ".join(f"{name}: {why}" for name, why in wrong.items() if why)[:1000]
    evidence = seen or f"not as before the iteration: {first_names([*wrong], most=20)}"
    context.outcome = Outcome(Verdict.FAILURE, FailureKind.PROTECTED, reason, evidence=evidence)


def _guard(context: IterationContext, guarded: ProtectedFiles, by: str) -> None:
    """Compare the files, and do what the settings say about those that changed."""
    on_disk, in_commits = guarded.changed(), _changed_in_commits(context, guarded)
    changed = dict(on_disk)
    if by == "agent":
        changed |= _only_committed(context, guarded, in_commits.keys() - on_disk.keys())
    found = {name: how for name, how in changed.items() if name not in context.violations}
    if not found:
        return
    action = context.plan.values[PROTECT_ON_CHANGE]
    failed: Mapping[str, str] = {}
    if action == "restore":
        place = f"{context.place}/{REPLACED}"
        aside = Aside(lambda: make_folders(context.plan.state, place))
        failed = guarded.put_back([name for name in found if name in on_disk], aside)
        context.restored |= found.keys() - failed.keys()
    elif action == "warn":
        guarded.refresh()
    else:
        failed = dict.fromkeys(found, "")
    context.violations |= failed
    guarded.leave(failed)
    committed = [] if action == "warn" else [name for name in found if name in in_commits]
    guarded.committed |= {name: in_commits[name] for name in committed}
    names = tuple(found)[:MOST_NAMED]
    context.services.emit(
        ProtectedChanged(
            iteration=context.number,
            files=names,
            total=len(found),
            action=action,
            how=tuple(found[name] for name in names),
            by=by,
            failed=tuple(f"{name}: {why}" for name, why in failed.items() if why)[:MOST_NAMED],
            committed=tuple(committed)[:MOST_NAMED],
            is_committed_back=context.plan.values[GIT_COMMIT],
        )
    )
    if context.restored:
        _look_again(context)


def _look_again(context: IterationContext) -> None:
    """Let the snapshot of the iteration have the restored files, and see what is left of it."""
    tracker, seen = context.services.tracker, context.seen
    if tracker is None:
        return
    now = tracker.scan(str(context.number))
    if now.tree is not None:
        found = replace(now, changes=seen.changes, lines=seen.lines, commits=seen.commits)
        found = replace(found, head_moved=seen.head_moved, head_before=seen.head_before)
        context.seen = found
    report_tree(context.services, context.number, now)
    result = context.facts.result
    if result is not None and seen.changes is not None:
        progress = detect_progress(
            files_changed=context.changed_files,
            commits_made=seen.commits,
            tests=result.test_results,
            tests_before=context.state.tests,
        )
        context.learn(result=replace(result, progress_detected=progress))


def _changed_in_commits(context: IterationContext, guarded: ProtectedFiles) -> dict[str, str]:
    """Return the protected files that the agent's commits changed, with git's names of contents."""
    before, after = context.seen.head_before, context.seen.head
    found: dict[str, str] = {}
    if not context.seen.head_moved or before is None or after is None:
        return found

    def take(one: Difference) -> None:
        if one.name in guarded:
            found[one.name] = one.object_after

    try:
        git = Git(guarded.top, context.services.tools)
        git.each(DifferenceParser(take).feed, *_DIFF, before, after)
    except GitError:
        return {}
    return found


def _only_committed(
    context: IterationContext, guarded: ProtectedFiles, names: Collection[str]
) -> dict[str, str]:
    """Return those files that HEAD has with another content than the work tree.

    An agent can commit a change, and then bring the file in the work tree back.
    """
    if not names:
        return {}
    unlike: list[str] = []
    try:
        git = Git(guarded.top, context.services.tools)
        git.each(lambda name: unlike.append(os.fsdecode(name)), *_UNLIKE_HEAD)
    except GitError:
        unlike = [*names]
    return dict.fromkeys(sorted(set(names).intersection(unlike)), "changed in a commit")


def refuse_push(context: IterationContext, *, is_last: bool) -> bool:
    """Return whether nothing may be pushed: the last commit has a protected file as changed."""
    names = _wrongly_committed(context)
    if not names:
        return False
    error = f"the last commit changes protected files: {first_names(names)}; nothing was pushed"
    context.services.emit(PushFailed(context.number, error, _COMMIT_THEM, is_last))
    return True


def _wrongly_committed(context: IterationContext) -> list[str]:
    """Return the protected files that the last commit has as the agent changed them."""
    guarded = context.services.protected
    if guarded is None or not guarded.committed:
        return []
    found: dict[str, str] = {}

    def take(entry: bytes) -> None:
        about, _, name = entry.partition(b"\t")
        found[name.decode("utf-8", "surrogateescape")] = about.split(b" ")[2].decode()

    try:
        git = Git(guarded.top, context.services.tools)
        git.each(take, "ls-tree", "-r", "-z", "HEAD")
    except GitError:
        return list(guarded.committed)
    # Git's name for a content that does not exist has zeros only.
    wrong = {
        name: content
        for name, content in guarded.committed.items()
        if found.get(name, "0" * len(content)) == content
    }
    guarded.committed = wrong
    return [*wrong]


def _words(context: IterationContext) -> str:
    """Return what the next prompt says about protected files."""
    parts = []
    if context.restored:
        names = first_names(sorted(context.restored), most=_NAMED)
        parts.append(
            f"You may not change these files: {names}. The last iteration changed them, and rooda "
            "has restored them. Do the work without changing them."
        )
        if not context.plan.values[GIT_COMMIT] and _wrongly_committed(context):
            parts.append("Your commits contain changes of them: commit the restored files.")
    if context.violations:
        names = first_names(sorted(context.violations), most=_NAMED)
        parts.append(
            "The last iteration failed, because it changed files that you may not change: "
            f"{names}. "
            "Bring them back exactly as they were before, and do the work without changing them."
        )
    return "\n\n".join(parts)
