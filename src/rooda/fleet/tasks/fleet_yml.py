"""Reads fleet.yml: a list of tasks with what they wait for, their limits and their labels."""

from collections.abc import Mapping as AnyMapping
from pathlib import Path
from typing import Any

from rooda.base.lookup import did_you_mean
from rooda.base.numbers import format_size
from rooda.base.problems import Problem
from rooda.fleet.run_model import FleetTask
from rooda.fleet.tasks.task_checks import Placed, run_name
from rooda.plan.document import Entry, Mapping, Node, Sequence, parse, plain
from rooda.plan.prompts.parts import (
    Context,
    PromptError,
    PromptTooLargeError,
    TextPart,
    in_sight,
    looks_like_path,
    refuse_empty,
    text_or_file,
)
from rooda.plan.settings.kinds import Dollars, Integer, Kind, WrongValue, brief
from rooda.plan.settings.text_kinds import LabelList, Text, TextList
from rooda.world.files.sight import Sight

_LARGEST_CONTEXT = 1_000_000  # bytes
_MOST = 10**6

FIELDS: AnyMapping[str, Kind[Any]] = {
    "name": Text(),
    "procedure": Text(),
    "context": TextList(),
    "base": Text(),
    "after": TextList(),
    "priority": Integer(-_MOST, _MOST),
    "max_iterations": Integer(1),
    "max_cost": Dollars(),
    "account": Text(),
    "labels": LabelList(),
}


def read_list(
    text: str, file: str, folder: Path, sight: Sight, *, needs_context: bool = True
) -> tuple[list[Placed], list[Problem]]:
    """Return the tasks and all problems; files that `context` names are relative to `folder`.

    No link leads to a file out of `sight`. `needs_context`: a task without a procedure must have a
    context.
    """
    root, problems = parse(text.encode(), file)
    if root is None:
        return [], problems or [Problem("has no task", _EXAMPLE, file=file)]
    if not isinstance(root, Sequence) or not root.items:
        what = "the list is empty" if isinstance(root, Sequence) else "must be a list of tasks"
        return [], [*problems, Problem(what, _EXAMPLE, file=file, line=root.line)]
    reader = _Reader(file, folder, sight, problems, needs_context=needs_context)
    return [one for item in root.items if (one := reader.task(item)) is not None], problems


_EXAMPLE = "Write entries such as `- {name: auth, context: specs/auth.md, after: [db]}`"


class _Reader:
    """Reads the entries. It reports what is wrong, and leaves those tasks out."""

    def __init__(
        self,
        file: str,
        folder: Path,
        sight: Sight,
        problems: list[Problem],
        *,
        needs_context: bool,
    ) -> None:
        self._needs_context = needs_context
        self._file = file
        self._folder = folder
        self._sight = sight
        self._problems = problems

    def task(self, node: Node) -> Placed | None:
        if not isinstance(node, Mapping):
            self._report(f"must be a task, not {brief(plain(node))}", _EXAMPLE, node.line)
            return None
        before = len(self._problems)
        lines = {entry.key: entry.line for entry in node.entries}
        values = {entry.key: value for entry in node.entries if (value := self._value(entry))}
        context = self._context(values.pop("context", ()), lines.get("context", node.line))
        given = {entry.key for entry in node.entries if plain(entry.node) not in (None, [])}
        if "name" not in given:
            self._report("the task has no name", "Add `name: NAME`", node.line)
        elif self._needs_context and not (context or given & {"context", "procedure"}):
            message = "the task has neither a context nor a procedure"
            self._report(message, "Write in `context` what the agent should do", node.line)
        if len(self._problems) > before:
            return None
        title = str(values.pop("name"))
        after = tuple(run_name(name) for name in values.pop("after", ()))
        task = FleetTask(run_name(title), title, context, after=after, **values)
        return Placed(task, self._file, node.line, lines)

    def _value(self, entry: Entry) -> Any:
        """Return the value of a key; None, and a problem, if it is wrong."""
        kind = FIELDS.get(entry.key)
        if kind is None:
            known = ", ".join(FIELDS)
            advice = did_you_mean(entry.key, FIELDS) or f"The keys are {known}"
            self._report(f"unknown key {entry.key!r}", advice, entry.line)
            return None
        raw = plain(entry.node)
        if raw is None:
            return None
        try:
            return kind.check(raw)
        except WrongValue as wrong:
            self._report(str(wrong), wrong.suggestion, entry.line, entry.key)
            return None

    def _context(self, texts: tuple[str, ...], line: int) -> str:
        """Return the texts, and the texts of the files that are named, one below the other."""
        found = []
        for text in texts:
            try:
                found.append(_read_context(text, self._folder, self._sight))
            except PromptError as error:
                self._report(str(error), error.hint, line, "context")
        return "\n\n".join(found)

    def _report(self, message: str, advice: str, line: int, field: str = "") -> None:
        self._problems.append(Problem(message, advice, self._file, line, field))


def _read_context(text: str, folder: Path, sight: Sight) -> str:
    """Return the text, or that of the file with this name. Raises PromptError."""
    try:
        source = text_or_file(text, folder, _LARGEST_CONTEXT)
        if isinstance(source, TextPart) and looks_like_path(text):
            raise PromptError(
                f"{text!r} looks like a file, and there is no such file",
                hint="Correct the path, which begins in the folder of this file; rooda reads a "
                "value with a space as text",
            )
        found = in_sight(Context(source), sight).source.read(_LARGEST_CONTEXT).strip()
    except PromptTooLargeError:
        message = f"{text!r} is larger than {format_size(_LARGEST_CONTEXT)}"
        raise PromptError(message, hint="Make it shorter, or name the file in the text") from None
    except PermissionError as error:
        message = f"{text!r} can't be read: {error.strerror}"
        raise PromptError(message, hint="Check the modes of file and folders") from None
    refuse_empty(found, text)
    return found
