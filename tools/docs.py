"""`make docs`: write the generated parts of docs/ (tables, examples, picture)."""

import ast
import inspect
import io
import tokenize
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tokenize import COMMENT
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from rooda.base.event import EVENTS, Event
from rooda.front.selftest.run_trials import all_trials
from rooda.loop.events import agent as agent_events
from rooda.loop.events import iteration as iteration_events
from rooda.loop.events import messages as notify_events
from rooda.loop.events import protect as protect_events
from rooda.loop.events import publish as publish_events
from rooda.loop.events import run as run_events
from rooda.loop.events import tree as tree_events
from rooda.loop.events import verify as verify_events
from rooda.loop.events import work as work_events
from rooda.loop.events.iteration import EMPTY, LOGGED_AS, IterationEnded
from rooda.loop.events.run import NO_USAGE, RunEnded
from rooda.loop.events.work import FailedTry
from rooda.loop.failure import FailureContext
from rooda.loop.history import Stats
from rooda.loop.iteration_facts import IterationFacts, Segment
from rooda.loop.result import IterationResult
from rooda.loop.run_facts import RunFacts
from rooda.loop.stops import StopRule
from rooda.loop.wait_kinds import WaitKind
from rooda.loop.waits import AgentHold
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import SETTINGS
from rooda.world.agents.agent_report import SessionFacts, Tokens, Usage
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.registry import KNOWN
from rooda.world.git.snapshots.tree_changes import LineCount, LineCounts
from rooda.world.process import events as process_events
from rooda.world.process.events import NamedProcess
from rooda.world.tasks.standing import TaskCount
from rooda.world.testresults.census import TestLoss
from rooda.world.testresults.results import TestDetail, TestResults
from tools import examples, picture

DOCS = Path(__file__).parent.parent / "docs"


def settings_table() -> str:
    """One row a setting."""
    rows = ["| key | kind | default | flag | what it does |", "|---|---|---|---|---|"]
    rows += [_setting_row(setting) for setting in SETTINGS]
    return "\n".join(rows)


def _setting_row(setting: Setting[Any]) -> str:
    kind = setting.metavar.replace("|", ", ")
    flags = ", ".join(f"`{flag}`" for flag in (setting.short, setting.flag_name) if flag)
    where = "" if setting.per_procedure else " (not in a procedure)"
    default = setting.show(setting.default)
    return f"| `{setting.key}` | {kind} | {default} | {flags} | {setting.help}{where} |"


# The modules of events, in the order of docs/reference/events.md.
_EVENT_MODULES = (
    *(run_events, iteration_events, work_events, verify_events, protect_events, tree_events),
    *(publish_events, agent_events, notify_events, process_events),
)


def events_pages() -> str:
    """One section an event that is logged, and one for each object inside of events."""
    parts = []
    if unlisted := {kind.__module__ for kind in EVENTS} - {one.__name__ for one in _EVENT_MODULES}:
        raise ValueError(f"modules of events that _EVENT_MODULES does not have: {unlisted}")
    for module in _EVENT_MODULES:
        title = (module.__doc__ or "").split("\n")[0].split(":")[0].rstrip(".")
        parts.append(f"## {title}")
        kinds = [kind for kind in EVENTS if kind.__module__ == module.__name__ and kind.is_logged]
        parts += [_event(kind) for kind in kinds]
    parts.append("## Objects inside of events")
    parts += [_object(name, kind) for name, kind in OBJECTS.items()]
    return "\n\n".join(parts)


def _event(kind: type[Event]) -> str:
    level = kind.level.name.lower()
    if kind.text_level is not None:
        level += f", {kind.text_level.name.lower()} in text"
    if kind.raised is not None:
        level += f"; {kind.raised[0].name.lower()} if {kind.raised[1]}"
    comments = field_comments(kind)
    if kind in _CARRIERS:
        comments = {name: about for name, (_, about) in _with_facts(kind).items()}
    if missing := [name for name in json_fields(kind) if name not in comments]:
        raise ValueError(f"fields of {kind.__name__} without a comment: {', '.join(missing)}")
    return _section(f"`{kind.event_name()}` ({level})", kind, comments)


def _object(name: str, kind: type[Struct]) -> str:
    comments = field_comments(kind)
    return _section(name, kind, comments if set(json_fields(kind)) <= set(comments) else {})


def _section(title: str, kind: type[Struct], comments: Mapping[str, str]) -> str:
    about = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    lines = [f"### {title}", "", about]
    if logged := json_fields(kind):
        lines += ["", "| field | type | what it is |" if comments else "| field | type |"]
        lines.append("|---|---|---|" if comments else "|---|---|")
    for name, hint in logged.items():
        more = f" {comments[name]} |" if comments else ""
        lines.append(f"| `{name}` | {_type_name(hint)} |{more}")
    return "\n".join(lines)


def json_fields(kind: type[Struct]) -> dict[str, Any]:
    """The fields of an event, or of an object inside of one, as JSON has them: name and type."""
    if issubclass(kind, Event) and kind in _CARRIERS:
        return {name: hint for name, (hint, _) in _with_facts(kind).items()}
    hints = get_type_hints(kind)
    if kind not in _OWN_JSON:
        unlogged = kind.unlogged if issubclass(kind, Event) else ()
        return {one.name: hints[one.name] for one in fields(kind) if one.name not in unlogged}
    return {
        name: hints[name] if name in hints else get_type_hints(getattr(kind, name).fget)["return"]
        for name in _OWN_JSON[kind]
    }


def _with_facts(end: type[Event]) -> dict[str, tuple[Any, str]]:
    """Return the type and the comment of each field of an event that carries facts."""
    facts, called, empty = _CARRIERS[end]
    left_out = set(end.unlogged)
    if issubclass(facts, SessionFacts):  # they are in one object
        left_out.update(SessionFacts.__struct_fields__)
    found: dict[str, tuple[Any, str]] = {}
    for kind in (facts, end):
        hints, comments = get_type_hints(kind) | _TYPES, field_comments(kind)
        for name in kind.__struct_fields__:
            hint = type(empty[name]) if name in empty else hints[name]
            found[called.get(name, name)] = (hint, comments[name])
    for name, value in vars(end).items():
        if name in _SHOWN_OTHERWISE:
            about = inspect.cleandoc(value.__doc__).removeprefix("Return ").rstrip(".")
            hint = get_type_hints(value.fget)["return"]
            found[name] = (hint, about[0].lower() + about[1:])
    return {name: one for name, one in found.items() if name not in left_out}


# The events that carry facts: the facts, other names in logs, and what logs have for null.
_CARRIERS: Mapping[type, tuple[type[Struct], Mapping[str, str], Mapping[str, object]]] = {
    IterationEnded: (IterationFacts, LOGGED_AS, EMPTY),
    RunEnded: (RunFacts, {}, NO_USAGE),
}
_TYPES = {"stats": Stats}  # of what is an object without a type of its own
_SHOWN_OTHERWISE = ("usage", "commit", "commit_holds", "tests_lost")  # by properties
# Objects whose JSON has other fields than they have; the test reads real output.
_OWN_JSON: Mapping[type[Struct], Iterable[str]] = {
    IterationResult: IterationResult(exit_code=None).to_json(output=False),
    Stats: Stats().summary(),
}
OBJECTS: Mapping[str, type[Struct]] = {
    "failure": FailureContext,
    "result": IterationResult,
    "test results": TestResults,
    "test": TestDetail,
    "usage": Usage,
    "tokens": Tokens,
    "stats": Stats,
    "process": NamedProcess,
    "segment": Segment,
    "lines": LineCounts,
    "task count": TaskCount,
    "lines of a file": LineCount,
    "limit": AgentHold,
    "failed try": FailedTry,
    "test loss": TestLoss,
}


def field_comments(kind: type[Struct]) -> dict[str, str]:
    """The comment on the line of each field that has one, inherited ones included."""
    bases = [base for base in reversed(kind.__mro__) if base.__module__.startswith("rooda.")]
    return {name: about for base in bases for name, about in _own_comments(base).items()}


def _own_comments(kind: type) -> dict[str, str]:
    source = inspect.getsource(kind)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {one.start[0]: one.string.lstrip("# ") for one in tokens if one.type == COMMENT}
    (body,) = ast.parse(source).body
    found: dict[str, str] = {}
    for line in body.body if isinstance(body, ast.ClassDef) else ():
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            found[line.target.id] = comments.get(line.lineno, "")
    return {name: comment for name, comment in found.items() if comment}


def _type_name(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_type_name(arg) for arg in get_args(hint))
    if hint is type(None):
        return "null"
    if get_origin(hint) is tuple:
        return f"list of {_type_name(get_args(hint)[0])}"
    if isinstance(hint, type) and issubclass(hint, Struct):
        name = next(name for name, kind in OBJECTS.items() if kind is hint)
        return f"[{name}](#{name.replace(' ', '-')})"
    names = {int: "integer", float: "number", bool: "boolean"}
    return names.get(hint, "string")


def failure_kinds_table() -> str:
    """One row a kind of failure."""
    rows = [
        "| kind | what it means | what happens | settings | reported by the CLI |",
        "|---|---|---|---|---|",
    ]
    for kind in FailureKind:
        row = kind.row
        reported = "yes" if row.by_cli else ""
        cells = (f"`{kind}`", row.sentence, row.reaction, _keys(row.settings), reported)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def stop_rules_table() -> str:
    """One row a stop rule."""
    rows = ["| rule | what it means | the run ends as | settings |", "|---|---|---|---|"]
    for rule in StopRule:
        row = rule.row
        cells = (f"`{rule}`", row.sentence, f"`{row.status}`", _keys(row.settings))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def wait_kinds_table() -> str:
    """One row a kind of wait."""
    rows = ["| kind | the run waits | in tables |", "|---|---|---|"]
    rows += [f"| `{kind}` | {kind.target('WHAT', '')} | {kind.row.label} |" for kind in WaitKind]
    return "\n".join(rows)


def sandbox_table() -> str:
    """One row an agent CLI: what it gets in the sandbox."""
    rows = [
        "| CLI | credentials, writable | settings, read-only | your variables | rooda sets |",
        "|---|---|---|---|---|",
    ]
    for name, adapter in KNOWN.items():
        needs = adapter.needs
        flags = " ".join(adapter.in_sandbox([name])[1:])
        switches = (flags, *(f"{key}={value}" for key, value in needs.environ.items()))
        cells = (f"`{name}`", *map(_keys, (needs.credentials, needs.settings, needs.variables)))
        rows.append(f"| {' | '.join(cells)} | {_keys(list(filter(None, switches)))} |")
    return "\n".join(rows)


def trials_table() -> str:
    """One row a trial of the self-test."""
    rows = ["| trial | the agent | what must hold | needs |", "|---|---|---|---|"]
    for trial in all_trials():
        needs = ", ".join(map(str, trial.needs))
        rows.append(f"| {trial.name} | {trial.does} | {trial.promise} | {needs} |")
    return "\n".join(rows)


def _keys(settings: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in settings)


GENERATED: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "reference/configuration.md": {"settings": settings_table},
    "reference/events.md": {"events": events_pages},
    "reference/agents.md": {"failure kinds": failure_kinds_table},
    "reference/record.md": {"stop rules": stop_rules_table, "waits": wait_kinds_table},
    "reference/sandbox-agents.md": {"sandbox": sandbox_table},
    "reference/selftest.md": {"trials": trials_table},
}


def updated(name: str) -> str:
    """A page with its generated parts as they should be."""
    text = (DOCS / name).read_text(encoding="utf-8")
    for mark, make in GENERATED[name].items():
        head = f"<!-- {mark}: made by `make docs` -->\n"
        before, found, rest = text.partition(head)
        if not found:
            raise ValueError(f"{name} has no part {mark}")
        _, end, after = rest.partition("<!-- end -->")
        text = f"{before}{head}\n{make()}\n\n{end}{after}"
    return text


def main() -> None:
    """Write the tables, then the output of the examples, then the picture in the README."""
    for name in GENERATED:
        (DOCS / name).write_text(updated(name), encoding="utf-8")
    examples.main()
    picture.main()


if __name__ == "__main__":
    main()
