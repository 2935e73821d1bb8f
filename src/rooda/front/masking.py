"""The flag `--unmasked`, and what a command that reads the record masks.

The record has no list of secrets. So a command masks what it can know: tokens by their form, and
secrets in its own environment, in the `--env` flags of the run, and in the `env` of the config
files.
"""

import click

from rooda.base.secrets.masking import MASK_NOTHING, Masker
from rooda.plan.world import this_world

UNMASKED = click.option(
    "--unmasked", is_flag=True, help="Show secrets, which are masked without this flag."
)


def masker_here(*, unmasked: bool = False) -> Masker:
    """Return what masks the secrets of this environment, or nothing if the user wants that."""
    return MASK_NOTHING if unmasked else Masker(this_world().environ)
