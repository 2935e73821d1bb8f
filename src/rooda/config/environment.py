"""The environment of a program, and what the configuration makes of it."""

from collections.abc import Mapping


def with_changes(environ: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """The environment with these variables set, or taken away where the value is None."""
    merged: dict[str, str | None] = {**environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}
