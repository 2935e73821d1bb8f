"""What a setting is: one row of the table, and all that follows from it."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from rooda.config.kinds import Kind, Text, WrongValue

T = TypeVar("T")

UNSET = "none"
VARIABLE_PREFIX = "ROODA_LOOP_"


class Setting(Struct, Generic[T], frozen=True, eq=False):
    """A row: a key below `loop`, its kind, its default, and how people reach and see it."""

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

    @property
    def field(self) -> str:
        """The key as messages name it: `loop.iteration_timeout`."""
        return f"loop.{self.key}"

    @property
    def flag_name(self) -> str:
        """The long flag: `--iteration-timeout`."""
        return self.flag or "--" + self.key.replace("_", "-").replace(".", "-")

    @property
    def variable(self) -> str:
        """The environment variable: `ROODA_LOOP_ITERATION_TIMEOUT`."""
        return VARIABLE_PREFIX + self.key.replace(".", "_").upper()

    @property
    def title(self) -> str:
        """The name in the dry run: `Iteration Timeout`."""
        return self.label or self.key.replace("_", " ").replace(".", " ").title()

    def show(self, value: Any) -> str:
        """The value as a person reads it."""
        return "none" if value is None else self.kind.show(value)

    def plain(self, value: Any) -> object:
        """The value as YAML and JSON have it."""
        return None if value is None else self.kind.plain(value)

    def check(self, raw: object) -> Any:
        """The value that a file gives, or WrongValue with the row's own advice."""
        if raw is None and self.nullable:
            return self._none
        return self._worded(self.kind.check, raw)

    def from_text(self, text: str) -> Any:
        """The value that a flag or variable gives; `none` unsets what may be unset."""
        if text == UNSET and self.nullable:
            return self._none
        if text == UNSET and isinstance(self.kind, Text):  # it would pass for a text
            raise WrongValue("can't be none", self.fix or f"The default is {self.default!r}")
        return self._worded(self.kind.from_text, text)

    @property
    def _none(self) -> Any:
        """Explicitly none: of a list that is a list with nothing in it."""
        return () if isinstance(self.default, tuple) else None

    def _worded(self, check: Callable[[Any], Any], raw: object) -> Any:
        try:
            return check(raw)
        except WrongValue as wrong:
            raise WrongValue(str(wrong), self.fix or wrong.suggestion) from None
