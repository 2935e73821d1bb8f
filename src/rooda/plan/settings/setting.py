"""One row of the table of settings, and everything that follows from it."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from rooda.plan.settings.kinds import Kind, WrongValue
from rooda.plan.settings.text_kinds import Text

T = TypeVar("T")

UNSET = "none"
LOOP = "loop"  # the key at the top of the config file

# Words of a key that the dry run writes in another way.
_TITLE_WORDS = {"ai": "AI", "cmd": "Command", "env": "Environment"}


def variable_prefix(place: str) -> str:
    """Return how the variables of the settings below a key begin: `ROODA_LOOP_`."""
    return f"ROODA_{place.upper()}_"


class Setting(Struct, Generic[T], frozen=True, eq=False):
    """A row of the table: a key below `place`, its kind of value, its default and its help.

    `group` is its section of the help. `label`, `flag` and `fix` (the advice for a wrong value)
    replace what would follow from the key and the kind, and so does `placeholder`, the name of
    the value in the help. The flag of a `common` setting is in `--help`, not only in `--help-all`.
    A setting that `is_secret` has no flag: other users of the machine can read command lines.
    """

    key: str
    kind: Kind[Any]
    default: T
    help: str
    group: str
    label: str = ""
    flag: str = ""
    short: str = ""
    old_variables: tuple[str, ...] = ()
    nullable: bool = False
    per_procedure: bool = True
    always_in_dry_run: bool = False
    fix: str = ""
    placeholder: str = ""
    common: bool = False
    is_secret: bool = False
    place: str = LOOP

    @property
    def metavar(self) -> str:
        """The name of the value in the help: `DURATION`."""
        return self.placeholder or self.kind.metavar

    @property
    def field(self) -> str:
        """The key as messages name it: `loop.iteration_timeout`."""
        return f"{self.place}.{self.key}"

    @property
    def flag_name(self) -> str:
        """The long flag: `--iteration-timeout`; empty for a secret, which has none."""
        if self.is_secret:
            return ""
        return self.flag or "--" + self.key.replace("_", "-").replace(".", "-")

    @property
    def variable(self) -> str:
        """The environment variable: `ROODA_LOOP_ITERATION_TIMEOUT`."""
        return variable_prefix(self.place) + self.key.replace(".", "_").upper()

    @property
    def title(self) -> str:
        """The name in the dry run: `Iteration Timeout`."""
        words = self.key.replace(".", "_").split("_")
        return self.label or " ".join(_TITLE_WORDS.get(word, word.title()) for word in words)

    def show(self, value: Any) -> str:
        """Return the value as a person reads it."""
        return "none" if value is None else self.kind.show(value)

    def plain(self, value: Any) -> object:
        """Return the value as YAML and JSON have it."""
        return None if value is None else self.kind.plain(value)

    def check(self, raw: object) -> Any:
        """Return the value that a file gives; raise WrongValue with the advice of the row."""
        if raw is None and self.nullable:
            return self._none
        return self._worded(self.kind.check, raw)

    def from_text(self, text: str) -> Any:
        """Return the value that a flag or variable gives; `none` unsets an optional setting."""
        if text == UNSET and self.nullable:
            return self._none
        if text == UNSET and isinstance(self.kind, Text):  # else `none` would be the text
            raise WrongValue("can't be none", self.fix or f"The default is {self.default!r}")
        return self._worded(self.kind.from_text, text)

    @property
    def _none(self) -> Any:
        """The value of a setting that the user has unset: for a list, an empty list."""
        return () if isinstance(self.default, tuple) else None

    def _worded(self, check: Callable[[Any], Any], raw: object) -> Any:
        try:
            return check(raw)
        except WrongValue as wrong:
            raise WrongValue(str(wrong), self.fix or wrong.suggestion) from None


def setting(
    key: str,
    kind: Kind[T],
    default: T,
    group: str,
    about: str,
    **special: Any,
) -> Setting[T]:
    """Return a row; `about` is its help, `special` are the other fields of `Setting`.

    A list or a map can be unset: then it is empty.
    """
    return Setting(key, kind, default, about, group, nullable=default in ((), {}), **special)


def optional(
    key: str,
    kind: Kind[T],
    default: T | None,
    group: str,
    about: str,
    **special: Any,
) -> Setting[T | None]:
    """Return a row whose value can be unset, which means None."""
    return Setting(key, kind, default, about, group, nullable=True, **special)
