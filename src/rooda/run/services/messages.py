"""Start the process that sends messages about a run, and the view that writes them (`notify`)."""

import contextlib
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import PurePath

from rooda.base.secrets.masking import Masker
from rooda.loop.events.emitter import Emitter
from rooda.plan.plan import Plan
from rooda.plan.preflight.validate import moments_of
from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.run.request import Invocation
from rooda.views.model.build import summarize
from rooda.views.model.summary import RunSummary
from rooda.world.state.folder import open_to_append

LOG = "notify.log"  # in the folder of the run


class Notifying:
    """The messages of one run; this one sends none."""

    def listen(self, emitter: Emitter, masker: Masker, bell: Callable[[], None] | None) -> None:
        """Add the view. Call this after the record listens: the last message reads it."""


@contextlib.contextmanager
def notifying(plan: Plan, run: str, invocation: Invocation | None) -> Iterator[Notifying]:
    """Yield the messages of a run as the settings want them.

    Call this before the first agent starts: the process that sends them is not a part of its tree.
    A program that takes a run iteration by iteration (`--pause-after`) tells its user itself.
    """
    is_paused = invocation is not None and invocation.programs.pause_after is not None
    if is_paused or not moments_of(plan.values):
        yield Notifying()
        return
    resume = "" if invocation is None else invocation.commands.named(run).resume
    with contextlib.closing(_Sending(plan, run, resume)) as sending:
        yield sending


class _Sending(Notifying):
    """The messages of a run that sends some."""

    def __init__(self, plan: Plan, run: str, resume: str) -> None:
        from rooda.views.messages.notifier_client import NotifierClient  # noqa: PLC0415 - most runs send none
        from rooda.views.messages.targets import targets_of  # noqa: PLC0415

        self._plan, self._run, self._resume = plan, run, resume
        targets = targets_of(plan.values, plan.tools, os.environ)
        self._has_services = any(one.url for one in targets)
        self._client = None
        if targets:
            with _log(plan, run) as log:
                self._client = NotifierClient(targets, log)

    def listen(self, emitter: Emitter, masker: Masker, bell: Callable[[], None] | None) -> None:
        """Add the view; the bell rings if no service gets the messages."""
        from rooda.views.messages.listener import Notifications  # noqa: PLC0415 - see above
        from rooda.views.messages.message import Named  # noqa: PLC0415

        plan, run = self._plan, self._run

        def summary() -> RunSummary | None:
            try:
                reader = RecordReader.for_view(plan.state, masker.tree)
                now = datetime.now().astimezone()
                return summarize(reader.run(run), reader.each_iteration(run), now)
            except (OSError, StoreError):
                return None  # the agent has deleted the record

        is_silent = bell is None or self._has_services
        view = Notifications(
            Named(PurePath(plan.workspace).name, plan.procedure, run, self._resume),
            moments_of(plan.values),
            self._client,
            summary=summary,
            tell=emitter,
            bell=(lambda: None) if is_silent or bell is None else bell,
        )
        emitter.add_view(view)

    def close(self) -> None:
        """Let the process end after its last message."""
        if self._client is not None:
            self._client.close()


@contextlib.contextmanager
def _log(plan: Plan, run: str) -> Iterator[int]:
    """Yield a descriptor of the log for the results: a file of the run, else nothing."""
    try:
        log = open_to_append(plan.state, f"runs/{run}/{LOG}")
    except OSError:
        log = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        yield log
    finally:
        os.close(log)
