"""The record of the current folder, for commands that read it."""

import os
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.masking import MASK_NOTHING, Masker
from rooda.front.masking import masker_here
from rooda.plan.preflight.state import readable_home, record_place
from rooda.plan.world import World, this_world
from rooda.record.json_objects import last_attempts, with_summary
from rooda.record.rows import IterationRow, NoRecord, NothingRecorded, RunRow, StoreError
from rooda.record.run_names import LAST, from_end
from rooda.world.git.work_tree import folders_to_top, had_repository, has_repository
from rooda.world.state.folder import StateFolder
from rooda.world.state.record_place import RecordPlace, has_record

if TYPE_CHECKING:
    from rooda.record.reader import RecordReader

_T = TypeVar("_T")
_CHOSEN = "rooda.record"  # the folder that the user named, in the context of the command
_ITERATION = re.compile(r"[0-9]{1,6}")


def _choose(ctx: click.Context, _: click.Parameter, folder: str | None) -> None:
    if folder is not None:
        # As a run with `--record` finds it: rooda follows no link in place of a state folder.
        ctx.meta[_CHOSEN] = StateFolder(Path(os.path.realpath(folder)))


RECORD = click.option(
    "--record",
    metavar="DIR",
    expose_value=False,
    callback=_choose,
    help="Read the record in DIR, of a run with `--record` [default: that of this work tree].",
)


def chosen_record() -> StateFolder | None:
    """Return the folder with the record that the user named (`RECORD`); None if there is none."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_CHOSEN)


def place_here(root: Path | None = None) -> RecordPlace:
    """Return the record of the current folder, or of a project's root. Raises InvalidInput.

    Every command that reads a record finds it here. The user may have named its folder (`RECORD`).
    Tells the user of a record of another tree.
    """
    world = this_world()
    folder = root or world.folder
    if (chosen := chosen_record()) is not None:
        if not has_record(chosen):
            raise InvalidInput([Problem(f"there is no record in {chosen}")])
        return RecordPlace(world.workspace(), chosen)
    readable_home(world)
    found = settle_here(root)
    if found is None:
        return record_place(world, root)
    if found.tree not in folders_to_top(folder):
        click.echo(f"This work tree has no record; this is the one of {found.tree}.", err=True)
    return found


def settle_here(root: Path | None = None) -> RecordPlace | None:
    """Return the nearest record; first bring one to its place, after a move or an update."""
    # Pressing Tab loads this module too, and needs no database.
    from rooda.record.settle import settled

    world = this_world()
    folder = root or world.folder
    return settled(folder, world.environ, lambda line: click.echo(one_line(line), err=True))


def shown_path(path: Path) -> str:
    """Return a path as a user writes it: `~/shop`."""
    home = this_world().home
    is_below_home = home is not None and path.is_relative_to(home)
    return f"~/{path.relative_to(home)}" if is_below_home and home else str(path)


def refuse_run_around(workspace: Path, row: RunRow) -> None:
    """Raise InvalidInput if the run is one of the work tree around this one."""
    if _is_run_around(workspace, row):
        top = folders_to_top(this_world().folder)[-1]
        message = f"run {row.run} is one of {workspace}, the work tree around {top}"
        raise InvalidInput([Problem(message, "Go to that folder first")])


def _is_run_around(workspace: Path, row: RunRow) -> bool:
    """Return whether the run is one of the work tree around this one.

    A repository that was made during the run is a part of the run's work tree.
    """
    within = folders_to_top(this_world().folder)
    top = within[-1]
    if workspace in within or not has_repository(top):
        return False
    try:
        began, ended = map(_seconds, (row.started_at, row.ended_at))
    except ValueError:
        return False  # the agent has changed the record
    return had_repository(top, began) or not had_repository(top, ended)


def world_of_next_run() -> World:
    """Return the world with the record that notes go to: that of the next run.

    In a repository that the agent of the last run has made, it is the record of that run.
    """
    world, found = this_world(), settle_here()
    if found is None or found.tree in folders_to_top(world.folder):
        return world
    last = Recorded.at(found, MASK_NOTHING).runs(limit=1)
    is_other = not last or _is_run_around(found.tree, last[0])
    return world if is_other else World(world.folder, world.environ, found)


def _seconds(text: str | None) -> float:
    """Return a recorded time in seconds since the epoch; that of now for a missing one."""
    return time.time() if text is None else datetime.fromisoformat(text).timestamp()


class Recorded(Struct, frozen=True):
    """The record that reading commands read."""

    place: RecordPlace
    reader: "RecordReader"
    masker: Masker = MASK_NOTHING

    @property
    def workspace(self) -> Path:
        """The top of the work tree."""
        return self.place.tree

    @property
    def state(self) -> StateFolder:
        """The folder with the record."""
        return self.place.state

    @classmethod
    def here(cls, *, unmasked: bool = False) -> "Recorded":
        """Return the record of the current folder, without secrets unless the user wants them."""
        return cls.at(place_here(), masker_here(unmasked=unmasked))

    @classmethod
    def at(cls, place: RecordPlace, masker: Masker) -> "Recorded":
        """Return the record of a work tree as a view shows it."""
        # Pressing Tab loads this module too, and needs no database.
        from rooda.record.reader import RecordReader

        return cls(place, RecordReader(place.state, mask=masker.tree), masker)

    def run(self, name: str | None) -> RunRow:
        """Return a run by its name, or the last one. Raises InvalidInput."""
        try:
            row = self.reader.run(name)
        except StoreError as error:
            raise _problem(error) from None
        return self._masked([row])[0]

    def _masked(self, rows: list[RunRow]) -> list[RunRow]:
        """Return the rows without the secrets that the runs were given."""
        if self.masker.is_on:
            from rooda.record.given_variables import given_variables  # see `at`

            for variables in given_variables(this_world(), *rows):
                self.masker.learn(variables)
        return self.masker.tree(rows)

    def runs(
        self,
        *,
        status: str | None = None,
        procedure: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> list[RunRow]:
        """Return the runs that match, newest first; check dates before. Raises InvalidInput."""
        try:
            rows = self.reader.runs(
                status=status, procedure=procedure, since=since, until=until, limit=limit
            )
        except NoRecord:
            return []
        except StoreError as error:
            raise _problem(error) from None
        return self._masked(rows)

    def iterations(self, run: str) -> list[IterationRow]:
        """Return the iterations of a run; of several attempts, the last one."""
        try:
            return last_attempts(self.reader.iterations(run))
        except StoreError as error:
            raise _problem(error) from None

    def iteration(self, run: RunRow, number: int) -> IterationRow:
        """Return one iteration; -1 is the last one, -2 the one before. Raises InvalidInput."""
        rows = self.iterations(run.run)
        if number < 0:
            found = rows[number] if -number <= len(rows) else None
        else:
            found = next((row for row in rows if row.number == number), None)
        if found is None:
            known = (
                f"it has {', '.join(str(row.number) for row in rows)}" if rows else "it has none"
            )
            message = f"run {run.run} has no iteration {number}; {known}"
            raise InvalidInput([Problem(message, "Choose one with `rooda show`")])
        return found

    def summed_up(self, row: RunRow) -> RunRow:
        """Return the run with a summary of its iterations as they are now."""
        return with_summary(row, self.iterations(row.run))


def readable_record(answer: Callable[[], _T]) -> _T:
    """Return what the record answers. Raises InvalidInput if it can't be read."""
    try:
        return answer()
    except StoreError as error:
        raise _problem(error) from None


def _problem(error: StoreError) -> InvalidInput:
    advice = "Choose a run from `rooda history`"
    if isinstance(error, NothingRecorded):
        advice = "Start one with `rooda PROCEDURE` (`rooda list` shows the procedures)"
    elif not isinstance(error, NoRecord):
        advice = ""  # the message says what to do
    return InvalidInput([Problem(str(error), advice)])


def check_date(text: str | None) -> None:
    """Raise InvalidInput if the user wrote something else than a date."""
    from rooda.record.reader import moment  # see above

    try:
        if text is not None:
            moment(text, is_end=True)
    except (ValueError, OverflowError):
        problem = Problem(f"{text!r} is not a date", "Write 2025-03-01, or 2025-03-01T18:30")
        raise InvalidInput([problem]) from None


def split_words(words: Sequence[str]) -> tuple[str | None, int | None]:
    """Return RUN and ITERATION, each of which may be missing.

    A single word is ITERATION if it is a number of at most six digits, else RUN. ITERATION is below
    0 if it counts from the end: -1 for `last`.
    """
    *rest, last = [*words] or [""]
    if not rest:
        return (None, int(last)) if _ITERATION.fullmatch(last) else (last or None, None)
    return rest[0], iteration_number(last)


def iteration_number(word: str) -> int:
    """Return the number of an iteration, -1 for `last` and `-1`, and so on. Raises InvalidInput."""
    place = from_end(word)
    if place is not None:
        return -place
    if not _ITERATION.fullmatch(word):
        raise InvalidInput(
            [
                Problem(
                    f"{word!r} is not the number of an iteration",
                    f"Write RUN and then a number, or `{LAST}`",
                )
            ]
        )
    return int(word)
