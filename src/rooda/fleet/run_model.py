"""The words of the fleet: task, batch, run, and the states of a run. Pure."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

BRANCHES = "refs/heads/rooda/"  # the branch of a run is here, below its name
RECORDS = "refs/rooda/fleet/"  # so is its record, on the remote or in the fence
# What a row or a record may have. Others than rooda can write them, and a time beyond the year 9999
# or an infinite sum is no value to go on with.
Moment = Annotated[float, Meta(ge=0, le=250e9)]  # seconds since 1970
Amount = Annotated[float, Meta(ge=0, le=1e12)]  # US dollars
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
DEFAULT_ACCOUNT = "default"  # of the agents of a task that names no account


class FleetTask(Struct, frozen=True, omit_defaults=True):
    """What the user wants done: a heading of a file, a spec, or an entry of fleet.yml.

    `text` is the prompt of the run; with a `procedure` it is the context of that procedure. None
    stands for the setting of the batch, or for no limit. `after` are names of runs of the project.
    """

    name: str  # also the name of the run
    title: str = ""
    text: str = ""
    procedure: str | None = None
    base: str | None = None  # a branch or commit to start from
    after: tuple[str, ...] = ()
    priority: Priority = 0  # a higher one starts first
    max_iterations: Count | None = None
    max_cost: Amount | None = None
    account: str = ""
    labels: tuple[str, ...] = ()


class Finish(StrEnum):
    """What happens to the branch of a run that ended as success."""

    BRANCH = "branch"
    PR = "pr"


class Batch(Struct, frozen=True, omit_defaults=True):
    """What one `add` brought in: the settings that its tasks share.

    `flags` are words for the command line of each iteration, such as `--ai-cmd`.
    """

    name: str
    base: str  # the commit from which its tasks start, unless they say otherwise
    base_branch: str = ""  # the branch of that commit, for pull requests
    flags: tuple[str, ...] = ()
    max_cost: Amount | None = None  # of all runs of the batch together
    finish: Finish = Finish.BRANCH
    forgotten_cost: Amount = 0.0  # of its runs that the user has removed from the table


class RunState(StrEnum):
    """Where a run is."""

    QUEUED = "queued"  # ready, or soon: see `not_before`
    BLOCKED = "blocked"  # waits for the runs in `after`
    WORKING = "working"
    SUCCESS = "success"
    FAILED = "failed"  # a limit or a rule ended it
    STOPPED = "stopped"  # by the user
    CONFLICT = "conflict"  # with what a person pushed, or among the runs that it builds on
    SET_ASIDE = "set-aside"  # its workers died again and again

    @property
    def is_end(self) -> bool:
        """Whether no worker takes up the run any more by itself."""
        return self not in (RunState.QUEUED, RunState.BLOCKED, RunState.WORKING)


class Order(StrEnum):
    """What the user asked of a run that is at work."""

    NONE = ""
    STOP = "stop"  # after this iteration
    NOW = "now"


class RunProgress(Struct, frozen=True, kw_only=True):
    """How far a run is: what git, the database and the views keep of the outcome of iterations.

    A fact is declared here; `store/tables.py` has a column for it.
    """

    iteration: Count = 0  # the last one that was published
    max_iterations: Count | None = None
    cost: Amount = 0.0
    unknown_costs: Count = 0  # iterations whose agent told no cost
    headline: str = ""  # of the last iteration, in the words of its agent

    @property
    def progress(self) -> dict[str, Any]:
        """These facts alone, by their names."""
        return {name: getattr(self, name) for name in RunProgress.__struct_fields__}


class Run(RunProgress, frozen=True):
    """One run as the database has it. Git has the truth about its iterations."""

    project: str
    run: str
    batch: Batch
    task: FleetTask
    state: RunState = RunState.QUEUED
    turn: Count = 1
    life: str = ""  # an end that was published in an earlier life does not count any more
    reason: str = ""  # why it waits, or how it ended, in words
    not_before: Moment = 0.0  # seconds since 1970: when a waiting run is ready again
    worker: str = ""  # that has it, or had it last
    where: str = ""  # host and slot, for people
    order: Order = Order.NONE
    added: Moment = 0.0
    changed: Moment = 0.0
    ended: str = ""  # merged, PR #12, ...; empty: the branch alone

    @property
    def account(self) -> str:
        """The account that its agent uses: a usage limit is a matter of an account."""
        return self.task.account or DEFAULT_ACCOUNT

    @property
    def branch(self) -> str:
        """The branch with the work of the run."""
        return f"rooda/{self.run}"


# What follows an iteration of a run. Pure.


class Next(Struct, frozen=True):
    """What the turn does next: one more iteration, wait, end, or nothing (`gone`)."""

    move: Literal["again", "wait", "end", "gone"]
    seconds: float = 0.0  # how long to wait
    reason: str = ""
    state: RunState = RunState.QUEUED  # for an end
    iteration: int = 0
