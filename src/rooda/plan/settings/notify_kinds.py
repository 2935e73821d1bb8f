"""Kinds of values of `notify`: the addresses of services, and the moments to tell about."""

import re
import shlex

from rooda.base.lookup import did_you_mean
from rooda.base.service_addresses import shown_address
from rooda.plan.settings.kinds import Schema, WrongValue, brief
from rooda.plan.settings.text_kinds import LabelList, TextList

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
