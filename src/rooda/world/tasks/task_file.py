"""The task file of a run (`tasks`): the tasks in it now.

An agent can put anything in its place: a huge file, a pipe, a link. Each form of a task file has
its reader here; Markdown is the only one so far.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from rooda.base.markdown import (
    LONGEST,
    LineKind,
    MarkdownLine,
    label_of,
    lines_of,
    plain,
    shortened,
)
from rooda.world.files.sight import OutOfSightError, Sight, read_named

# The tasks of an implementation plan, as people and agents write them in Markdown.
#
# A task is a heading with a `Status:` line below it, or a check box. The check boxes below such a
# heading are the steps of the task. A heading above such headings is a group of tasks and not a
# task itself, whatever status it has; the same is true of the title of the plan.


# Characters that may be in a check box. A task that is put off (`-`, `>`) is not done: it is open.
_BOX_MARKS = "xX~/!✓✔✅☑🚧⛔🚫<>?*-"
_PROGRESS_MARKS, _BLOCKED_MARKS = ("~", "/", "🚧"), ("!", "⛔", "🚫")
_COMPLETE_MARKS = ("x", "X", "✓", "✔", "✅", "☑")
_COMPLETE = re.compile(r"(?:completed?|done)\b")
_IN_PROGRESS = re.compile(r"(?:work[ _-])?in[ _-]?progress\b|wip\b")
_BLOCKED = re.compile(r"(?:[\w ]{1,30}[(,;:\u2013\u2014-]\s*)?(?:blocked|on[ _-]hold)\b")
_COMPLETE_SIGNS, _PROGRESS_SIGNS = frozenset("✅✔☑"), frozenset("🚧")
_BLOCKED_SIGNS = frozenset("⛔🚫")
_LETTER = re.compile(r"[^\W_]")
_STRUCK = re.compile(r"~~[^~]*~~")
_LONGEST_STATUS = 400  # characters; the rest of a status line is ignored

_BOX = re.compile(
    rf"[ \t]*+(?:[-*+]|\d{{1,9}}[.)])[ \t]++\[[ \t]*+(?P<mark>[{_BOX_MARKS}]?)\ufe0f?[ \t]*+\]"
    r"[ \t]++(?P<name>.*)"
)
_NUMBERED = re.compile(r"task[\s-]+#?(\d+(?:\.\d+)*[a-z]?)(?=\W|$)", re.IGNORECASE)
_TASK_NUMBER = re.compile(
    rf"{_NUMBERED.pattern}\s*(?:[:.)]|[-\u2013\u2014]+(?=\s))\s*", re.IGNORECASE
)
_SIGNS = "✅✔☑🚧⏳⌛🔄❌⛔🚫⬜☐🔲🟡🟢🔴\ufe0f \t"
_NAMED_STATUS = re.compile(
    r"\s*[(\[](?:completed?|done|wip|in[ _-]?progress|todo|open|pending|not started|blocked)[)\]]$",
    re.IGNORECASE,
)
_NAMED_BLOCKED = re.compile(r"\s*[(\[]blocked\b[^()\[\]]*[)\]]$", re.IGNORECASE)
_LINK = re.compile(r"\[[^\[\]]*\]\(<?([^()<>\s]+)>?[^()]*\)")
_LONGEST_LINK = 400
_FIELDS = re.compile(r"[ \t][|·•][ \t]")  # `**Status:** done | **Spec:** a.md`
_SPEC_LABELS = ("spec", "specs", "specification", "associated spec")
_NO_SPEC = frozenset({"", "-", "\u2013", "\u2014", "none", "n/a", "na", "tbd", "todo"})
_PLAN_TITLE = re.compile(r"\b(?:plan|tasks|to-?do|roadmap|backlog)\b", re.IGNORECASE)


class TaskStatus(StrEnum):
    """The progress of a task; a task with an unknown status is open."""

    OPEN = "open"
    IN_PROGRESS = "in progress"
    BLOCKED = "blocked"
    COMPLETE = "complete"


class Task(Struct, frozen=True):
    """One task: its name on one line of at most 100 characters, and the spec that it names.

    `number` is that of `Task 3: ...`, in small letters; "" if the task has none.
    """

    name: str
    spec: str | None = None
    status: TaskStatus = TaskStatus.OPEN
    number: str = ""

    @property
    def key(self) -> str:
        """What the task is known by, whatever else an agent changes: its number, else its name."""
        return f"task {self.number}" if self.number else self.name.casefold()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.status is TaskStatus.COMPLETE


# -- tasks -------------------------------------------------------------------------------------


def tasks_in(text: str) -> tuple[Task, ...]:
    """Return every task of the plan, in the order of the plan."""
    entries = _Outline().read(text)
    headings = [entry for entry in entries if isinstance(entry, _Heading)]
    _open_without_status(headings, entries)
    for heading in headings:
        if heading.is_task:
            for group in heading.above:
                group.is_group = True
    if len(headings) < len(entries) and _has_title(headings):
        headings[0].is_group = True
    return tuple(_tasks(entries))


def current_task(tasks: Sequence[Task]) -> Task | None:
    """Return the task in progress, else the first open one."""
    for status in (TaskStatus.IN_PROGRESS, TaskStatus.OPEN):
        for task in tasks:
            if task.status is status:
                return task
    return None


def became_complete(before: Sequence[Task], after: Sequence[Task]) -> Task | None:
    """Return the first task that is complete in `after` and was not in `before`.

    A task that `before` contains is preferred over a task that is new in `after`.
    """
    known = Counter(task.name.casefold() for task in before)
    complete = Counter(task.name.casefold() for task in before if task.status == "complete")
    new: Task | None = None
    for task in after:
        name = task.name.casefold()
        if task.status is not TaskStatus.COMPLETE:
            continue
        if complete[name]:  # several tasks may have the same name
            complete[name] -= 1
        elif known[name]:
            return task
        else:
            new = new or task
    return new


def first_heading(prompt: str) -> str | None:
    """Return the first heading of the text that is not empty."""
    for line in lines_of(prompt):
        name = shortened(plain(line.text)) if line.kind is LineKind.HEADING else ""
        if name:
            return name
    return None


def _open_without_status(
    headings: "Sequence[_Heading]", entries: "Sequence[_Heading | _CheckBox]"
) -> None:
    """Count `Task 3` as open if it has no status and the `Task 2` beside it has one.

    The status of one with boxes or with tasks below it is that of those.
    """
    levels = {heading.level for heading in headings if heading.number and heading.is_task}
    if not levels:
        return
    having = {
        id(heading)
        for entry in entries
        if not isinstance(entry, _Heading) or entry.is_task
        for heading in entry.above
    }
    for heading in headings:
        is_bare = heading.status is None and id(heading) not in having
        if is_bare and heading.number and heading.level in levels:
            heading.status = TaskStatus.OPEN


def _has_title(headings: "Sequence[_Heading]") -> bool:
    """Return whether the first heading is the title of the plan, so that its boxes are tasks."""
    if not headings or headings[0].level > 1 or headings[0].number:
        return False
    others = headings[1:]
    if any(heading.level == 1 for heading in others):
        return False
    return bool(others) or _PLAN_TITLE.search(headings[0].name) is not None


def _tasks(entries: "Sequence[_Heading | _CheckBox]") -> Iterator[Task]:
    for entry in entries:
        spec = next((e.spec for e in (entry, *reversed(entry.above)) if e.spec), None)
        if isinstance(entry, _Heading):
            if entry.is_task and entry.status is not None:
                yield Task(entry.name, spec, entry.status, entry.number)
        elif entry.name and not any(heading.is_task for heading in entry.above):
            yield Task(entry.name, spec, entry.status, entry.number)


# -- outline -----------------------------------------------------------------------------------


class _Heading(Struct, eq=False):
    """A heading, what the labels below say about it, and the headings above it in the outline."""

    level: int
    name: str
    number: str
    above: list["_Heading"]
    status: TaskStatus | None = None
    spec: str | None = None
    has_status_line: bool = False  # only the first status line counts
    is_group: bool = False

    @property
    def is_task(self) -> bool:
        """Whether the heading is a task."""
        return self.status is not None and bool(self.name) and not self.is_group


class _CheckBox(Struct, eq=False):
    """A check box, and the headings above it in the outline."""

    name: str
    number: str
    status: TaskStatus
    above: list[_Heading]
    spec: str | None = None
    has_status_line: bool = False


class _Outline:
    """Collects the headings and check boxes of a plan, in order, with their labels."""

    def __init__(self) -> None:
        self._entries: list[_Heading | _CheckBox] = []
        self._above: list[_Heading] = []
        self._box: _CheckBox | None = None

    def read(self, text: str) -> list[_Heading | _CheckBox]:
        """Return the entries of the plan."""
        for line in lines_of(text):
            if line.kind is LineKind.HEADING:
                self._box = None
                if not self._take_label_heading(line):
                    self._add_heading(line.text, line.level)
            elif line.kind is LineKind.TEXT:
                self._take_text(line.text)
        return self._entries

    def _take_label_heading(self, line: MarkdownLine) -> bool:
        """Return whether the heading is a label of the heading above: `#### Status: done`."""
        is_below = bool(self._above) and line.level > self._above[-1].level
        return is_below and self._take_label(line.text)

    def _add_heading(self, text: str, level: int) -> None:
        words = plain(text).strip(_SIGNS)
        while self._above and self._above[-1].level >= level:
            self._above.pop()
        heading = _Heading(level, _name(words), _number(words), list(self._above))
        self._entries.append(heading)
        self._above.append(heading)

    def _take_text(self, row: str) -> None:
        box = _BOX.fullmatch(row)
        if box is not None:
            words, status = plain(box["name"]).strip(_SIGNS), _status_of_box(box["mark"])
            blocked = _NAMED_BLOCKED.search(words)
            if blocked and status is not TaskStatus.COMPLETE:
                words, status = words[: blocked.start()] or words, TaskStatus.BLOCKED
            self._box = _CheckBox(_name(words), _number(words), status, list(self._above))
            self._entries.append(self._box)
            return
        if not row[0].isspace():
            self._box = None
        if label_of(row):
            for field in _FIELDS.split(row):
                self._take_label(field)

    def _take_label(self, text: str) -> bool:
        """Return whether the text is a status or spec label; store its value in its owner."""
        label = label_of(text)
        if label is None or label.name not in ("status", *_SPEC_LABELS):
            return False
        owner = self._box or self._owner()
        if owner is None:
            return True
        if label.name in _SPEC_LABELS:
            owner.spec = owner.spec or _spec(label.value)
        elif owner.status is not TaskStatus.COMPLETE and not owner.has_status_line:
            owner.status, owner.has_status_line = _status_of(label.value), True
        return True

    def _owner(self) -> _Heading | None:
        """Return the heading that a label belongs to: the innermost `Task 3`, else the innermost.

        So `Task 3` owns the labels below its subheadings too.
        """
        numbered = (heading for heading in reversed(self._above) if heading.number)
        return next(numbered, self._above[-1] if self._above else None)


def _name(words: str) -> str:
    """Return the name of a task without its number and status marks, which agents change."""
    number = _TASK_NUMBER.match(words)
    words = (words[number.end() :] if number else "") or words
    return shortened(_NAMED_STATUS.sub("", words.strip(_SIGNS)).strip(_SIGNS))


def _number(words: str) -> str:
    found = _NUMBERED.match(words)
    return found[1].lower() if found else ""


def _spec(value: str) -> str | None:
    link = _LINK.fullmatch(value) if len(value) < _LONGEST_LINK else None
    words = shortened(plain(link[1]) if link else plain(value), 200)
    return None if words.casefold() in _NO_SPEC else words


# -- status ------------------------------------------------------------------------------------


def _status_of_box(mark: str) -> TaskStatus:
    if mark in _BLOCKED_MARKS:
        return TaskStatus.BLOCKED
    if mark in _PROGRESS_MARKS:
        return TaskStatus.IN_PROGRESS
    return TaskStatus.COMPLETE if mark in _COMPLETE_MARKS else TaskStatus.OPEN


def _status_of(value: str) -> TaskStatus:
    """Return the status in a status line: its first word decides, else a sign before that word."""
    words = plain(_STRUCK.sub("", value[:_LONGEST_STATUS])).casefold()
    if words.startswith(("[x]", "[ ]", "[!]")):
        return _status_of_box(words[1])
    first = _LETTER.search(words)
    symbols, words = (words[: first.start()], words[first.start() :]) if first else (words, "")
    if _COMPLETE.match(words):
        return TaskStatus.COMPLETE
    if _BLOCKED.match(words):  # also `in progress, blocked by the API`
        return TaskStatus.BLOCKED
    if _IN_PROGRESS.match(words):
        return TaskStatus.IN_PROGRESS
    by_sign = (
        (_COMPLETE_SIGNS, TaskStatus.COMPLETE),
        (_PROGRESS_SIGNS, TaskStatus.IN_PROGRESS),
        (_BLOCKED_SIGNS, TaskStatus.BLOCKED),
    )
    return next(
        (found for signs, found in by_sign if not signs.isdisjoint(symbols)), TaskStatus.OPEN
    )


# How the name of a file ends, and what reads it. Every other file is read as Markdown.
_READERS: dict[str, Callable[[str], tuple[Task, ...]]] = {}


class TaskFileError(Exception):
    """rooda can't read the tasks; the message says why."""


class TaskFile(Struct, frozen=True):
    """A file with tasks. `shown` is its name in messages.

    A link may not lead out of `sight`: an agent can make one.
    """

    path: Path
    shown: str
    sight: Sight | None = None

    def read(self) -> tuple[Task, ...]:
        """Return the tasks in the file. Raises TaskFileError."""
        return self._read(self.path)

    def read_done(self) -> tuple[Task, ...]:
        """Return the tasks in `PLAN-DONE.md`, to which agents move tasks; none if there is none."""
        try:
            return self._read(self.path.with_name(f"{self.path.stem}-DONE{self.path.suffix}"))
        except TaskFileError:
            return ()

    def _read(self, path: Path) -> tuple[Task, ...]:
        try:
            data = read_named(path, LONGEST + 1, self.sight)
        except OutOfSightError as error:
            text = f"is a link that leads out of the work tree, to {error.target}"
            raise TaskFileError(text) from None
        except FileNotFoundError:
            raise TaskFileError("does not exist") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise TaskFileError(f"can't be read: {why}") from None
        if len(data) > LONGEST:  # the tasks beyond it would count as gone
            raise TaskFileError(f"is larger than {LONGEST:,} bytes")
        if b"\0" in data:
            raise TaskFileError("is not text in UTF-8")
        return _parsed(path.suffix.lower(), data)


@lru_cache(maxsize=4)  # rooda reads the file several times in an iteration
def _parsed(suffix: str, data: bytes) -> tuple[Task, ...]:
    return _READERS.get(suffix, tasks_in)(data.decode("utf-8", "replace"))
