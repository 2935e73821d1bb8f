"""The variables that runs were given, whose secrets a view masks."""

from collections.abc import Iterator

from rooda.plan.configured_env import configured_env
from rooda.plan.world import World
from rooda.record.given_flags import GivenFlags
from rooda.record.rows import RunRow


def given_variables(world: World, *rows: RunRow) -> Iterator[dict[str, str]]:
    """Yield the variables that runs were given: by the config files, and by their flags."""
    for procedure in {row.procedure for row in rows}:
        yield configured_env(world, procedure)
    for row in rows:
        if isinstance(row.given, GivenFlags):
            yield row.given.variables()
