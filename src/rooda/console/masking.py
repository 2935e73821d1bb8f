"""The flag `--unmasked`, and what a command that reads the record masks.

The record has no list of secrets. So a command masks what it can know: tokens by their form, and
secrets in its own environment, in the `--env` flags of the run, and in the `env` of the config
files.
"""

from collections.abc import Iterator

import click

from rooda.config.world import this_world
from rooda.record.given_flags import GivenFlags
from rooda.record.rows import RunRow
from rooda.text.masking import MASK_NOTHING, Masker

UNMASKED = click.option(
    "--unmasked", is_flag=True, help="Show secrets, which are masked without this flag."
)


def masker_here(*, unmasked: bool = False) -> Masker:
    """Return what masks the secrets of this environment, or nothing if the user wants that."""
    return MASK_NOTHING if unmasked else Masker(this_world().environ)


def variables_of(*rows: RunRow) -> Iterator[dict[str, str]]:
    """Yield the variables that runs were given: by the config files, and by their flags."""
    from rooda.config.configured_env import configured_env  # pressing Tab does not need it

    for procedure in {row.procedure for row in rows}:
        yield configured_env(this_world(), procedure)
    for row in rows:
        if isinstance(row.given, GivenFlags):
            yield row.given.variables()
