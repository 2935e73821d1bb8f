"""Events as views show them: without secrets."""

from msgspec.structs import replace

from rooda.base.event import Event
from rooda.base.secrets.masking import Masker
from rooda.loop.events.agent import AgentSaid


class EventMasker:
    """Masks the texts of events. What agents say comes line by line, private keys too."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._said = masker.lines()

    def __call__(self, event: Event) -> Event:
        """Return the event without secrets."""
        if isinstance(event, AgentSaid):
            return replace(event, text=self._said(event.text))
        return self._masker.tree(event)
