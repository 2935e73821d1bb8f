"""Records of several work trees, and the full-screen view of them without a terminal."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from textual.pilot import Pilot

from rooda.base.secrets.masking import Masker
from rooda.front.watch.app import WatchApp
from rooda.front.watch.sources import RunPlace, Sources
from rooda.record.rows import IterationRow, RunRow
from rooda.record.run_folders import run_folder
from rooda.record.store import Store
from rooda.views.terminal.table import paragraph
from rooda.world.state.folder import SESSION
from rooda.world.state.lock_note import ProcessIdentity
from support.nights import iteration, night
from support.states import own_state_home, record_at, remember, state_of

NO_FLEET = "This project has no run of a fleet yet."
_PATIENCE = 30.0  # seconds
Talk = Callable[[Pilot[int]], Awaitable[None]]


def at_work(**more: Any) -> RunRow:
    """A run whose process is that of the test: it is at work as long as the test runs."""
    mine = ProcessIdentity.own()
    began = datetime.now(UTC) - timedelta(minutes=41)
    row = night(
        status="running",
        ended_at=None,
        rule=None,
        reason=None,
        exit_code=None,
        started_at=began.isoformat(timespec="milliseconds"),
        pid=mine.pid,
        pid_started=mine.started,
        host=mine.host,
        boot=mine.boot,
    )
    return replace(row, **more)


class Machine:
    """A user with some work trees; every path is below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"HOME": str(folder), **own_state_home()}
        self.masker = Masker(self.environ)

    def keep(
        self, name: str, run: RunRow, rows: Sequence[IterationRow] = (), log: str = ""
    ) -> RunPlace:
        """Write a run into the record of a work tree, and return where it is."""
        tree = self.folder / name
        tree.mkdir(exist_ok=True)
        store = Store(state_of(tree), print)
        for row in rows:
            store.save(iteration=replace(row, run=run.run))
        store.save(run=replace(run, workspace=str(tree)))
        store.close()
        path = run_folder(state_of(tree), run.run) / SESSION
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(log)
        remember(tree)
        return RunPlace(record_at(tree), run.run)

    def app(self, place: RunPlace | None = None) -> WatchApp:
        """The view."""
        sources = Sources(
            self.masker, self.environ, lambda: lambda room: paragraph(NO_FLEET, room=room)
        )
        return WatchApp(sources, place)


def talk_to(app: WatchApp, talk: Talk, size: tuple[int, int] = (100, 30)) -> None:
    """Run the view without a terminal, and press its keys."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await talk(pilot)

    asyncio.run(run())


def seen(app: WatchApp) -> str:
    """What the screen shows, line by line."""
    width, height = app.size
    lines = app.screen._compositor.render_strips(app.size)  # noqa: SLF001 - as a terminal gets it
    return "\n".join(line.text[:width].rstrip() for line in lines[:height])


async def until_seen(pilot: Pilot[int], *words: str) -> str:
    """Wait until all of these words are on the screen, and return all of it."""
    app = pilot.app
    assert isinstance(app, WatchApp)
    return await until(pilot, lambda: seen(app), lambda text: all(one in text for one in words))


async def until(pilot: Pilot[int], look: Callable[[], str], is_right: Callable[[str], bool]) -> str:
    """Wait until a text is right, and return it."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _PATIENCE
    while True:
        text = look()
        if is_right(text):
            return text
        assert loop.time() < end, text
        await pilot.pause(0.05)


def good_rows(number: int) -> list[IterationRow]:
    """So many good iterations."""
    return [iteration(one) for one in range(1, number + 1)]
