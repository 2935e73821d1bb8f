"""Parses YAML into a tree in which every key and value has its line.

Scalars follow YAML 1.2: `on` and `yes` are words, `014` is fourteen, `1:30` is a word.
The tree is built from libyaml's events without recursion and with limits: deep nesting and
aliases of aliases can't exhaust the stack or the memory.
"""

import re
from collections.abc import Iterator

import yaml
from msgspec import Struct, field

from rooda.base.problems import Problem, Severity
from rooda.plan.locate import LARGEST_FILE

_DEEPEST = 50
_LARGEST_TREE = 100_000
_TOO_DEEP = f"nested more than {_DEEPEST} levels deep"
_TAGS = (None, "!", *(f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq")))
# Every character that is not printable in YAML. The opposite, a set of all that are, takes ten
# times as long to compile.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")

_MERGE = "<<"  # YAML 1.1's merge key, which people expect beside anchors
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]{1,30}")
_OCTAL = re.compile(r"0o[0-7]{1,30}")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,30}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

ScalarValue = None | bool | int | float | str


class Scalar(Struct, frozen=True):
    """A single value; `text` is what was written."""

    value: ScalarValue
    text: str
    line: int


class Sequence(Struct, frozen=True):
    """A list."""

    items: "tuple[Node, ...]"
    line: int


class Entry(Struct, frozen=True):
    """A key of a mapping, its line, and its value."""

    key: str
    line: int
    node: "Node"


class Mapping(Struct, frozen=True):
    """Keys and values in the order of the file, each key once."""

    entries: tuple[Entry, ...]
    line: int


Node = Scalar | Sequence | Mapping


class _Open(Struct):
    """A collection that the parser has begun and not ended."""

    is_mapping: bool
    line: int
    anchor: str | None
    items: list[Node] = field(default_factory=list)


class _Refused(Exception):
    def __init__(self, message: str, line: int, suggestion: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.suggestion = suggestion


def parse(data: bytes, file: str) -> tuple[Node | None, list[Problem]]:
    """Return the document, or None and the reasons. An empty file is an empty document."""
    problems: list[Problem] = []
    try:
        return _Composer(file, problems).compose(_decode(data)), problems
    except _Refused as refused:
        problem = Problem(str(refused), refused.suggestion, file=file, line=refused.line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        words = ", ".join(filter(None, (error.context, error.problem)))
        problem = Problem(
            f"not valid YAML: {words}",
            "Check the indentation, quotes and brackets on this line and the one before; a value "
            "that has `: ` in it needs quotes",
            file=file,
            line=None if mark is None else mark.line + 1,
        )
    except yaml.YAMLError as error:
        problem = Problem(f"not valid YAML: {str(error).splitlines()[0]}", file=file)
    return None, [*problems, problem]


def _decode(data: bytes) -> str:
    if len(data) > LARGEST_FILE:
        raise _Refused(f"the file is larger than {LARGEST_FILE:,} bytes", 1, "Make it smaller")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _Refused("the file is not UTF-8 text", line, "Save it as UTF-8") from None
    if found := _CONTROL.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise _Refused(f"control characters are not allowed: {found[0]!r}", line, "Remove it")
    return text


class _Composer:
    """Builds the tree from parser events."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self._file = file
        self._problems = problems
        self._anchors: dict[str, Node] = {}
        # Of each collection, aliases written out: how many nodes, and how deep.
        self._sizes: dict[int, tuple[int, int]] = {}

    def compose(self, text: str) -> Node | None:
        stack: list[_Open] = []
        root: Node | None = None
        documents = 0
        for event in _events(text):
            line = 1 if event.start_mark is None else event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _Refused("a second YAML document", line, "Keep one document a file")
            node = self._node(event, line, stack)
            if node is None:
                continue
            if stack:
                stack[-1].items.append(node)
            else:
                root = node
        return root

    def _node(self, event: yaml.Event, line: int, stack: list[_Open]) -> Node | None:
        """Return the node that an event completes, if any; begin and end collections."""
        match event:
            case yaml.ScalarEvent():
                return self._remember(event.anchor, self._scalar(event, line))
            case yaml.AliasEvent():
                return self._alias(event.anchor, line)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                if len(stack) >= _DEEPEST:
                    raise _Refused(_TOO_DEEP, line, "Make it flatter")
                _refuse_tag(event.tag, line)
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                stack.append(_Open(is_mapping, line, event.anchor))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                closed = stack.pop()
                return self._remember(closed.anchor, self._close(closed))
        return None

    def _remember(self, anchor: str | None, node: Node) -> Node:
        if anchor:
            self._anchors[anchor] = node
        return node

    def _alias(self, anchor: str | None, line: int) -> Node:
        # An anchor is known only once its node has ended, so none can contain itself.
        if anchor is None or anchor not in self._anchors:
            raise _Refused(
                f"the alias *{anchor} has no anchor before it", line, f"Add &{anchor} before it"
            )
        return self._anchors[anchor]

    def _close(self, opened: _Open) -> Node:
        below = [self._sizes.get(id(item), (1, 0)) for item in opened.items]
        size = 1 + sum(count for count, _ in below)
        depth = 1 + max((depth for _, depth in below), default=0)
        if size > _LARGEST_TREE:
            too_many = f"more than {_LARGEST_TREE:,} values"
            words = f"the aliases multiply to {too_many}" if self._anchors else too_many
            raise _Refused(words, opened.line, "Make it smaller")
        if depth > _DEEPEST:
            raise _Refused(_TOO_DEEP, opened.line, "Make it flatter")
        node = self._collection(opened)
        self._sizes[id(node)] = size, depth
        return node

    def _collection(self, opened: _Open) -> Node:
        if not opened.is_mapping:
            return Sequence(tuple(opened.items), opened.line)
        entries: dict[str, Entry] = {}
        merged: list[Entry] = []
        for key, value in zip(opened.items[::2], opened.items[1::2], strict=True):
            if not isinstance(key, Scalar):
                raise _Refused("a key must be a word, not a list or a mapping", key.line)
            if key.text == _MERGE:
                merged += _merged(value, key.line)
                continue
            if key.text in entries:
                self._problems.append(
                    Problem(
                        f"the key {key.text!r} stands here twice "
                        f"(first on line {entries[key.text].line})",
                        "Remove one of the two",
                        file=self._file,
                        line=key.line,
                        severity=Severity.ERROR,
                    )
                )
                continue
            entries[key.text] = Entry(key.text, key.line, value)
        for entry in merged:  # the mapping's own keys override
            entries.setdefault(entry.key, entry)
        return Mapping(tuple(entries.values()), opened.line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Scalar:
        _refuse_tag(event.tag, line)
        plain = event.implicit[0] and event.tag is None
        return Scalar(resolve(event.value) if plain else event.value, event.value, line)


def _merged(value: Node, line: int) -> Iterator[Entry]:
    """Return the entries that `<<: *anchor` merges; in a list, the first mapping wins."""
    for node in value.items if isinstance(value, Sequence) else (value,):
        if not isinstance(node, Mapping):
            raise _Refused("`<<` needs a mapping", line, "Write `<<: *ANCHOR` with a mapping")
        yield from node.entries


def _refuse_tag(tag: str | None, line: int) -> None:
    if tag not in _TAGS:
        raise _Refused(f"the tag {tag} is not understood", line, "Write the value alone")


def _events(text: str) -> Iterator[yaml.Event]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events: Iterator[yaml.Event] = yaml.parse(text, Loader=loader)
    return events


def resolve(text: str) -> ScalarValue:
    """Return the value of a plain scalar by YAML 1.2's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def as_written(node: Node) -> object:
    """Return a mapping of names to texts as written: `3.10` stays `3.10`, null is None."""
    if not isinstance(node, Mapping):
        return plain(node)
    return {
        entry.key: plain(entry.node)
        if not isinstance(entry.node, Scalar) or entry.node.value is None
        else entry.node.text
        for entry in node.entries
    }


def plain(node: Node) -> object:
    """Return the node as plain Python values."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return {entry.key: plain(entry.node) for entry in node.entries}
