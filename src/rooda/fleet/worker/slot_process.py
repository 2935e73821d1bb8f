"""One slot of a worker, as a process: `python -m rooda.fleet.worker.slot_process`.

Its worker sends the plan on standard input and keeps that open: the process ends with its worker.
SIGTERM lets it end after the iteration at work, a second one at once.
"""

import contextlib
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from msgspec import json
from sqlalchemy.exc import SQLAlchemyError

from rooda.fleet.remote.patience import until_reached
from rooda.fleet.slot.slot import Slot, slots_root
from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.workers import WorkerRow
from rooda.fleet.worker.control import Control
from rooda.fleet.worker.durable import Durable, Steps
from rooda.fleet.worker.heart import Heart
from rooda.fleet.worker.slot_plan import REPLACE, SlotPlan, for_programs
from rooda.fleet.worker.slot_work import SlotWork
from rooda.fleet.worker.turn import TurnPlace, TurnWork, take_turn
from rooda.world.state.record_place import fleet_in

_GOODBYE = 5.0  # seconds for the database to answer to it
_LAST_NOTES = 5.0  # seconds for the notes of a run that was stopped at once
_LOOK_EVERY = 0.1  # seconds between two looks at whether the last turn has ended


class SlotProcess:
    """The parts of a slot process, and how it ends."""

    def __init__(self, plan: SlotPlan, environ: Mapping[str, str]) -> None:
        self._plan = plan
        self._control = Control()
        self._stopped = threading.Event()
        self._is_registered = False
        self._waits_for = ""
        self._host = socket.gethostname()
        self._worker = f"{self._host}-{plan.slot}-{uuid.uuid4().hex[:12]}"
        threading.Thread(target=self._watch_worker, daemon=True).start()
        self._slot = self._open_slot(environ)
        self._store = FleetStore(plan.url, leave_out=_say)
        self._work = SlotWork(self._slot, plan, self._worker, self._control, self._explain, _say)
        self._durable = Durable(plan.url, self._worker, plan.project, plan.labels, self._take)

    def _open_slot(self, environ: Mapping[str, str]) -> Slot:
        plan = self._plan

        def tell(words: str) -> None:
            if words:
                _say(words)

        return until_reached(
            lambda: Slot.open(
                slots_root(environ),
                plan.project,
                plan.slot,
                plan.remote,
                checkout=None if plan.checkout is None else Path(plan.checkout),
                fence=None if plan.fence is None else Path(plan.fence),
                environ=for_programs(environ),
                tell=tell,
            ),
            is_stopped=lambda: False,  # SIGTERM still ends this process at once
            tell=tell,
        )

    def run(self) -> int:
        """Work until the worker wants an end; return the exit code."""
        signal.signal(signal.SIGTERM, lambda *_: self._drain())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker hears it too, and decides
        plan = self._plan
        self._is_registered = True
        self._store.workers.register(
            WorkerRow(self._worker, plan.project, self._host, os.getpid(), plan.slot, plan.labels)
        )
        self._durable.launch()
        heart = Heart(
            self._store,
            self._durable,
            self._control,
            plan.project,
            self._worker,
            plan.takeover,
            self._replace,
        )
        beating = threading.Thread(target=heart.run, args=[self._stopped], daemon=True)
        beating.start()
        while not (self._control.is_draining and self._durable.is_idle()):
            self._stopped.wait(_LOOK_EVERY)
            if self._control.is_late(_LAST_NOTES):  # the database is away: others will find out
                break
        self._stopped.set()
        self._leave()
        return 0

    def _take(self, project: str, run: str, number: int, steps: Steps) -> str:
        place = TurnPlace(self._worker, f"{self._host}, slot {self._plan.slot}", self._replace)
        work = TurnWork(
            project,
            run,
            number,
            store=self._store,
            slot=self._work,
            control=self._control,
            place=place,
        )
        return take_turn(work, steps)

    def _drain(self) -> None:
        """End after this iteration; at the second call, at once."""
        if self._control.is_draining:
            self._control.hurry()
        self._durable.close()
        self._control.drain()
        self._say_what_waits()

    def _watch_worker(self) -> None:
        """Give up when the worker is gone: standard input ends."""
        while os.read(0, 4096):
            pass
        self._control.give_up()
        self._leave()
        os._exit(1)

    def _replace(self, reason: str) -> NoReturn:
        """End this process at once: the run belongs to another one."""
        _say(f"slot {self._plan.slot} starts again: {reason}")
        self._control.give_up()
        self._leave()
        os._exit(REPLACE)

    def _leave(self) -> None:
        """Say goodbye, unless the database does not answer: then the silence tells the others."""
        if not self._is_registered:
            return
        leaving = threading.Thread(target=self._say_goodbye, daemon=True)
        leaving.start()
        leaving.join(_GOODBYE)

    def _say_goodbye(self) -> None:
        with contextlib.suppress(SQLAlchemyError):
            self._store.workers.leave(self._worker)

    def _say_what_waits(self) -> None:
        """Tell the worker that an end waits for git, which has to get the last iteration."""
        if self._control.is_draining and self._waits_for and self._work.unpublished:
            _say(
                f"slot {self._plan.slot} waits for git before it ends: {self._work.unpublished} is "
                f"done and not published: {self._waits_for}"
            )

    def _explain(self, run: str, words: str) -> None:
        """Show what the run waits for, if the database can be reached."""
        self._waits_for = words
        self._say_what_waits()
        with contextlib.suppress(SQLAlchemyError):
            self._store.explain(self._plan.project, run, self._worker, words)


def _say(words: str) -> None:
    """Tell the worker, which may be gone."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{words}\n")
        sys.stderr.flush()


def _read_plan() -> SlotPlan:
    """Return the plan: the first line of standard input. No buffer: the rest is the lifeline."""
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            sys.exit(1)
        line += piece
    return json.decode(line, type=SlotPlan)


def main() -> None:
    """Run one slot."""
    plan = _read_plan()
    with fleet_in(None if plan.state is None else Path(plan.state)):
        code = SlotProcess(plan, os.environ).run()
        sys.stdout.flush()
        os._exit(code)  # threads of the engine may wait for the database for ever


if __name__ == "__main__":
    main()
