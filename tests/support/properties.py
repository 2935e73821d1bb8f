"""How many examples a property is tried with."""

import os
from typing import Any

from hypothesis import settings

TIMES = "ROODA_TEST_EXAMPLES"  # `make test-long` tries 20 times as many
_TIMES = int(os.environ.get(TIMES, "1"))


def examples(number: int = 100, **more: Any) -> settings:
    """Return hypothesis settings without a deadline, because the machine may be slow."""
    return settings(deadline=None, max_examples=number * _TIMES, **more)
