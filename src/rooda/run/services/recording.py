"""Record a run: the store, the session log, and the deletion of old runs."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.masking import MASK_NOTHING, Masker
from rooda.loop.events.emitter import Emitter
from rooda.loop.events.run import HistoryPruned, RecordTrouble, ReportFailed
from rooda.loop.history import HistoryConfig, IterationHistory
from rooda.loop.next_steps import RunCommands
from rooda.loop.result import IterationStatus
from rooda.loop.state import Status
from rooda.loop.tracker import FileChangeTracker
from rooda.plan.own_files import own_files, trees_of_agents
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import (
    GIT_SNAPSHOTS,
    HISTORY_KEEP_RUNS,
    HISTORY_MAX_AGE,
    HISTORY_MAX_IN_MEMORY,
    HISTORY_MAX_SIZE,
    REPORT,
    SESSION_LOG,
    TRACK_FILE_CHANGES,
)
from rooda.plan.world import this_world
from rooda.record.given_flags import GivenFlags
from rooda.record.recorder import Recorder
from rooda.record.retention import RetentionLimits, forget_gone_trees, prune
from rooda.record.rows import RecordedRepository, RunRow, StoreError
from rooda.record.store import Store
from rooda.run.resume import Resumed
from rooda.views.terminal.log import LogFile
from rooda.views.terminal.session_log import SessionLog
from rooda.world.git.git import GitError
from rooda.world.git.pin import Pin
from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.git.work_tree import leads_out, work_tree
from rooda.world.state.folder import SESSION, open_to_append
from rooda.world.state.lock_note import ProcessIdentity


class _Troubles:
    """Keeps trouble of the record until the run has listeners."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._emitter: Emitter | None = None

    def __call__(self, message: str) -> None:
        if self._emitter is None:
            self._waiting.append(message)
        else:
            self._emitter(RecordTrouble(message))

    def tell(self, emitter: Emitter) -> None:
        """Report the trouble so far, and from now on report it at once."""
        self._emitter = emitter
        for message in self._waiting:
            self(message)


class AskedFor(Struct, frozen=True):
    """The command line of a run, and the commands that start it again and resume it."""

    given: GivenFlags
    commands: RunCommands


class Recording(Struct, frozen=True):
    """The record of one run."""

    plan: Plan
    store: Store
    troubles: _Troubles

    @classmethod
    def open(cls, plan: Plan, *, is_alone: bool) -> "Recording":
        """Open the store, and mark killed runs as interrupted. Raises InvalidInput.

        `is_alone`: this run holds the lock of the work tree, so no other run does.
        """
        troubles = _Troubles()
        try:
            store = Store(plan.state, troubles)
        except StoreError as error:
            problem = Problem(str(error), "Fix that, then start again", title="No record")
            raise InvalidInput([problem]) from None
        store.close_stale(lambda row: row.process.is_alive(lambda: not is_alone))
        return cls(plan, store, troubles)

    def refuse_known(self, run: str) -> None:
        """Raise InvalidInput if the record has a run of this name already."""
        if self.store.has(run):
            message = f"the record has a run of the name {run} already"
            advice = f"Choose another name with --run-id, or continue that run: rooda resume {run}"
            raise InvalidInput([Problem(message, advice, title="Run is known")])

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def listen(
        self,
        emitter: Emitter,
        run: str,
        resumed: Resumed | None,
        asked: AskedFor | None = None,
        pin: Pin | None = None,
        masker: Masker = MASK_NOTHING,
    ) -> Callable[[], None]:
        """Add the record and the session log as listeners; return how to close them.

        `asked` is what the user asked for, which a resumed run uses again. `pin` is the repository
        in which the run starts.
        """
        self.troubles.tell(emitter)
        row = _row(self.plan, run, pin)
        if resumed is not None:
            row = _taken_up(resumed.row, row, is_apart=self.plan.is_apart)
        if asked is not None:
            row = replace(row, given=asked.given, commands=asked.commands)
        emitter.add(Recorder(self.store, row, resumed.earlier if resumed else ()))
        if (path := self.plan.values[REPORT]) is not None:
            self._report(emitter, run, Path(path), masker)
        return self._log_session(emitter, run, resumed, masker)

    def _report(self, emitter: Emitter, run: str, path: Path, masker: Masker) -> None:
        """Write the report while the run is at work. Imported here: most runs write none."""
        from rooda.views.report.make import ReportWriter  # noqa: PLC0415

        def tell(error: str) -> None:
            emitter(ReportFailed(str(path), error))

        plan = self.plan
        where = (path, plan.place, run)
        trees = trees_of_agents(plan.values, plan.workspace)
        emitter.add(ReportWriter(*where, plan.tools, tell, trees, masker))

    def _log_session(
        self, emitter: Emitter, run: str, resumed: Resumed | None, masker: Masker
    ) -> Callable[[], None]:
        """Write the session log beside the record, and to the file in the settings."""
        state, closing = self.plan.state, ExitStack()
        trees = trees_of_agents(self.plan.values, self.plan.workspace)
        name = f"runs/{run}/{SESSION}"
        places: list[tuple[Path, Callable[[], int] | None]] = [
            (state / name, lambda: open_to_append(state, name))
        ]
        if (other := self.plan.values[SESSION_LOG]) is not None:
            places.append((Path(other), None))
        for path, opened in places:
            try:
                if opened is None and not leads_out(path, *trees):
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = LogFile(path, opened, trees)
            except OSError as error:
                emitter(RecordTrouble(f"{path.name} can't be written: {error.strerror}"))
                continue
            closing.callback(file.close)
            write = _guarded(file.write, self.troubles)
            notes = masker.tree(self.plan.notes)
            emitter.add_view(SessionLog(write, _ended(resumed), notes, masker))
        return closing.close

    def prune(self, emitter: Emitter, run: str) -> None:
        """Delete old runs."""
        values = self.plan.values
        limits = RetentionLimits(
            values[HISTORY_MAX_AGE], values[HISTORY_MAX_SIZE], values[HISTORY_KEEP_RUNS]
        )
        if not self.plan.is_apart:
            forget_gone_trees(this_world().environ)
        gone = prune(
            self.store,
            limits,
            datetime.now().astimezone(),
            current=run,
            before=self._forget_snapshots,
            on_trouble=self.troubles,
        )
        if gone:
            emitter(HistoryPruned(tuple(one.run for one in gone), sum(one.size for one in gone)))

    def _forget_snapshots(self, runs: Sequence[str]) -> None:
        try:
            snapshots_of(self.plan).forget(runs)
        except GitError as error:
            self.troubles(f"old snapshots can't be deleted: {error}")

    def history(self, resumed: Resumed | None) -> IterationHistory:
        """The iterations of the run so far."""
        config = HistoryConfig(self.plan.values[HISTORY_MAX_IN_MEMORY])
        return IterationHistory(config, list(resumed.earlier) if resumed else [])

    def tracker(self, run: str) -> FileChangeTracker | None:
        """Return the tracker of file changes; None if the settings turn it off."""
        values = self.plan.values
        if not values[TRACK_FILE_CHANGES]:
            return None
        return FileChangeTracker(
            looked_at(self.plan),
            self.plan.tools,
            state=self.plan.state,
            run=run,
            keep=values[GIT_SNAPSHOTS],
            own=[file.pattern for file in own_files(self.plan.values)],
        )


def _guarded(write: Callable[[str], None], tell: Callable[[str], None]) -> Callable[[str], None]:
    """The same function, but it reports an error once instead of raising it."""
    told: set[str] = set()

    def guarded(text: str) -> None:
        try:
            write(text)
        except OSError as error:
            message = f"the session log can't be written: {error.strerror or error}"
            if message not in told:
                told.add(message)
                tell(message)

    return guarded


def looked_at(plan: Plan) -> Path:
    """The folder that names are relative to: of the work, unless the agent works elsewhere."""
    same = work_tree(plan.workspace) == work_tree(plan.working_dir)
    inside = plan.working_dir.resolve().is_relative_to(plan.workspace.resolve())
    return plan.workspace if same or inside else plan.working_dir


def snapshots_of(plan: Plan) -> Snapshots:
    """The snapshots of the plan's work tree. Raises GitError without git."""
    return Snapshots.open(looked_at(plan), plan.state, plan.tools)


def _ended(resumed: Resumed | None) -> dict[int, bool]:
    """Which iterations completed, and which failed; an interrupted one did neither."""
    return {
        one.number: one.status is IterationStatus.COMPLETED
        for one in (resumed.earlier if resumed else ())
        if one.status is not IterationStatus.INTERRUPTED
    }


def _row(plan: Plan, run: str, pin: Pin | None) -> RunRow:
    now = datetime.now().astimezone().isoformat(timespec="milliseconds")
    us = ProcessIdentity.own()
    return RunRow(
        run=run,
        procedure=plan.procedure,
        status=str(Status.RUNNING),
        started_at=now,
        ended_at=None,
        pid=us.pid,
        pid_started=us.started,
        host=us.host,
        boot=us.boot,
        pid_namespace=us.namespace,
        workspace=str(plan.workspace),
        repository=_repository_of(pin) if pin else None,
    )


def _repository_of(pin: Pin) -> RecordedRepository:
    top, git_dir, common = map(str, (pin.top, pin.git_dir, pin.common))
    return RecordedRepository(top, git_dir, common, pin.named_links, pin.head)


def _taken_up(row: RunRow, now: RunRow, *, is_apart: bool) -> RunRow:
    """The row of a run that goes on as `now`; a record that is apart may go on in another place."""
    row = replace(
        row,
        pid=now.pid,
        pid_started=now.pid_started,
        host=now.host,
        boot=now.boot,
        pid_namespace=now.pid_namespace,
    )
    if is_apart:
        row = replace(row, workspace=now.workspace, repository=now.repository)
    return row
