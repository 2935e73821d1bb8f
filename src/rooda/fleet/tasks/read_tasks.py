"""Tasks from what the user names: headings of a file, a file each, or entries of fleet.yml."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.markdown import LineKind, lines_of, plain, rows_of
from rooda.base.numbers import format_size
from rooda.base.paths import anchored, is_folder
from rooda.base.problems import InvalidInput, Problem, in_order
from rooda.fleet.run_model import FleetTask
from rooda.fleet.tasks.fleet_yml import read_list
from rooda.fleet.tasks.task_checks import Placed, check_names, check_order, run_name
from rooda.plan.prompts.parts import PromptError, PromptTooLargeError, read_text_file
from rooda.world.files.sight import Sight
from rooda.world.git.work_tree import work_tree

TITLE = "Tasks invalid"
_LARGEST_FILE = 1_000_000  # bytes; `base/markdown.py` reads as many characters
_LISTS = (".yml", ".yaml")
_LEVEL = 2  # of the heading of a task


class By(StrEnum):
    """What one task is in Markdown."""

    HEADING = "heading"
    FILE = "file"


class Wanted(Struct, frozen=True):
    """What the user named: files and folders, relative to `folder`.

    Without `by`, the headings of one Markdown file are tasks, and each of several files is a task.
    `procedure` is for tasks that name none. `check` finds what else is wrong with a task that is
    new, and the field that it is about.
    """

    names: Sequence[str]
    folder: Path
    by: By | None = None
    procedure: str | None = None
    check: Callable[[FleetTask], Sequence[Problem]] = lambda _: ()

    @property
    def sight(self) -> Sight:
        """What links may lead to: agents read the texts, and may have made the links."""
        return sight_of_tasks(self.folder)


def sight_of_tasks(folder: Path) -> Sight:
    """Return what links of a work tree may lead to, whether its runs will have a sandbox or not."""
    return Sight((work_tree(folder),), of_sandbox=False)


def read_tasks(wanted: Wanted, known: Mapping[str, str] | None = None) -> list[FleetTask]:
    """Return the tasks in their order, also those that are runs already.

    `known` are the texts of the runs that the project has, by their names.
    Raises InvalidInput with everything that is wrong.
    """
    problems: list[Problem] = []
    placed = [one for name in wanted.names for one in _read(name, wanted, problems)]
    problems += check_names(placed, known or {})
    problems += check_order(placed, known or {})
    problems += [
        one.problem(found.message, found.suggestion or "", found.field)
        for one in placed
        if one.task.name not in (known or {})
        for found in wanted.check(one.task)
    ]
    if not placed and not problems:
        problems.append(Problem("no task is named", "Name a file, such as TASKS.md or specs/*.md"))
    if problems:
        raise InvalidInput([replace(one, title=TITLE) for one in in_order(problems)])
    return [replace(one.task, procedure=one.task.procedure or wanted.procedure) for one in placed]


def by_heading(text: str, shown: str) -> list[Placed]:
    """Return a task for each `## ` heading; what is before the first one is before each task.

    Headings in code and in comments are none.
    """
    headings = [
        line for line in lines_of(text) if line.kind is LineKind.HEADING and line.level == _LEVEL
    ]
    rows = rows_of(text)
    ends = [line.number - 1 for line in headings] + [len(rows)]
    shared = "\n".join(rows[: ends[0]]).strip()
    found = []
    for line, end in zip(headings, ends[1:], strict=True):
        title = plain(line.text)
        own = "\n".join(rows[line.number - 1 : end]).strip()
        task = FleetTask(run_name(title), title, f"{shared}\n\n{own}".strip())
        found.append(Placed(task, shown, line.number))
    return found


def _read(name: str, wanted: Wanted, problems: list[Problem]) -> list[Placed]:
    path = anchored(wanted.folder, name)
    if is_folder(path):
        return list(_folder(path, name, wanted.sight, problems))
    text = _text(path, name, wanted.sight, problems)
    if text is None:
        return []
    if path.suffix in _LISTS:
        needs_context = wanted.procedure is None
        tasks, found = read_list(text, name, path.parent, wanted.sight, needs_context=needs_context)
        problems += found
        return tasks
    by = wanted.by or (By.HEADING if len(wanted.names) == 1 else By.FILE)
    headed = by_heading(text, name) if by is By.HEADING else []
    return headed or [_whole(path, name, text)]


def _folder(path: Path, name: str, sight: Sight, problems: list[Problem]) -> Iterator[Placed]:
    """Yield a task for each Markdown file of a folder."""
    files = sorted(file for file in path.glob("*.md") if not file.name.startswith("."))
    if not files:
        problems.append(Problem("the folder has no *.md file", "Name a file", file=name))
    for file in files:
        shown = str(Path(name) / file.name)
        text = _text(file, shown, sight, problems)
        if text is not None:
            yield _whole(file, shown, text)


def _whole(path: Path, shown: str, text: str) -> Placed:
    return Placed(FleetTask(run_name(path.stem), path.stem, text.strip()), shown)


def _text(path: Path, shown: str, sight: Sight, problems: list[Problem]) -> str | None:
    """Return the text of a file; None, and a problem, if it has none that can be used."""
    try:
        text = read_text_file(path, shown, _LARGEST_FILE, sight)
    except PromptTooLargeError:
        most = format_size(_LARGEST_FILE)
        problems.append(Problem(f"{shown} is larger than {most}", "Divide it into several files"))
    except PromptError as error:
        problems.append(Problem(str(error), error.hint))
    else:
        if text.strip():
            return text
        problems.append(Problem(f"{shown} is empty", "Write what the agent should do"))
    return None
