"""The addresses of the page, and what each of them answers."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from rooda.front.web import fragments
from rooda.front.web.guard import Guard
from rooda.front.web.hub import Feed, Hub, Message, Threads
from rooda.front.web.sources import Fleets, FoundRun, NotThere, RunCards, Sources
from rooda.views.model.summary import RunSummary
from rooda.views.report import make
from rooda.views.report.details import DetailReader
from rooda.views.report.page import TEMPLATES
from rooda.views.run_feed import RunFeed

# What the live pages get: the list of runs, and one run.


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


_STATIC = Path(__file__).with_name("static")
_FILES = {
    "/report.css": (TEMPLATES / "style.css", "text/css"),
    "/report.js": (TEMPLATES / "script.js", "text/javascript"),
    "/web.css": (_STATIC / "web.css", "text/css"),
    "/web.js": (_STATIC / "web.js", "text/javascript"),
    "/icon.svg": (_STATIC / "icon.svg", "image/svg+xml"),
}


class Pages(Struct):
    """Answers requests; create it in the event loop of the server."""

    sources: Sources
    cards: RunCards
    fleets: Fleets
    threads: Threads
    hub: Hub
    on_trouble: Callable[[str, Exception], None]

    def guarded(self, token: str, port: int) -> Guard:
        """Return the app that a server serves on this port."""
        routes = [
            Route("/", partial(_static, fragments.index(), "text/html")),
            *(
                Route(path, partial(_static, file.read_text("utf-8"), kind))
                for path, (file, kind) in _FILES.items()
            ),
            Route("/api/runs", self.runs),
            Route("/api/run/{key}/{run}", self.run),
            Route("/api/iteration/{key}/{run}/{number}", self.iteration),
            Route("/api/report/{key}/{run}", self.report),
            Route("/api/download/{key}/{run}", self.download),
            Route("/api/fleet", self.fleet),
            Route("/api/live/runs", self.live_runs),
            Route("/api/live/run/{key}/{run}", self.live_run),
        ]
        handlers = {NotThere: _not_there, HTTPException: _no_address, Exception: self._failed}
        app = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
        app.router.redirect_slashes = False
        return Guard(app, token, port)

    async def runs(self, _: Request) -> Response:
        """All runs."""

        def make_page() -> str:
            cards, has_fleet = self.cards.cards(), self.fleets.are_there()
            return fragments.run_list(cards, self.cards.troubles, has_fleet=has_fleet)

        return await self._page(make_page)

    async def run(self, request: Request) -> Response:
        """One run."""
        key, run = _names(request)

        def make_page() -> str:
            summary = self.sources.find(key, run).summary()
            return fragments.run_page(summary, key, has_fleet=self.fleets.are_there())

        return await self._page(make_page)

    async def iteration(self, request: Request) -> Response:
        """One iteration."""
        key, run = _names(request)
        number = request.path_params["number"]

        def make_page() -> str:
            found = self.sources.iteration(key, run, number)
            return fragments.iteration_page(found, key, has_fleet=self.fleets.are_there())

        return await self._page(make_page)

    async def report(self, request: Request) -> Response:
        """The report as a part of the page."""
        key, run = _names(request)

        def make_page() -> str:
            found = self.sources.find(key, run)
            return fragments.report_page(found, has_fleet=self.fleets.are_there())

        return await self._page(make_page)

    async def download(self, request: Request) -> Response:
        """The report as a file."""
        key, run = _names(request)

        def make_file() -> str:
            found = self.sources.find(key, run)
            details = DetailReader(found.place, masker=found.masker)
            return "".join(make.html(found.summary(), found.place, details))

        response = await self._page(make_file)
        response.headers["Content-Disposition"] = f'attachment; filename="rooda-{quote(run)}.html"'
        return response

    async def fleet(self, _: Request) -> Response:
        """The fleets."""
        return await self._page(lambda: fragments.fleet_page(self.fleets.tables()))

    async def live_runs(self, _: Request) -> "Stream":
        """All runs, as they change."""
        return Stream(self.hub, "runs", partial(RunsFeed, self.cards))

    async def live_run(self, request: Request) -> "Stream":
        """One run, as it goes on."""
        key, run = _names(request)
        found = await self.threads.run(partial(self.sources.find, key, run))
        return Stream(self.hub, f"{key}/{run}", partial(OneRunFeed, self.sources, found))

    async def _failed(self, request: Request, error: Exception) -> Response:
        self.on_trouble(request.url.path, error)
        words = "rooda has a fault here; the terminal of `rooda web` says which one."
        return PlainTextResponse(f"{words}\n", 500)

    async def _page(self, make_page: Callable[[], str]) -> HTMLResponse:
        return HTMLResponse(await self.threads.run(make_page))


class Stream(Response):
    """An answer that goes on until the reader leaves, or is dropped."""

    def __init__(self, hub: Hub, name: str, make_feed: Callable[[], Feed]) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._hub, self._name, self._make_feed = hub, name, make_feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines of the feed."""
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] != "HEAD":
            tasks = [
                asyncio.create_task(self._send_lines(send)),
                asyncio.create_task(_until_gone(receive)),
            ]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        await send({"type": "http.response.body", "body": b""})

    async def _send_lines(self, send: Send) -> None:
        async with self._hub.reading(self._name, self._make_feed) as lines:
            async for line in lines:
                await send({"type": "http.response.body", "body": line, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _static(content: str, kind: str, _: Request) -> Response:
    return Response(content, media_type=kind)


async def _not_there(_: Request, error: NotThere) -> Response:
    return PlainTextResponse(f"{error}\n", 404)


async def _no_address(_: Request, error: HTTPException) -> Response:
    return PlainTextResponse("There is nothing at this address.\n", error.status_code)


def _names(request: Request) -> tuple[str, str]:
    return request.path_params["key"], request.path_params["run"]
