"""What the live pages get: the list of runs, and one run."""

import time
from collections.abc import Mapping, Sequence

from rooda.front.web import fragments
from rooda.front.web.hub import Message
from rooda.front.web.run_cards import RunCards
from rooda.front.web.sources import FoundRun, NotThere, Sources
from rooda.views.model.summary import RunSummary
from rooda.views.run_feed import RunFeed

_OLDEST = 5.0  # seconds: of a run at work, the times grow
_MANY = 60  # iterations: then they are brought up to date less often
_PARTS_WITH_TIMES = ("head", "timeline")


class _Sent:
    """Remembers the parts that the readers have, and passes on those that are new."""

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}

    def new(self, parts: Mapping[str, str]) -> list[Message]:
        found = {name: html for name, html in parts.items() if self._parts.get(name) != html}
        self._parts |= found
        return [Message(part=name, html=html) for name, html in found.items()]


class RunsFeed:
    """All runs of the machine."""

    def __init__(self, cards: RunCards) -> None:
        self._cards = cards
        self._last: object = None
        self._sent = _Sent()

    def look(self) -> Sequence[Message]:
        """Return the parts of the list that have changed."""
        cards = self._cards.cards()
        if cards is self._last:
            return []
        self._last = cards
        return self._sent.new(fragments.list_parts(cards, self._cards.troubles))

    def close(self) -> None:
        """Nothing is open."""


class OneRunFeed:
    """One run: its page, and the words of the agent as they come."""

    def __init__(self, sources: Sources, found: FoundRun) -> None:
        self._sources = sources
        self._key, self._run = found.key, found.row.run
        self._feed = RunFeed(found.place, found.row.run, sources.masker(), sources.environ)
        self._sent = _Sent()
        self._last: RunSummary | None = None
        self._at = 0.0

    def look(self) -> Sequence[Message]:
        """Return what has changed."""
        news = self._feed.look()
        messages: list[Message] = []
        if news.summary is not None:
            known = fragments.run_values(news.summary, self._key)
            messages += self._sent.new(fragments.run_parts(known))
            messages += self._sent.new(fragments.row_parts(known))
            self._keep(news.summary)
        elif self._is_old():
            messages += self._times()
        messages += self._sent.new({"trouble": fragments.trouble(news.trouble)})
        if news.text:
            messages.append(Message(text=news.text))
        return messages

    def close(self) -> None:
        """Close the session log."""
        self._feed.close()

    def _keep(self, summary: RunSummary) -> None:
        self._last, self._at = summary, time.monotonic()

    def _is_old(self) -> bool:
        if self._last is None or not self._last.is_running:
            return False
        oldest = _OLDEST if len(self._last.iterations) < _MANY else 3 * _OLDEST
        return time.monotonic() - self._at > oldest

    def _times(self) -> list[Message]:
        """Return the parts with times that have grown."""
        try:
            summary = self._sources.find(self._key, self._run).summary()
        except NotThere:
            return []
        self._keep(summary)
        known = fragments.run_values(summary, self._key)
        parts = fragments.run_parts(known, _PARTS_WITH_TIMES)
        return self._sent.new(parts | fragments.row_parts(known, most=1))
