"""A view of events that sends messages about a run: at its end, and at other moments."""

from collections.abc import Callable
from typing import TypeVar

from rooda.loop.events.agent import StillWaiting, WaitStarted
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.events.messages import MessageNotSent
from rooda.loop.events.run import RunEnded, RunStarted
from rooda.views.messages.message import (
    Message,
    Named,
    blocked_message,
    end_message,
    failure_message,
    killed_message,
    waiting_message,
)
from rooda.views.messages.notifier_client import NotifierClient
from rooda.views.model.summary import RunSummary

_E = TypeVar("_E")

QUIET = 300.0  # seconds between two messages of one kind
_LOOKS = (IterationStarted, IterationEnded, WaitStarted, StillWaiting, RunEnded)


def _is_blocked(event: IterationEnded) -> bool:
    return event.kind is not None and event.kind.row.is_blocked


class Notifications:
    """Sends a message at each of the `moments`, and rings the bell where there is one.

    `summary` returns the run as the record has it now, or None. `tell` gets what was not sent.
    """

    def __init__(
        self,
        named: Named,
        moments: tuple[str, ...],
        client: NotifierClient | None,
        *,
        summary: Callable[[], RunSummary | None],
        tell: Callable[[MessageNotSent], None],
        bell: Callable[[], None] = lambda: None,
    ) -> None:
        self._named = named
        self._moments = moments
        self._client = client
        self._summary = summary
        self._tell = tell
        self._bell = bell
        self._sent: dict[str, float] = {}
        self._skipped: dict[str, int] = {}

    def __call__(self, stamped: Stamped) -> None:
        """Send a message if this is one of the moments."""
        event = stamped.event
        if isinstance(event, _LOOKS):
            self._report()
        match event:
            case RunStarted() if self._client is not None:
                self._client.leave(killed_message(self._named))
            case IterationEnded() if _is_blocked(event) and self._has("blocked"):
                self._send_seldom("blocked", stamped, blocked_message, event)
            case IterationEnded() if event.is_raised():
                self._send_seldom("failure", stamped, failure_message, event)
            case WaitStarted() if event.kind.row.is_reported:
                self._send_seldom("waiting", stamped, waiting_message, event)
            case RunEnded():
                if self._client is not None:
                    self._client.leave(None)
                if self._has("end"):
                    self._send("end", end_message(self._named, event, self._summary()))
                    self._report()

    def _has(self, moment: str) -> bool:
        return moment in self._moments

    def _send_seldom(
        self,
        moment: str,
        stamped: Stamped,
        words: Callable[[Named, _E, int], Message],
        event: _E,
    ) -> None:
        """Send a message, unless one of the same kind was sent a short time ago."""
        if not self._has(moment):
            return
        last = self._sent.get(moment)
        if last is not None and stamped.elapsed - last < QUIET:
            self._skipped[moment] = self._skipped.get(moment, 0) + 1
            return
        self._sent[moment] = stamped.elapsed
        self._send(moment, words(self._named, event, self._skipped.pop(moment, 0)))

    def _send(self, moment: str, message: Message) -> None:
        if self._client is not None:
            self._client.send(moment, message)
        self._bell()

    def _report(self) -> None:
        """Report each target that can't be reached, as often as that happens."""
        if self._client is None:
            return
        for one in self._client.news():
            self._tell(MessageNotSent(one.moment, one.target, one.reason))
        if self._client.trouble:
            trouble, self._client.trouble = self._client.trouble, ""
            self._tell(MessageNotSent("", "", trouble))
