"""The state folders of the work trees of a test, in the state home that the test has for itself."""

import os
from collections.abc import Mapping
from pathlib import Path

from rooda.world.state.folder import StateFolder
from rooda.world.state.home import VARIABLE, state_home
from rooda.world.state.record_place import RecordPlace, note_tree, place_at


def own_state_home() -> dict[str, str]:
    """The variable with the state home of this test."""
    return {VARIABLE: os.environ[VARIABLE]}


def record_at(tree: Path, environ: Mapping[str, str] = os.environ) -> RecordPlace:
    """The record of a work tree, at the place that its path decides."""
    return place_at(tree, state_home(environ))


def state_of(tree: Path, environ: Mapping[str, str] = os.environ) -> StateFolder:
    """The state folder of a work tree."""
    return record_at(tree, environ).state


def remember(tree: Path) -> None:
    """Write down which work tree a state folder belongs to, as the start of a run does."""
    note_tree(state_of(tree), tree)
