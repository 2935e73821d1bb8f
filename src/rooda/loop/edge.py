"""Where the loop touches the world."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from rooda.iteration.history import IterationHistory
from rooda.iteration.tracker import FileChangeTracker
from rooda.loop.events import Event
from rooda.process.interrupts import Interrupts
from rooda.process.request import Listener, Request, Result
from rooda.text.zones import local_now

Execute = Callable[[Request, Interrupts, Listener], Result]


@dataclass(frozen=True, slots=True)
class Edge:
    """Who is told, who may interrupt, who starts programs and who looks at files.

    `run` is the run's name. Without a tracker nobody can say what changed. `now` is the wall clock,
    `rest` lets time pass, `chance` is anything from 0 to 1.
    """

    emit: Callable[[Event], None]
    interrupts: Interrupts
    execute: Execute
    monotonic: Callable[[], float] = time.monotonic
    tick: float | None = None
    run: str = ""
    tracker: FileChangeTracker | None = None
    history: IterationHistory = field(default_factory=IterationHistory)
    now: Callable[[], datetime] = local_now
    rest: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random
