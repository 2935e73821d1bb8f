"""Read hooks from a parsed file, so that every mistake in them is told with its own line."""

from rooda.config.document import Mapping, Node, Sequence, plain
from rooda.config.findings import Findings
from rooda.config.hooks import HOOK_FIELDS, Hook, hook_of
from rooda.config.kinds import WrongValue


def read_hooks(node: Node, field: str, findings: Findings) -> tuple[Hook, ...] | None:
    """One hook or a list of them; None, and what is wrong, if any of them can't be used."""
    items = node.items if isinstance(node, Sequence) else (node,)
    hooks = [_hook(item, field, findings) for item in items]
    return None if None in hooks else tuple(hook for hook in hooks if hook is not None)


def _hook(node: Node, field: str, findings: Findings) -> Hook | None:
    raw = _fields(node, field, findings) if isinstance(node, Mapping) else plain(node)
    if raw is None and isinstance(node, Mapping):
        return None
    try:
        return hook_of(raw)
    except WrongValue as wrong:
        findings.problem(str(wrong), wrong.suggestion, node.line, field)
        return None


def _fields(node: Mapping, field: str, findings: Findings) -> dict[str, object] | None:
    """What a hook says of itself, without what is unknown; None if something in it is wrong."""
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
