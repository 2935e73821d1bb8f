"""The durable engine. This is the only module that knows DBOS.

A turn of a run is a workflow, and each iteration in it is a step. DBOS keeps the queue and the
results of steps. When it records a result, it checks that this process still owns the workflow.
The private parts of DBOS that this module uses are tested with every version that is allowed.
"""

import contextlib
import fcntl
import os
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

from dbos import DBOS, DBOSPortableJSONSerializer
from dbos._serialization import DefaultSerializer
from msgspec import Struct
from sqlalchemy import make_url

from rooda.fleet.store.tables import LONGEST_PAUSE, PATIENCE

_PROTOCOL = "rooda-fleet-1"  # workers of another protocol leave these workflows alone
_NAME = "rooda-fleet"
_TURN = "turn"
_POLLING = 0.2  # seconds between two looks into an empty queue
_AT_ONCE = 0.01  # seconds after which DBOS asks again: `_claim_one` sets the pace
_LOWEST = 1_000_000  # DBOS starts the lowest number first; ours is the other way round
_STARTING = 10.0  # seconds: a turn that DBOS has not started by then, it never will
_NO_MOST = 1_000_000_000  # DBOS would set a workflow aside after so many starts: rooda does that


UNFINISHED = ["PENDING", "ENQUEUED", "DELAYED"]
FINISHED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_MOST_PRUNED = 1000  # at once


class Turn(Struct, frozen=True):
    """One stay of a run in a slot: a place in the queue."""

    project: str
    run: str
    number: int
    labels: tuple[str, ...] = ()
    priority: int = 0
    life: str = ""  # differs between two runs of one name: one was forgotten

    @property
    def key(self) -> str:
        """The name of its workflow."""
        return "/".join((self.project, self.run, *filter(None, [self.life]), str(self.number)))

    @property
    def queue(self) -> str:
        """The queue of its project and its labels."""
        return "+".join((self.project, *sorted(self.labels)))


class Steps(Protocol):
    """Runs a function as a durable step, and returns its result: a later start gets the same."""

    def __call__(self, name: str, function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run the function under this name."""
        ...


class Durable:
    """The engine of one process, which works on one turn at a time.

    `take` is the work on a turn: project, run, number, steps.
    """

    def __init__(
        self,
        url: str,
        worker: str,
        project: str,
        labels: Collection[str],
        take: Callable[[str, str, int, Steps], str],
    ) -> None:
        self._url = url
        self._project = project
        self._labels = frozenset(labels)
        self._worker = worker
        self._is_closed = False
        self._queues: set[str] = set()
        self._take = take
        self._claiming = threading.Lock()
        self._working = threading.Lock()
        self._ended = threading.Event()  # the turn at work; DBOS still has to note that
        self._claimed: dict[str, float] = {}  # turns that DBOS may not have started yet, and since
        self._dbos = _configured(url, worker)
        _registered[:] = [self._take_one]

    def launch(self) -> None:
        """Begin to take turns. Raises an error of DBOS or of the database."""
        DBOS.listen_queues([])
        with _one_migration(self._url):
            DBOS.launch()
        database = self._dbos._sys_db
        self._claim = database.start_queued_workflows
        database.start_queued_workflows = self._claim_one  # type: ignore[method-assign]
        self.listen()

    def _claim_one(self, *args: Any, **more: Any) -> Any:
        """Claim turns of a queue, unless this process has one: of any of its queues.

        The limit of DBOS is one of each queue. A claimed turn counts before DBOS has started it.
        """
        with self._claiming:
            is_free = not self._is_closed and self.is_idle()
            keys, reason = self._claim(*args, **more) if is_free else ([], None)
            if keys:
                self._ended.clear()
                self._claimed = dict.fromkeys(keys, time.monotonic())
        if is_free and not keys:
            time.sleep(_POLLING)
        elif not keys:
            self._ended.wait(_POLLING)  # then the next turn can begin at once
        return keys, reason

    def is_idle(self) -> bool:
        """Return whether no turn is at work in this process."""
        if self._dbos._active_workflows_set.activeList():
            return False
        return all(time.monotonic() - since > _STARTING for since in self._claimed.values())

    def _take_one(self, project: str, run: str, number: int, steps: Steps) -> str:
        try:
            with self._working:  # the slot is for one turn, whatever the queues do
                return self._take(project, run, number, steps)
        finally:
            self._claimed = {}
            self._ended.set()

    def listen(self) -> None:
        """Take turns from every queue of the project whose labels this worker has."""
        self._open_queue(self._project)
        names = [queue.name for queue in DBOS.list_queues()]
        self._dbos._listening_queues = [name for name in names if self._serves(name)]

    def _serves(self, queue: str) -> bool:
        project, *labels = queue.split("+")
        return project == self._project and self._labels.issuperset(labels)

    def _open_queue(self, name: str) -> None:
        if name not in self._queues:
            DBOS.register_queue(
                name,
                worker_concurrency=1,
                polling_interval_sec=_AT_ONCE,
                on_conflict="never_update",
            )
            self._queues.add(name)

    def enqueue(self, turn: Turn) -> None:
        """Put a turn into its queue; a turn that was there before stays what it is."""
        self._open_queue(turn.queue)
        priority = min(max(_LOWEST - turn.priority, 1), 2 * _LOWEST)
        options: Any = {
            "workflow_name": _TURN,
            "queue_name": turn.queue,
            "workflow_id": turn.key,
            "app_version": _PROTOCOL,
            "priority": priority,
        }
        DBOS.enqueue_workflow_with_options(options, turn.project, turn.run, turn.number)

    def recover(self, find_alive: Callable[[], Collection[str]]) -> list[str]:
        """Queue again the turns of the project whose process is not alive; return their keys.

        The processes are looked up last: one that began to live meanwhile keeps its turn. If this
        process is idle, its own turns count too: the database gave them to it, and the answer was
        lost with the connection.
        """
        with self._claiming:
            pending = DBOS.list_workflows(
                status="PENDING",
                workflow_id_prefix=f"{self._project}/",
                load_input=False,
                load_output=False,
            )
            lost = {self._worker} if self.is_idle() else set[str]()
        alive = set(find_alive()) - lost
        found = [
            one for one in pending if one.executor_id not in alive and one.executor_id is not None
        ]
        for one in found:
            database = self._dbos._sys_db
            database.reenqueue_for_recovery(
                one.workflow_id, [str(one.executor_id)], one.queue_name or self._project
            )
        return [one.workflow_id for one in found]

    def waiting(self, keys: Collection[str]) -> set[str]:
        """Return which of these turns are in a queue or at work."""
        if not keys:
            return set()
        found = DBOS.list_workflows(
            workflow_ids=list(keys), status=UNFINISHED, load_input=False, load_output=False
        )
        return {one.workflow_id for one in found}

    def prune(self, before: float) -> int:
        """Delete the turns of the project that ended before a time; return how many."""
        limit = datetime.fromtimestamp(before, UTC).isoformat()
        found = DBOS.list_workflows(
            workflow_id_prefix=f"{self._project}/",
            status=FINISHED,
            completed_before=limit,
            load_input=False,
            load_output=False,
            limit=_MOST_PRUNED,
        )
        if found:
            DBOS.delete_workflows([one.workflow_id for one in found])
        return len(found)

    def close(self) -> None:
        """Take no more turns. The one at work goes on."""
        self._is_closed = True

    def destroy(self) -> None:
        """Stop the threads and close the connections."""
        DBOS.destroy()


_registered: list[Callable[[str, str, int, Steps], str]] = []


@DBOS.workflow(name=_TURN, max_recovery_attempts=_NO_MOST)
def _turn(project: str, run: str, number: int) -> str:
    """The workflow: DBOS knows it by its name, so it is a function of this module."""

    def step(name: str, function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return DBOS.run_step({"name": name}, function)

    return _registered[0](project, run, number, step)


def _configured(url: str, worker: str) -> DBOS:
    # Results are JSON. The default is pickle, which runs code when it is read, and DBOS would still
    # read it from a row that says so. A person who can write to the database can make such a row.
    DefaultSerializer.deserialize = _refuse_pickle  # type: ignore[method-assign, assignment]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DBOS(
            config={
                "name": _NAME,
                "system_database_url": _for_dbos(url),
                "serializer": DBOSPortableJSONSerializer(),
                "application_version": _PROTOCOL,
                "executor_id": worker,
                "log_level": os.environ.get("ROODA_FLEET_LOG_LEVEL", "ERROR"),
                "enable_otlp": False,
                "sys_db_pool_size": 5,
                "sys_db_idle_transaction_timeout_sec": LONGEST_PAUSE,
                "use_listen_notify": False,  # rooda waits for nothing that DBOS would announce
            }
        )


def _refuse_pickle(_: object, text: str) -> Any:
    message = f"a value of {len(text)} characters is pickled, which rooda never does: not read"
    raise ValueError(message)


def _for_dbos(url: str) -> str:
    if url.startswith("sqlite:"):
        return url
    driver = make_url(url).set(drivername="postgresql+psycopg")
    patience = {name: str(value) for name, value in PATIENCE.items() if name not in driver.query}
    driver = driver.update_query_dict(patience)
    return driver.render_as_string(hide_password=False)


@contextlib.contextmanager
def _one_migration(url: str) -> Iterator[None]:
    """Let one process at a time make DBOS's tables in a SQLite file."""
    if not url.startswith("sqlite:"):
        yield
        return
    path = f"{make_url(url).database}.lock"
    with open(path, "a") as file:  # noqa: PTH123 - a lock, not a text
        os.chmod(path, 0o600)  # noqa: PTH101 - likewise
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
