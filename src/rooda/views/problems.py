"""Problems with the input, for a person."""

from collections.abc import Iterable

from rooda.config.problems import Problem, Severity
from rooda.text.controls import one_line

_WORDS = {Severity.ERROR: "Error", Severity.WARNING: "Warning"}


def render(problem: Problem) -> str:
    """`Error: file:12: field: message`, and the advice below it."""
    place = f"{problem.place}: " if problem.place else ""
    line = f"{_WORDS[problem.severity]}: {one_line(place + problem.message)}"
    return f"{line}\n  {one_line(problem.suggestion)}" if problem.suggestion else line


def render_all(problems: Iterable[Problem]) -> str:
    """One block a problem."""
    return "".join(f"{render(problem)}\n" for problem in problems)
