"""A run without a sandbox pays nothing for it."""

import subprocess
import sys

import pytest

_LOOK = (
    "import sys, rooda.front.cli.commands.run, rooda.run.start, rooda.plan.prepare; "
    "known = {'rooda.world.sandbox', 'rooda.world.sandbox.tree_findings'}; "  # the words of events
    "sys.exit(any(name.startswith('rooda.world.sandbox') for name in sys.modules.keys() - known))"
)


@pytest.mark.real
def test_plain_run_does_not_load_the_sandbox() -> None:
    subprocess.run([sys.executable, "-c", _LOOK], check=True, timeout=60)
