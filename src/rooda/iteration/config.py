"""What an iteration is run with."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field


class IterationConfig(Struct, frozen=True):
    """Where and for how long an iteration may work, and what is looked at afterwards.

    There is no timeout unless one is asked for. `test_reports` are patterns of JUnit XML files.
    """

    timeout: float | None = None
    working_dir: Path = Path()
    env_vars: Mapping[str, str] = field(default_factory=dict)
    track_file_changes: bool = True
    parse_tests: bool = True
    test_reports: tuple[str, ...] = ()
