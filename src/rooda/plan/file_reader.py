"""Turns a config file into a layer, and collects every problem in it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from rooda.base.lookup import did_you_mean, near_miss
from rooda.base.paths import anchored
from rooda.base.problems import Origin, Problem, Tier
from rooda.plan.document import Entry, Mapping, Node, Scalar, Sequence, as_written, parse, plain
from rooda.plan.layers import Alias, Layer, PhaseValue, ProcedureLayer, Valued
from rooda.plan.prompts import builtin
from rooda.plan.prompts.parts import PHASES, BuiltinPart, FilePart, Part, Source, TextPart
from rooda.plan.settings.feature_kinds import HOOK_FIELDS, Hook, HookList, hook_of
from rooda.plan.settings.kinds import WrongValue, brief
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    BY_KEY,
    OLD_KEYS,
    SECTIONS,
    SHORT_FORMS,
    TAKEN_AWAY_WHOLE,
)
from rooda.plan.settings.text_kinds import OneOf, Text, TextMap, with_folder
from rooda.world.agents.registry import ADAPTERS

TOP_LEVEL = ("loop", "procedures", "ai_cmd_aliases", "fleet")
FREE = "x-"  # the user may add top-level keys with this prefix, for example for anchors
DESCRIPTION = "description"


class ConfigFile(Struct, frozen=True):
    """A config file: its bytes, its tier, its name in messages, and the work tree it belongs to."""

    tier: Tier
    data: bytes
    shown: str
    folder: Path
    source: str = ""
    home: Path | None = None
    tree: Path | None = None


def read(file: ConfigFile) -> tuple[Layer, list[Problem]]:
    """Return the layer that the file describes, and all problems in the file."""
    root, problems = parse(file.data, file.shown)
    reader = _Reader(file, problems)
    if root is not None:
        reader.read_root(root)
    elif problems:
        reader.layer.broken = True
    return reader.layer, problems


class _Reader:
    """Reads the tree. It reports and skips what is wrong, and keeps the rest."""

    def __init__(self, file: ConfigFile, problems: list[Problem]) -> None:
        self.layer = Layer(file.tier, file.shown)
        self._file = file
        self._found = _Findings(file.shown, problems)

    def read_root(self, root: Node) -> None:
        for entry in self._mapping(root, ""):
            match entry.key:
                case "loop":
                    self.layer.loop.update(self._values(entry, "loop", BY_KEY))
                case "procedures":
                    self._procedures(entry)
                case "ai_cmd_aliases":
                    self._aliases(entry)
                case "fleet":
                    self._fleet(entry)
                case unknown if not unknown.startswith(FREE):
                    self._found.unknown(unknown, entry.line, "", TOP_LEVEL)

    # -- loop settings ---------------------------------------------------------------------

    def _values(
        self, section: Entry, field: str, allowed: Iterable[str], others: Iterable[str] = ()
    ) -> dict[str, Valued]:
        """Return the settings in a mapping; the caller itself reads the keys in `others`."""
        allowed, others = list(allowed), list(others)
        values: dict[str, Valued] = {}
        for entry in self._mapping(section.node, field):
            if entry.key in others:
                continue
            if entry.key in SECTIONS:
                self._section(entry, field, allowed, values)
            elif "." in entry.key:  # `signals.match: x` must be written as a section
                self._found.unknown(entry.key, entry.line, field, ())
            else:
                key = OLD_KEYS.get(entry.key, entry.key)
                if key in values:
                    line = values[key].origin.line
                    message = f"{entry.key!r} says what line {line} says already"
                    self._found.problem(
                        message, "Remove one of the two", entry.line, f"{field}.{key}"
                    )
                    continue
                self._value(entry, key, field, [*allowed, *others], values)
        return values

    def _section(
        self, section: Entry, field: str, allowed: list[str], values: dict[str, Valued]
    ) -> None:
        """Read the settings below one key, or their short form: `verify: CMD`, `hooks: null`."""
        name = f"{field}.{section.key}"
        if section.key in SHORT_FORMS and not isinstance(section.node, Mapping):
            self._value(section, SHORT_FORMS[section.key].key, field, allowed, values, name)
        elif section.key in TAKEN_AWAY_WHOLE and plain(section.node) is None:
            for key in TAKEN_AWAY_WHOLE[section.key]:
                self._value(section, key, field, allowed, values, name)
        else:
            for inner in self._mapping(section.node, name):
                self._value(inner, f"{section.key}.{inner.key}", field, allowed, values)

    def _value(
        self,
        entry: Entry,
        key: str,
        field: str,
        allowed: list[str],
        values: dict[str, Valued],
        name: str = "",
    ) -> None:
        """Read one setting; `name` is its name in messages, if that is not its key."""
        if key not in BY_KEY or key not in allowed:
            self._found.unknown(key, entry.line, field, [*allowed, *SECTIONS])
            return
        valued = self._checked(BY_KEY[key], entry, name or f"{field}.{key}")
        if valued is not None:
            values[key] = valued

    def _checked(self, setting: Setting[Any], entry: Entry, name: str) -> Valued | None:
        """Return the value of a setting; None if it is wrong."""
        value: Any
        if isinstance(setting.kind, HookList) and plain(entry.node) is not None:
            value = _read_hooks(entry.node, name, self._found)
            return None if value is None else Valued(value, self._origin(entry.line), name)
        try:
            is_map = isinstance(setting.kind, TextMap)
            value = setting.check(as_written(entry.node) if is_map else plain(entry.node))
        except WrongValue as wrong:
            self._found.problem(str(wrong), wrong.suggestion, entry.line, name)
            return None
        value = with_folder(setting.kind, value, self._file.folder, self._file.home)
        return Valued(value, self._origin(entry.line), name)

    def _fleet(self, section: Entry) -> None:
        from rooda.plan.settings.fleet_settings import FLEET_KEYS  # noqa: PLC0415 - few files have it

        for entry in self._mapping(section.node, section.key):
            if entry.key not in FLEET_KEYS:
                self._found.unknown(entry.key, entry.line, section.key, FLEET_KEYS)
                continue
            valued = self._checked(FLEET_KEYS[entry.key], entry, f"{section.key}.{entry.key}")
            if valued is not None:
                self.layer.fleet[entry.key] = valued

    # -- procedures ------------------------------------------------------------------------

    def _procedures(self, section: Entry) -> None:
        allowed = [key for key, setting in BY_KEY.items() if setting.per_procedure]
        for entry in self._mapping(section.node, "procedures"):
            field = f"procedures.{entry.key}"
            if not entry.key.strip() or entry.key.startswith("-"):
                self._found.problem(
                    f"{brief(entry.key)} can't be the name of a procedure",
                    "Start the name with a letter",
                    entry.line,
                    field,
                )
                continue
            if not self._is_mapping(entry.node, field):
                continue
            procedure = ProcedureLayer(self._origin(entry.line))
            procedure.values = self._values(entry, field, allowed, (DESCRIPTION, *PHASES))
            for inner in self._mapping(entry.node, field):
                if inner.key == DESCRIPTION:
                    procedure.description = self._text(inner, f"{field}.{DESCRIPTION}")
                elif inner.key in PHASES:
                    name = f"{field}.{inner.key}"
                    parts = self._phase(inner.node, name)
                    phase = PhaseValue(parts, self._origin(inner.line), name)
                    procedure.phases[inner.key] = phase
            self.layer.procedures[entry.key] = procedure

    def _phase(self, node: Node, field: str) -> tuple[Part, ...]:
        items = node.items if isinstance(node, Sequence) else (node,)
        if not items:
            self._found.problem("the list is empty", "Name at least one prompt", node.line, field)
        parts = [self._part(item, field, alone=not isinstance(node, Sequence)) for item in items]
        return tuple(part for part in parts if part is not None)

    def _part(self, node: Node, field: str, *, alone: bool) -> Part | None:
        if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            return Part(self._path(node.value))
        if not isinstance(node, Mapping) or alone:
            self._found.problem(
                f"must be a path or a list of items, not {brief(plain(node))}",
                "Write a path, or a list of items with `path` or `content`",
                node.line,
                field,
            )
            return None
        inner = {entry.key: entry for entry in node.entries}
        for entry in node.entries:
            if entry.key not in ("path", "content", "parameters"):
                self._found.unknown(entry.key, entry.line, field, ("path", "content", "parameters"))
        sources = [inner[key] for key in ("path", "content") if key in inner]
        if len(sources) != 1:
            self._found.problem(
                "an item needs exactly one of `path` and `content`",
                "Remove one of them" if sources else "Add `path: FILE` or `content: TEXT`",
                node.line,
                field,
            )
            return None
        text = self._text(sources[0], f"{field}.{sources[0].key}")
        if text is None:
            return None
        source = self._path(text) if "path" in inner else TextPart(text)
        return Part(source, self._parameters(inner.get("parameters"), field))

    def _parameters(self, entry: Entry | None, field: str) -> dict[str, str]:
        if entry is None:
            return {}
        try:
            values = TextMap().check(as_written(entry.node))
        except WrongValue as wrong:
            self._found.problem(str(wrong), wrong.suggestion, entry.line, f"{field}.parameters")
            return {}
        return {name: value or "" for name, value in values.items()}

    def _path(self, text: str) -> Source:
        if text.startswith(builtin.PREFIX):
            return BuiltinPart(text.removeprefix(builtin.PREFIX))
        path = anchored(self._file.folder, text, self._file.home)
        return FilePart(path, text if self._file.tier is Tier.WORKSPACE else str(path))

    # -- aliases ---------------------------------------------------------------------------

    def _aliases(self, section: Entry) -> None:
        for entry in self._mapping(section.node, "ai_cmd_aliases"):
            field = f"ai_cmd_aliases.{entry.key}"
            alias: Alias | None = None
            if isinstance(entry.node, Mapping):
                inner = {item.key: item for item in entry.node.entries}
                for item in entry.node.entries:
                    if item.key not in ("command", "adapter"):
                        self._found.unknown(item.key, item.line, field, ("command", "adapter"))
                if "command" not in inner:
                    self._found.problem(
                        "has no command", "Add `command: PROGRAM ARGS`", entry.line, field
                    )
                    continue
                command = self._text(inner["command"], f"{field}.command")
                adapter = self._adapter(inner.get("adapter"), f"{field}.adapter")
                alias = Alias(command, adapter) if command else None
                if alias is None:
                    continue
            elif plain(entry.node) is not None:
                command = self._text(entry, field)
                if command is None:
                    continue
                alias = Alias(command)
            self.layer.aliases[entry.key] = Valued(alias, self._origin(entry.line), field)

    def _adapter(self, entry: Entry | None, field: str) -> str | None:
        if entry is None:
            return None
        try:
            return OneOf(tuple(ADAPTERS)).check(plain(entry.node))
        except WrongValue as wrong:
            self._found.problem(str(wrong), wrong.suggestion, entry.line, field)
            return None

    # -- helpers ---------------------------------------------------------------------------

    def _mapping(self, node: Node, field: str) -> tuple[Entry, ...]:
        """Return the entries of a mapping; an empty value is an empty mapping."""
        return node.entries if self._is_mapping(node, field) and isinstance(node, Mapping) else ()

    def _is_mapping(self, node: Node, field: str) -> bool:
        if isinstance(node, Mapping) or plain(node) is None:
            return True
        self._found.problem(
            f"must be a mapping of keys to values, not {brief(plain(node))}",
            "Write `key: value` lines",
            node.line,
            field,
        )
        return False

    def _text(self, entry: Entry, field: str) -> str | None:
        if isinstance(entry.node, Scalar):
            # A number or a word without quotes is text here; an empty value is an error.
            text = "" if entry.node.value is None else entry.node.text
            try:
                return Text().check(text)
            except WrongValue as wrong:
                self._found.problem(str(wrong), wrong.suggestion, entry.line, field)
        else:
            shown = brief(plain(entry.node))
            self._found.problem(f"must be text, not {shown}", "Write text", entry.line, field)
        return None

    def _origin(self, line: int) -> Origin:
        if self._file.tier is Tier.BUILTIN:
            return Origin(Tier.BUILTIN)
        if self._file.tier is Tier.PRESET:
            return Origin(Tier.PRESET, self._file.source)
        return Origin(self._file.tier, self._file.shown, line, self._file.tree)


# -- hooks ------------------------------------------------------------------------------------


def _read_hooks(node: Node, field: str, findings: "_Findings") -> tuple[Hook, ...] | None:
    """Return one hook or several; None, and problems, if one of them is wrong."""
    items = node.items if isinstance(node, Sequence) else (node,)
    hooks = [_hook(item, field, findings) for item in items]
    return None if None in hooks else tuple(hook for hook in hooks if hook is not None)


def _hook(node: Node, field: str, findings: "_Findings") -> Hook | None:
    raw = _fields(node, field, findings) if isinstance(node, Mapping) else plain(node)
    if raw is None and isinstance(node, Mapping):
        return None
    try:
        return hook_of(raw)
    except WrongValue as wrong:
        findings.problem(str(wrong), wrong.suggestion, node.line, field)
        return None


def _fields(node: Mapping, field: str, findings: "_Findings") -> dict[str, object] | None:
    """Return the known fields of a hook; None if one of them is wrong."""
    values: dict[str, object] = {}
    is_right = True
    for entry in node.entries:
        kind = HOOK_FIELDS.get(entry.key)
        if kind is None:
            findings.unknown(entry.key, entry.line, field, HOOK_FIELDS)
            continue
        try:
            values[entry.key] = kind.check(plain(entry.node))
        except WrongValue as wrong:
            findings.problem(str(wrong), wrong.suggestion, entry.line, f"{field}.{entry.key}")
            is_right = False
    return values if is_right else None


# -- problems ---------------------------------------------------------------------------------


class _Findings(Struct, frozen=True):
    """Collects the problems of a file; `file` is its name in messages."""

    file: str
    problems: list[Problem]

    def problem(self, message: str, suggestion: str, line: int, field: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(message, suggestion, file=self.file, line=line, field=field))

    def unknown(self, key: str, line: int, field: str, known: Iterable[str]) -> None:
        """Add the problem of an unknown key: a misspelled limit would have no effect."""
        self.problem(
            f"unknown key {key.rpartition('.')[2]!r}",
            _advice(key, list(known))
            or "Remove it, or see `rooda config schema` for the keys there are",
            line,
            f"{field}.{key}" if field else key,
        )


def _advice(key: str, known: list[str]) -> str:
    """Return what the user most likely meant; `key` begins with its section."""
    section, dot, name = key.partition(".")
    if key in BY_KEY and dot:
        return f"Write `{section}:` and `{name}:` below it"
    if key in BY_KEY or key in SECTIONS:
        return "It belongs below `loop`"
    # Compare without the section: with it, all keys of a section look alike.
    inner = [one.partition(".")[2] for one in known if dot and one.startswith(f"{section}.")]
    if guess := near_miss(name, inner):
        return f"Did you mean '{section}.{guess}'?"
    if not inner and (advice := did_you_mean(key, known)):
        return advice
    elsewhere = near_miss(name if inner else key, BY_KEY)
    return f"Did you mean 'loop.{elsewhere}'?" if elsewhere else ""
