"""Write the generated tables in docs/ anew from the code: `make docs`. A test tells when stale."""

import inspect
import re
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from rooda.agents.failure_kinds import FailureKind
from rooda.config.setting import Setting
from rooda.config.settings import SETTINGS
from rooda.loop.events import Event, ProblemFound, RunEnded, RunResumed
from rooda.loop.levels import LEVELS, Level
from rooda.loop.stats import Stats
from rooda.loop.stops import StopRule
from rooda.views.jsonl import FOR_THE_RECORD, UNLOGGED, event_name

DOCS = Path(__file__).parent.parent / "docs"


def settings_table() -> str:
    """One row a setting."""
    rows = ["| key | kind | default | flag | what it does |", "|---|---|---|---|---|"]
    rows += [_setting_row(setting) for setting in SETTINGS]
    return "\n".join(rows)


def _setting_row(setting: Setting[Any]) -> str:
    kind = setting.kind.metavar.replace("|", ", ")
    flags = ", ".join(f"`{flag}`" for flag in (setting.short, setting.flag_name) if flag)
    where = "" if setting.per_procedure else " (not in a procedure)"
    default = setting.show(setting.default)
    return f"| `{setting.key}` | {kind} | {default} | {flags} | {setting.help}{where} |"


def events_table() -> str:
    """One row an event that is logged."""
    rows = ["| event | level | fields | when |", "|---|---|---|---|"]
    for kind in get_args(Event):
        if kind in UNLOGGED:
            continue
        hints = get_type_hints(kind)
        logged = [field.name for field in fields(kind) if field.name != FOR_THE_RECORD]
        names = ", ".join(f"`{name}` {_type_name(hints[name])}" for name in logged)
        about = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
        rows.append(f"| `{event_name(kind)}` | {_level(kind)} | {names} | {about} |")
    return "\n".join(rows)


def _level(kind: type[Any]) -> str:
    if kind is RunEnded:
        return "info, error when aborted"
    if kind is RunResumed:
        return "info, warn when the flags were not recorded"
    if kind is ProblemFound:
        return "warn, error"
    return LEVELS.get(kind, Level.INFO).name.lower()


def _type_name(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_type_name(arg) for arg in get_args(hint))
    if hint is type(None):
        return "null"
    if get_origin(hint) is tuple:
        return f"list of {_type_name(get_args(hint)[0])}"
    if hint is Stats:
        return "{" + ", ".join(Stats().summary()) + "}, stddev null before the second iteration"
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = get_type_hints(hint)
        return "{" + ", ".join(f"{f.name} {_type_name(hints[f.name])}" for f in fields(hint)) + "}"
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


def _keys(settings: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in settings)


GENERATED = {
    "configuration.md": ("settings", settings_table),
    "events.md": ("events", events_table),
    "agents.md": ("failure kinds", failure_kinds_table),
    "record.md": ("stop rules", stop_rules_table),
}


def updated(name: str) -> str:
    """A page with its generated part as it should be."""
    mark, make = GENERATED[name]
    text = (DOCS / name).read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {mark}: made by `make docs` -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}\n{make()}\n\n{match[2]}", text)


def main() -> None:
    """Write every page."""
    for name in GENERATED:
        (DOCS / name).write_text(updated(name), encoding="utf-8")


if __name__ == "__main__":
    main()
