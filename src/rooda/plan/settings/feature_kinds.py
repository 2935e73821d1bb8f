"""Hooks: commands that rooda runs for the user at certain points of a run."""

import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal, cast

from msgspec import Struct

from rooda.base.lookup import did_you_mean
from rooda.base.service_addresses import shown_address
from rooda.plan.settings.kinds import Kind, Schema, Timeout, WrongValue, brief
from rooda.plan.settings.text_kinds import LabelList, OneOf, ShellCommand, TextList

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


# Kinds of values of `notify`: the addresses of services, and the moments to tell about.


MOMENTS = ("end", "failure", "waiting", "blocked")

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30})://(?P<rest>[^\s\x00-\x1f\x7f]*)")
_MOST, _LONGEST = 20, 2000  # addresses, and characters of one
_ADVICE = "Write the addresses of services, such as [ntfy://TOPIC] (docs/guide/notifications.md)"


class AddressList(TextList, frozen=True):
    """Several addresses of services, of which no message shows more than `shown_address`."""

    metavar = "URL"

    def check(self, raw: object) -> tuple[str, ...]:
        items = [raw] if isinstance(raw, str) else raw
        if not isinstance(items, (list, tuple)):
            raise WrongValue("must be a list of addresses", _ADVICE)
        if len(items) > _MOST:
            raise WrongValue(f"has more than {_MOST} addresses", "Remove some of them")
        return tuple(_checked(item, place) for place, item in enumerate(items, 1))

    def from_text(self, text: str) -> tuple[str, ...]:
        try:
            words = shlex.split(text)
        except ValueError:
            raise WrongValue("can't be split into words", "Check the quotes") from None
        return self.check(words or text)

    def show(self, value: tuple[str, ...]) -> str:
        return ", ".join(map(shown_address, value)) or "none"

    def plain(self, value: tuple[str, ...]) -> object:
        return [shown_address(one) for one in value]

    def schema(self) -> Schema:
        item = {"type": "string", "pattern": r"^\s*[A-Za-z][A-Za-z0-9+.-]*://"}
        return {"anyOf": [item, {"type": "array", "items": item, "maxItems": _MOST}]}


def _checked(raw: object, place: int) -> str:
    """Return one address. Raises WrongValue, with the number of the address and not with itself."""
    if not isinstance(raw, str):
        raise WrongValue(f"address {place} must be text", _ADVICE)
    text = raw.strip()
    found = _ADDRESS.fullmatch(text)
    if found is None or len(text) > _LONGEST:
        raise WrongValue(f"address {place} is not the address of a service", _ADVICE)
    return text


class MomentList(LabelList, frozen=True):
    """Some of the moments that rooda can tell about; with commas on the command line."""

    metavar = "MOMENT,..."

    def check(self, raw: object) -> tuple[str, ...]:
        items = [raw] if isinstance(raw, str) else raw
        words = ", ".join(MOMENTS)
        if not isinstance(items, (list, tuple)):
            raise WrongValue(f"must be a list with some of {words}", "Write [end]")
        for one in items:
            if one not in MOMENTS:
                guess = did_you_mean(one, MOMENTS) if isinstance(one, str) else ""
                fix = guess or f"Write some of: {words}"
                raise WrongValue(f"must be some of {words}, not {brief(one)}", fix)
        return tuple(dict.fromkeys(items))

    def show(self, value: tuple[str, ...]) -> str:
        return ", ".join(value) or "none"

    def schema(self) -> Schema:
        item = {"enum": list(MOMENTS)}
        return {"anyOf": [item, {"type": "array", "items": item}]}
