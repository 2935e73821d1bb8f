"""A process with a durable engine for a test: `python -m support.fleet_engine` with a plan as JSON.

A turn has three steps. Each writes a line into `log`; the second step of a run `held-...` waits
until the file `go-WORKER` is there. The file `recover-WORKER` asks the process to recover the turns
of workers that are not named in it.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from rooda.fleet.worker.durable import Durable, Steps, Turn

_TICK = 0.02


class EnginePlan(Struct):
    url: str
    worker: str
    folder: str
    labels: list[str] = []
    turns: list[Turn] = []


class _Engine:
    def __init__(self, plan: EnginePlan) -> None:
        self._plan = plan
        self._folder = Path(plan.folder)
        self._durable = Durable(plan.url, plan.worker, "project", plan.labels, self._take)

    def run(self) -> None:
        self._durable.launch()
        for turn in self._plan.turns:
            self._durable.enqueue(turn)
        self._mark(f"launched-{self._plan.worker}")
        asked = self._folder / f"recover-{self._plan.worker}"
        while not (self._folder / "end").exists():
            self._durable.listen()
            if asked.exists():
                self._durable.recover(lambda: asked.read_text().split())
                asked.rename(asked.with_suffix(".done"))
            time.sleep(_TICK)

    def _take(self, _: str, run: str, number: int, steps: Steps) -> str:
        for name in ("one", "two", "three"):
            steps(name, lambda name=name: self._step(run, number, name))  # type: ignore[misc]
        self._mark(f"ended-{run}-{number}")
        return "done"

    def _step(self, run: str, number: int, name: str) -> dict[str, Any]:
        worker = self._plan.worker
        self._mark(f"began-{worker}-{run}-{name}")
        if run.startswith("held-") and name == "two":
            while not (self._folder / f"go-{worker}").exists():
                time.sleep(_TICK)
        with (self._folder / "log").open("a") as log:
            log.write(f"{worker} {run} {number} {name}\n")
        return {"worker": worker}

    def _mark(self, name: str) -> None:
        (self._folder / name).touch()


if __name__ == "__main__":
    _Engine(json.decode(sys.stdin.buffer.readline(), type=EnginePlan)).run()
    os._exit(0)  # a step that waits for its test would keep the process
