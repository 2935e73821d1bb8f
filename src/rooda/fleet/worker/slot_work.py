"""The work on a run in one slot: claim it, bring it here, run an iteration, publish that."""

import contextlib
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import json
from msgspec.structs import replace

from rooda.base.controls import one_line, storable
from rooda.base.numbers import count
from rooda.base.paths import first_names
from rooda.base.secrets.masking import Masker
from rooda.fleet.crash_points import reach
from rooda.fleet.display.run_words import progress_of
from rooda.fleet.place import local_folder
from rooda.fleet.remote.fence import Refused
from rooda.fleet.remote.mirror import BranchMoved
from rooda.fleet.remote.patience import until_reached
from rooda.fleet.remote.pull_request import NotFinished, describe_run, open_pull_request
from rooda.fleet.remote.record_commits import (
    RECORD,
    RESULT,
    PublishedResult,
    Record,
    RecordKind,
    read_published,
)
from rooda.fleet.remote.replay import Conflict
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import Finish, Next, Run, RunState
from rooda.fleet.slot.publishing import Publication, PublishedConflict, publish_work
from rooda.fleet.slot.slot import Slot, SlotChanged, Snapshot
from rooda.fleet.slot.slot_clone import remove_tree
from rooda.fleet.slot.slot_setup import (
    TASK_FILE,
    Setup,
    SetupFailed,
    context_words,
    first_words,
    words_in_sandbox,
)
from rooda.fleet.worker.control import Child, Control, read_result
from rooda.fleet.worker.slot_plan import SlotPlan
from rooda.plan.layers import FILE_RUN
from rooda.plan.settings.kinds import WrongValue
from rooda.plan.settings.settings import GIT_ALLOW_SECRETS, SANDBOX_KIND
from rooda.record.given_flags import NO_FLAGS, split_flags
from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.record.transfer import StartedAs, TransferError, export_run, import_run
from rooda.run.outcome import RunOutcome
from rooda.world.git.git import GitError

_T = TypeVar("_T")

_TRIES = 5  # to claim a run whose record moves
_NO_WAITING = ("--no-wait-for-limits", "--max-outage-wait", "0")


class RunLost(Exception):  # noqa: N818 - what happened
    """Another worker has the run: git refused ours."""


class SlotWork:
    """One slot, and the run that is in it now."""

    def __init__(
        self,
        slot: Slot,
        plan: SlotPlan,
        worker: str,
        control: Control,
        tell: Callable[[str, str], None],
        warn: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._slot = slot
        self._plan = plan
        self._worker = worker
        self._control = control
        self._tell = tell  # the run, and what it waits for
        self._warn = warn
        self._record: Record | None = None
        self.seen: Record | None = None  # what git told when the run was claimed
        self.unpublished = ""  # the iteration that is done and not on the remote yet
        self._stay: tuple[str, str, int] | None = None  # the run that is here, and its turn

    @property
    def log(self) -> Path:
        """What the children of the run printed here."""
        return self._slot.folder / "log"

    def leave(self) -> None:
        """Forget the run: the next iteration claims it again, and brings it here again."""
        self._record = None

    def discard(self, run: str, why: str) -> None:
        """Let the next iteration start in a new clone. Raises SlotGone."""
        self._slot.check_folder()
        self._tell(run, f"{why}. rooda publishes nothing of it")
        self._slot.discard()

    def check_folder(self) -> None:
        """Raise SlotGone unless this process holds the slot that is there now."""
        self._slot.check_folder()

    # -- before an iteration ---------------------------------------------------------------

    def open(self, run: Run) -> Next | None:
        """Claim the run and bring it here, unless it is here; return what prevents that.

        Raises RunLost, SlotGone or SlotChanged, or Unreachable if git is away and the turn is to
        end now.
        """
        stay = (run.run, run.life, run.turn)
        if self._record is not None and self._stay == stay:
            return None
        self._record, self._stay = None, stay
        self._slot.leave_run()
        found = self._claim(run)
        if isinstance(found, Next):
            return found
        reach("after-claim", run.run, found.iteration + 1)
        try:
            with self._blaming_slot():
                self._bring(run, found)
        except Conflict as conflict:
            return self._give_up(run, found, RunState.CONFLICT, str(conflict))
        except (SetupFailed, TransferError) as error:
            return self._give_up(run, found, RunState.FAILED, one_line(str(error)))
        self._record = found
        return None

    def _claim(self, run: Run) -> Record | Next:
        for _ in range(_TRIES):
            record = self._reached(run, lambda: self._slot.remote.fetch(run.run))
            if record is None:
                reason = f"its record is gone from {self._slot.remote.shown}"
                return Next("end", state=RunState.FAILED, reason=reason)
            mirrored = self._mirrored(run, record)
            if isinstance(mirrored, BranchMoved):
                if (conflict := self._replay(run, record, mirrored)) is not None:
                    return conflict
                continue
            record = mirrored
            if (ended := self._end_in(run, record)) is not None:
                return ended
            if record.claims_since >= self._plan.most_claims:
                tries = count(record.claims_since, "time")
                reason = f"iteration {record.iteration + 1} was begun {tries}, and never came back"
                return self._give_up(run, record, RunState.SET_ASIDE, reason)
            if (owned := self._owned(run, record)) is not None:
                return owned
        raise RunLost(f"the record of {run.run} is moved by others")

    def _owned(self, run: Run, record: Record) -> Record | None:
        """Return the record with this worker as its owner; None if it has moved meanwhile."""
        with contextlib.suppress(Refused):  # an earlier owner published
            claim = partial(self._slot.remote.claim, run.run, record, self._worker)
            return self._reached(run, partial(self._pushed, claim))
        return None

    def _mirrored(self, run: Run, record: Record) -> Record | BranchMoved:
        """Bring to the branch what an earlier worker published; return the record after that.

        Returns what a person did to the branch, if that prevents it.
        """
        try:
            return self._reached(run, lambda: self._slot.remote.mirror(record))
        except BranchMoved as moved:
            return moved

    def _replay(self, run: Run, record: Record, moved: BranchMoved) -> Next | None:
        """Publish again, on top of a person's branch, what an earlier worker published.

        Returns what prevents that.
        """
        wanted, onto = record.mirror, moved.actual
        claimed = self._owned(run, replace(record, branch=onto))
        if claimed is None or wanted is None or onto is None:
            return None
        work = Snapshot(wanted.to, record.wip)
        try:
            with self._blaming_slot():
                start = wanted.onto or self._base(run)
                replay = partial(self._slot.replay, work, start, onto, run.run)
                work = self._reached(run, replay)
        except Conflict as conflict:
            return self._give_up(run, claimed, RunState.CONFLICT, str(conflict))
        again = Publication(RecordKind.DONE, record.iteration, {}, record.state)
        published = self._published(run, claimed, work, again)
        return published if isinstance(published, Next) else None

    def _pushed(self, push: Callable[[], Record]) -> Record:
        """Return the record after a push. Raises SlotGone, SlotChanged, Unreachable or Refused."""
        try:
            return push()
        except Unreachable:  # or the fault is on this side
            self._slot.check_whole()
            raise

    @contextlib.contextmanager
    def _blaming_slot(self) -> Iterator[None]:
        """Raise SlotGone or SlotChanged in place of an error, if that is the reason for it."""
        try:
            yield
        except (OSError, GitError, SetupFailed, TransferError):
            self._slot.check()
            raise

    def end(self, run: Run, found: Next) -> Next:
        """Return how the run ended: as git has it, else as found, which git gets to know then."""
        try:
            record = self._slot.remote.fetch(run.run)
            if record is None:
                return found
            with contextlib.suppress(BranchMoved):
                record = self._slot.remote.mirror(record)
            return self._end_in(run, record) or self._give_up(
                run, record, found.state, found.reason
            )
        except Unreachable:
            return found  # the database knows it

    def _end_in(self, run: Run, record: Record) -> Next | None:
        """Return the end of the run: it was published, and then its worker died."""
        self.seen = record
        published = read_published(record)
        if published.life != run.life or record.state is None:
            return None
        return Next("end", state=record.state, reason=published.reason)

    def _bring(self, run: Run, record: Record) -> None:
        """Reset the slot to where the run is, with its record."""
        slot, plan = self._slot, self._plan
        base = self._base(run)
        own = run.task.base or run.batch.base
        self._reached(run, lambda: slot.prepare(record, base, run.run, own))
        if slot.empty_submodules:
            self._warn(
                f"{run.run}: rooda did not fetch {first_names(slot.empty_submodules)}: the commit "
                "from which the run started does not name these submodules with these addresses"
            )
        if plan.checkout is not None:
            slot.copy_from(Path(plan.checkout), plan.copy)
        for path in (task_file := slot.folder / "task.md", self.log):
            remove_tree(path)  # an agent may have put a link or a folder there
        task_file.write_text(run.task.text, encoding="utf-8")
        if plan.setup is not None:
            slot.set_up(self._setup(run, plan.setup), lambda words: self._tell(run.run, words))
            self._tell(run.run, "")
        if record.record:
            # Every person who can push writes records: no flag of one reaches the command line.
            import_run(slot.record_folder, record.record, _started(run))

    def _setup(self, run: Run, command: str) -> Setup:
        """Return the setup, which runs where the iterations of the run are at work."""
        record, flags = str(self._slot.record_folder), run.batch.flags
        return Setup(
            command,
            self._plan.setup_inputs,
            argv=words_in_sandbox(run.task, flags, record, command),
            sandbox=repr([words for words in split_flags(flags).flags if _is_of_sandbox(words[0])]),
        )

    def _base(self, run: Run) -> str:
        """Return the commit from which a new run starts: with the work of those before it."""
        base = run.task.base or run.batch.base
        records = [
            (name, self._reached(run, partial(self._slot.remote.fetch, name)))
            for name in run.task.after
        ]
        tips = [(name, found.tip) for name, found in records if found and found.tip]
        if not tips:
            return base
        return self._reached(run, lambda: self._slot.merged_base(base, tips))

    def give_up(self, run: Run, state: RunState, reason: str) -> Next:
        """Note in git that the run in this slot has ended, without any new work."""
        if self._record is None:
            return Next("end", state=state, reason=reason)
        return self._give_up(run, self._record, state, reason)

    def _give_up(self, run: Run, record: Record, state: RunState, reason: str) -> Next:
        result = json.encode(
            self._result(
                run, RunOutcome(run=run.run, status="", iteration=record.iteration), state, reason
            )
        )
        publish = partial(
            self._slot.remote.publish,
            run.run,
            record,
            kind=RecordKind.ENDED,
            iteration=record.iteration,
            tip=record.tip,
            wip=record.wip,
            files={RESULT: result},
            state=state,
            keep_branch=True,
        )
        try:
            self._reached(run, lambda: self._pushed(publish), at_stake=True)
        except Refused as error:
            raise RunLost(str(error)) from None
        return Next("end", state=state, reason=reason)

    # -- the iteration ---------------------------------------------------------------------

    def work(self, run: Run) -> RunOutcome | None:
        """Run one iteration; return what it tells; None if it was interrupted or killed.

        Raises SlotGone, or SlotChanged if the iteration has to be done again.
        """
        self._slot.check()
        slot = self._slot
        # Beside the slot: rooda would follow a link that an agent puts in place of the slot.
        result = slot.folder.with_name(f"result-{slot.number}.json")
        remove_tree(result)
        with self._blaming_slot():
            child = Child(
                [*self._words(run), "--result", str(result)],
                folder=slot.work,
                environment={**slot.tools.environ, **slot.environment(), **slot.mark},
                log=self.log,
                shared=[slot.lock_fd],
            )
        self._control.attach(child)
        child.wait()
        self._control.attach(None)
        found = read_result(result)
        if found is None:  # it was killed, and its agent may not be gone yet
            self._slot.stop_leftovers()
        self._slot.check()
        return found

    def _words(self, run: Run) -> list[str]:
        """Return the command line of one iteration."""
        record, task = self._record, run.task
        words: list[str] = []
        if record is not None and record.record:
            words += ["resume", run.run]
        else:
            words += [*first_words(task), "--run-id", run.run]
        words += context_words(task)
        words += ["--record", str(self._slot.record_folder), "--pause-after", "1"]
        words += ["--account", run.account, *_NO_WAITING]
        words += ["--commit", "--no-push", "--git-dirty", "commit", "--git-untracked", "commit"]
        words += run.batch.flags
        if task.max_iterations is not None:
            words += ["--max-iterations", str(task.max_iterations)]
        if task.max_cost is not None:
            words += ["--max-cost", str(task.max_cost)]
        return words

    # -- after an iteration ----------------------------------------------------------------

    def publish(
        self,
        run: Run,
        result: RunOutcome,
        state: RunState,
        *,
        reason: str = "",
        is_done: bool = True,
    ) -> Next | None:
        """Publish branch and record together; return what prevents that.

        Raises RunLost; SlotGone, or SlotChanged if the iteration has to be done again; Unreachable
        if git is away and the turn is to end now.
        """
        self.unpublished = f"iteration {result.iteration} of {run.run}"
        try:
            return self._publish(run, result, state, reason, is_done=is_done)
        finally:
            self.unpublished = ""

    def _publish(
        self, run: Run, result: RunOutcome, state: RunState, reason: str, *, is_done: bool
    ) -> Next | None:
        record = self._record
        if record is None:
            raise RunLost(f"{run.run} is not in this slot")
        allowed = _allowed_secrets(run.batch.flags)
        work = self._slot.snapshot(allowed)
        if words := self._hold_back(run, work, allowed):
            return self._give_up(run, record, RunState.FAILED, words)
        files = {}
        kind = RecordKind.DONE if is_done else RecordKind.WAITING
        done = result.iteration
        self._check_record(run, done)
        try:
            files[RECORD] = export_run(self._slot.record_folder, run.run)
        except TransferError as error:  # without its record a run can't go on
            kind, done, state = RecordKind.ENDED, record.iteration, RunState.FAILED
            reason = f"its record can't be published: {one_line(str(error))}"
        files[RESULT] = json.encode(self._result(run, result, state, reason))
        what = Publication(kind, done, files, state if state.is_end else None)
        published = self._published(run, record, work, what)
        if isinstance(published, Next):
            return published
        self._record = published
        if RECORD not in files:
            return Next("end", state=state, reason=reason)
        return None

    def _published(
        self, run: Run, record: Record, work: Snapshot, what: Publication
    ) -> Record | Next:
        """Publish work; return the record after that, or how the run ended in a conflict."""
        try:
            return publish_work(
                self._slot,
                run.run,
                record,
                work,
                what,
                is_stopped=lambda: self._control.is_stopped,
                tell=lambda words: self._tell(run.run, words),
            )
        except Refused as error:
            raise RunLost(str(error)) from None
        except PublishedConflict as conflict:
            return Next("end", state=RunState.CONFLICT, reason=one_line(str(conflict)))
        except Unreachable as error:
            raise Unreachable(f"its last iteration is not published: {error}") from None

    def _check_record(self, run: Run, iteration: int) -> None:
        """Raise SlotChanged if the record lost the run, or one of its iterations."""
        try:
            rows = RecordReader(self._slot.record_folder).iterations(run.run)
        except StoreError as error:
            raise SlotChanged(f"the record of the slot lost the run: {error}") from None
        if missing := sorted(set(range(1, iteration + 1)) - {row.number for row in rows}):
            raise SlotChanged(f"the record of the slot lost iteration {missing[0]}")

    def _hold_back(self, run: Run, work: Snapshot, allowed: tuple[str, ...]) -> str:
        """Return why the commits must not leave this machine; empty if they may.

        A remote on this machine gets them as they are. Otherwise the work is kept here.
        """
        if local_folder(self._slot.remote.url) is not None:
            return ""
        found = self._slot.committed_secrets(work.tip, allowed)
        if not found:
            return ""
        kept = self._slot.keep(work, run.run)
        return (
            f"nothing was pushed: new files in the commits look like secrets: {first_names(found)}."
            f" The work is on {platform.node()}: git fetch {kept} rooda/{run.run}. If they may be "
            f"pushed, name them with {GIT_ALLOW_SECRETS.flag_name}"
        )

    def _result(
        self, run: Run, result: RunOutcome, state: RunState, reason: str
    ) -> PublishedResult:
        now = progress_of(result)
        return PublishedResult(
            turn=run.turn,
            life=run.life,
            state=state,
            reason=storable(reason),
            **now.progress
            | {
                "cost": now.cost or run.cost,
                "unknown_costs": now.unknown_costs or run.unknown_costs,
            },
        )

    def finish(self, run: Run, state: RunState) -> str:
        """Open a pull request, if the batch wants one; return words about it, or none."""
        if run.batch.finish is not Finish.PR or state is not RunState.SUCCESS:
            return ""
        try:
            record = self._reached(run, lambda: self._slot.remote.fetch(run.run), at_stake=True)
            if record is None or record.tip is None:
                return ""
            found = self._unchecked_secrets(run, record.tip)
        except (Unreachable, GitError) as error:
            return f"no pull request: {one_line(str(error))}"
        if found:
            return (
                f"no pull request: new files in the commits look like secrets: {first_names(found)}"
            )
        told = read_published(record)
        words = describe_run(
            run.task,
            run.run,
            iterations=told.iteration,
            cost=None if told.unknown_costs else told.cost,
            words=told.headline,
            masker=Masker(os.environ),
        )
        try:
            made = open_pull_request(
                run.run,
                record.tip,
                run.batch.base_branch,
                words,
                url=self._plan.remote,
                git_dir=self._slot.remote.git_dir,
                tools=self._slot.tools,
            )
        except NotFinished as error:
            return f"no pull request: {one_line(str(error))}"
        return f"PR #{made.number}"

    def _unchecked_secrets(self, run: Run, tip: str) -> list[str]:
        """Return the secret files of a run that the user's repository got as they are."""
        if local_folder(self._slot.remote.url) is None:
            return []
        base = run.task.base or run.batch.base
        self._reached(run, lambda: self._slot.remote.ensure(base), at_stake=True)
        return self._slot.committed_secrets(tip, _allowed_secrets(run.batch.flags), base)

    def _reached(self, run: Run, act: Callable[[], _T], *, at_stake: bool = False) -> _T:
        """Return what git answers; wait while the remote is away.

        A worker that is to end does not wait for git, unless work or an end `at_stake` is not
        published yet. Raises Unreachable then; SlotGone if git fails because the slot is gone.
        """

        def try_it() -> _T:
            try:
                return act()
            except Unreachable:
                self._slot.check_folder()
                raise

        control = self._control
        with contextlib.nullcontext() if at_stake else control.at_git():
            return until_reached(
                try_it,
                is_stopped=lambda: control.is_stopped or (control.is_draining and not at_stake),
                tell=lambda words: self._tell(run.run, words),
            )


def _started(run: Run) -> StartedAs:
    """Return how the database says that the run was started. Its flags are given each time."""
    procedure = run.task.procedure
    if procedure is not None:
        return StartedAs(run.run, procedure, NO_FLAGS)
    return StartedAs(run.run, FILE_RUN, replace(NO_FLAGS, arguments=(TASK_FILE,)))


def _is_of_sandbox(flag: str) -> bool:
    return flag.startswith(SANDBOX_KIND.flag_name)


def _allowed_secrets(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns of secret files that the flags of the batch allow."""
    given = [words for words in split_flags(flags).flags if words[0] == GIT_ALLOW_SECRETS.flag_name]
    try:
        return tuple(GIT_ALLOW_SECRETS.from_text(given[-1][1])) if given else ()
    except (WrongValue, IndexError):  # the iteration itself refuses these flags
        return ()
