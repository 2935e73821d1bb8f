"""The table of settings below `fleet`, for `rooda fleet` and `rooda worker`.

A row is as in `settings.py`: the key in the config file and the variable, such as
`ROODA_FLEET_JOBS`, follow from it. A plain run does not load this module.
"""

from collections.abc import Mapping
from typing import Any

from rooda.plan.settings.kinds import Dollars, Integer, Kind, Seconds
from rooda.plan.settings.setting import Setting, optional, setting
from rooda.plan.settings.text_kinds import (
    DatabaseUrl,
    LabelList,
    OneOf,
    ShellCommand,
    Text,
    TextList,
)

PLACE = "fleet"  # the key at the top of the config file
GROUP = "Fleet"


def _row(key: str, kind: Kind[Any], default: Any, about: str) -> Setting[Any]:
    make = optional if default is None else setting
    return make(key, kind, default, GROUP, about, place=PLACE)


# fmt: off

URL: Setting[str | None] = _row("url", DatabaseUrl(), None,
    "Database of the fleet; null: SQLite in the state folder of rooda; postgresql://... for many "
    "machines")
REMOTE: Setting[str | None] = _row("remote", Text(), None,
    "Git repository that all machines share: a URL, or the name of a remote; null: the repository "
    "itself with SQLite, else `origin`")
JOBS: Setting[int] = _row("jobs", Integer(1, 256), 2,
    "How many runs a worker works on at once")
PROCEDURE: Setting[str | None] = _row("procedure", Text(), None,
    "Procedure for tasks that name none; null: the text of a task is its prompt")
SETUP: Setting[str | None] = _row("setup", ShellCommand(), None,
    "Command that prepares a new slot, and again when setup_inputs change; a run does not start "
    "while it fails")
SETUP_INPUTS: Setting[tuple[str, ...]] = _row("setup_inputs", TextList(), (),
    "Files whose change makes setup run again, with * and ?")
COPY: Setting[tuple[str, ...]] = _row("copy", TextList(), (),
    "Ignored files that a slot gets from your checkout, such as .env, with * and ?")
MAX_COST: Setting[float | None] = _row("max_cost", Dollars(), None,
    "US dollars that all runs of a batch together may cost; checked before each iteration")
FINISH: Setting[str] = _row("finish", OneOf(("branch", "pr")), "branch",
    "What happens to the branch of a run that ended as success: it stays, or it becomes a pull "
    "request with gh")
TAKEOVER: Setting[float] = _row("takeover", Seconds(1), 60.0,
    "How long a worker must be silent before another one takes over its runs")
LABELS: Setting[tuple[str, ...]] = _row("labels", LabelList(), (),
    "What this machine can do: it also takes tasks that need these labels")

# fmt: on

FLEET_SETTINGS: tuple[Setting[Any], ...] = tuple(
    row for row in globals().values() if isinstance(row, Setting)
)
FLEET_KEYS: Mapping[str, Setting[Any]] = {row.key: row for row in FLEET_SETTINGS}
