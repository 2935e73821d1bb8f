"""Where the loop touches the world."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rooda.iteration.history import IterationHistory
from rooda.iteration.tracker import FileChangeTracker
from rooda.loop.events import Event
from rooda.process.interrupts import Interrupts
from rooda.process.request import Listener, Request, Result

Execute = Callable[[Request, Interrupts, Listener], Result]


@dataclass(frozen=True, slots=True)
class Edge:
    """Who is told, who may interrupt, who starts programs and who looks at files.

    `run` is the run's name. Without a tracker nobody can say what changed.
    """

    emit: Callable[[Event], None]
    interrupts: Interrupts
    execute: Execute
    monotonic: Callable[[], float] = time.monotonic
    tick: float | None = None
    run: str = ""
    tracker: FileChangeTracker | None = None
    history: IterationHistory = field(default_factory=IterationHistory)
