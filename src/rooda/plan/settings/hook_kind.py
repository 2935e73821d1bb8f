"""Hooks: commands that rooda runs for the user at certain points of a run."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from rooda.plan.settings.kinds import Kind, Schema, Timeout, WrongValue, brief
from rooda.plan.settings.text_kinds import OneOf, ShellCommand

OnError = Literal["ignore", "fail", "abort"]

_FORM = "Write a command, or {command: CMD, timeout: 30s, on_error: ignore}"


class Hook(Struct, frozen=True):
    """A command for `sh -c`, its time limit in seconds, and what its failure means.

    `fail` makes the iteration fail: a hook before it skips it, a hook after it fails it. Before the
    first iteration, `fail` means `abort`. After a failure, in a wait and at the end of the run,
    it means `ignore`.
    """

    command: str
    timeout: float = 30.0
    on_error: OnError = "ignore"


# The fields of a hook, and the kinds of their values.
HOOK_FIELDS: Mapping[str, Kind[Any]] = {
    "command": ShellCommand(),
    "timeout": Timeout(0.1),
    "on_error": OneOf(("ignore", "fail", "abort")),
}


def hook_of(raw: object) -> Hook:
    """Return the hook that YAML gives as a command, or as a mapping with a command."""
    if isinstance(raw, str):
        return Hook(ShellCommand().check(raw))
    if not isinstance(raw, dict):
        raise WrongValue(f"must be a command or a mapping with one, not {brief(raw)}", _FORM)
    if unknown := [key for key in raw if key not in HOOK_FIELDS]:
        raise WrongValue(f"a hook has no {brief(unknown[0])}", _FORM)
    if "command" not in raw:
        raise WrongValue("has no command", "Add `command: CMD`")
    checked = {key: HOOK_FIELDS[key].check(value) for key, value in raw.items()}
    return Hook(**cast("dict[str, Any]", checked))


class HookList(Kind[tuple[Hook, ...]], frozen=True):
    """One hook or several, run one after the other."""

    metavar = "CMD"

    def check(self, raw: object) -> tuple[Hook, ...]:
        """Return the hooks; raise WrongValue for the first one that is wrong."""
        items = raw if isinstance(raw, (list, tuple)) else [raw]
        return tuple(item if isinstance(item, Hook) else hook_of(item) for item in items)

    def show(self, value: tuple[Hook, ...]) -> str:
        """Return the commands, each with its fields that are not the default."""
        return "; ".join(map(_shown, value)) or "none"

    def plain(self, value: tuple[Hook, ...]) -> object:
        """Return each hook in its shortest form for a config file."""
        return [_special(hook) or hook.command for hook in value]

    def schema(self) -> Schema:
        """Return the schema of one hook or a list of hooks."""
        command = ShellCommand().schema()
        fields = {key: kind.schema() for key, kind in HOOK_FIELDS.items()}
        mapping = {
            "type": "object",
            "additionalProperties": False,
            "properties": fields,
            "required": ["command"],
        }
        one = {"anyOf": [command, mapping]}
        return {"anyOf": [command, mapping, {"type": "array", "items": one}]}


def _special(hook: Hook) -> dict[str, object]:
    """Return the hook as a mapping; empty if its command is enough."""
    plain = Hook(hook.command)
    own = {
        key: getattr(hook, key) for key in HOOK_FIELDS if getattr(hook, key) != getattr(plain, key)
    }
    return {"command": hook.command, **own} if own else {}


def _shown(hook: Hook) -> str:
    own = {key: value for key, value in _special(hook).items() if key != "command"}
    words = [f"{key} {HOOK_FIELDS[key].show(value)}" for key, value in own.items()]
    return f"{hook.command} ({', '.join(words)})" if words else hook.command
