"""A worker and its slot processes."""

import fcntl
import os
import time
from pathlib import Path

import pytest

from rooda.fleet.slot.slot import project_folder, slots_root
from rooda.fleet.worker.slot_plan import SlotPlan
from rooda.fleet.worker.supervisor import Worker
from support.fleet import Fleet


@pytest.mark.real
def test_the_words_of_a_slot_process_reach_the_user_through_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    for name, value in fleet.environ().items():
        monkeypatch.setenv(name, value)
    folder = slots_root(os.environ) / project_folder(fleet.project) / "1"
    folder.mkdir(mode=0o700, parents=True)
    said: list[str] = []
    worker = Worker([SlotPlan(fleet.url, fleet.remote, fleet.project, 1)], said.append)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker has the slot
        end = time.monotonic() + 30
        while not said and time.monotonic() < end:
            worker.look_after()
            time.sleep(0.05)
        assert "slot 1 waits for another process" in said[0]
        worker.stop()
        while not worker.is_gone:
            time.sleep(0.05)
    worker.close()
    fleet.close()
