"""What a worker tells its slot processes, and where a fleet works."""

from collections.abc import Mapping

from msgspec import Struct

from rooda.plan.settings.fleet_settings import URL

REPLACE = 75  # the exit code of a slot process that must not go on: the worker starts another one
_PRIVATE_VARIABLES = ("ROODA_FLEET_", "PGPASS")  # of the worker and its slot processes alone


def for_slot_process(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a slot process: its plan has the address of the database."""
    return {name: value for name, value in environ.items() if name != URL.variable}


def for_programs(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of everything that runs in a slot: git, the setup command, agents."""
    return {
        name: value for name, value in environ.items() if not name.startswith(_PRIVATE_VARIABLES)
    }


class SlotPlan(Struct, frozen=True):
    """One slot of a worker. The address of the database is a secret: it is never an argument."""

    url: str  # of the database
    remote: str  # the address of the git repository
    project: str
    slot: int
    state: str | None = None  # the state folder with the fence or the database
    fence: str | None = None  # the repository with the records, if it is another one
    checkout: str | None = None  # the user's work tree, from which ignored files are copied
    labels: tuple[str, ...] = ()
    takeover: float = 60.0  # seconds of silence after which a worker counts as dead
    setup: str | None = None
    setup_inputs: tuple[str, ...] = ()
    copy: tuple[str, ...] = ()
    most_claims: int = 8  # of one iteration: more, and the run is set aside
