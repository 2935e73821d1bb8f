"""The headings and check boxes of a plan, each with what the lines below say of it."""

import re
from dataclasses import dataclass

from rooda.ralph.reading.inline import label_of, plain, shortened
from rooda.ralph.reading.markdown import Kind, Line, lines_of
from rooda.ralph.reading.task_status import BOX_MARKS, TaskStatus, status_of, status_of_box

_BOX = re.compile(
    rf"[ \t]*+(?:[-*+]|\d{{1,9}}[.)])[ \t]++\[(?P<mark>[{BOX_MARKS}]?)\ufe0f?\][ \t]++(?P<name>.*)"
)
_NUMBERED = re.compile(r"task[\s-]+#?\d+(?:\.\d+)*[a-z]?(?=\W|$)", re.IGNORECASE)
_TASK_NUMBER = re.compile(rf"{_NUMBERED.pattern}\s*(?:[:.)]|[-–—]+(?=\s))\s*", re.IGNORECASE)  # noqa: RUF001  (dashes as people write them)
_SIGNS = "✅✔☑🚧⏳⌛🔄❌⬜☐🔲🟡🟢🔴\ufe0f \t"
_NAMED_STATUS = re.compile(
    r"\s*[(\[](?:completed?|done|wip|in[ _-]?progress|todo|open|pending|not started)[)\]]$",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[[^\[\]]*\]\(<?([^()<>\s]+)>?[^()]*\)")
_LONGEST_LINK = 400
_FIELDS = re.compile(r"[ \t][|·•][ \t]")  # `**Status:** done | **Spec:** a.md`
_SPEC_LABELS = ("spec", "specs", "specification", "associated spec")
_NO_SPEC = frozenset({"", "-", "–", "—", "none", "n/a", "na", "tbd", "todo"})  # noqa: RUF001  (likewise)


@dataclass(slots=True, eq=False)
class Heading:
    """A heading, what is said below it, and the headings it stands under."""

    level: int
    name: str
    is_numbered: bool
    above: list["Heading"]
    status: TaskStatus | None = None
    spec: str | None = None
    is_told: bool = False  # the first status line counts
    is_group: bool = False

    @property
    def is_task(self) -> bool:
        """Whether it is a task of its own."""
        return self.status is not None and bool(self.name) and not self.is_group


@dataclass(slots=True, eq=False)
class Box:
    """A check box, and the headings it stands under."""

    name: str
    status: TaskStatus
    above: list[Heading]
    spec: str | None = None
    is_told: bool = False


def outline_of(text: str) -> list[Heading | Box]:
    """All of them, in the plan's order."""
    return _Outline().read(text)


class _Outline:
    """Headings and check boxes of a plan in their order, each with what is said of it."""

    def __init__(self) -> None:
        self._found: list[Heading | Box] = []
        self._above: list[Heading] = []
        self._box: Box | None = None

    def read(self, text: str) -> list[Heading | Box]:
        """Read the whole plan."""
        for line in lines_of(text):
            if line.kind is Kind.HEADING:
                self._box = None
                if not self._is_label(line):
                    self._enter(line.text, line.level)
            elif line.kind is Kind.TEXT:
                self._take(line.text)
        return self._found

    def _is_label(self, line: Line) -> bool:
        """Whether it is one such as `#### Status: done`, which speaks of the heading above it."""
        is_below = bool(self._above) and line.level > self._above[-1].level
        return is_below and self._said(line.text)

    def _enter(self, text: str, level: int) -> None:
        words = plain(text).strip(_SIGNS)
        while self._above and self._above[-1].level >= level:
            self._above.pop()
        heading = Heading(
            level, _name(words), _NUMBERED.match(words) is not None, list(self._above)
        )
        self._found.append(heading)
        self._above.append(heading)

    def _take(self, row: str) -> None:
        box = _BOX.fullmatch(row)
        if box is not None:
            name = _name(plain(box["name"]).strip(_SIGNS))
            self._box = Box(name, status_of_box(box["mark"]), list(self._above))
            self._found.append(self._box)
            return
        if not row[0].isspace():
            self._box = None
        if label_of(row):
            for field in _FIELDS.split(row):
                self._said(field)

    def _said(self, text: str) -> bool:
        """Whether it is a label of ours; then it is noted with what it speaks of."""
        label = label_of(text)
        if label is None or label.name not in ("status", *_SPEC_LABELS):
            return False
        owner = self._box or self._owner()
        if owner is None:
            return True
        if label.name in _SPEC_LABELS:
            owner.spec = owner.spec or _spec(label.value)
        elif owner.status in (None, TaskStatus.OPEN) and not owner.is_told:
            owner.status, owner.is_told = status_of(label.value), True
        return True

    def _owner(self) -> Heading | None:
        """The innermost heading; below `Task 3` that one, whatever headings it is divided by."""
        numbered = (heading for heading in reversed(self._above) if heading.is_numbered)
        return next(numbered, self._above[-1] if self._above else None)


def _name(words: str) -> str:
    """A task's name without its number, and without marks of its status: they come and go."""
    number = _TASK_NUMBER.match(words)
    words = (words[number.end() :] if number else "") or words
    return shortened(_NAMED_STATUS.sub("", words.strip(_SIGNS)).strip(_SIGNS))


def _spec(value: str) -> str | None:
    link = _LINK.fullmatch(value) if len(value) < _LONGEST_LINK else None
    words = shortened(plain(link[1]) if link else plain(value), 200)
    return None if words.casefold() in _NO_SPEC else words
