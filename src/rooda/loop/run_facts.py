"""The facts about the end of a run: the loop fills them, `RunEnded` and the record carry them."""

from msgspec import Struct

from rooda.world.tasks.standing import TaskCount


class RunFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run, all starts of it together. What is unknown, or not yet known, is None.

    A fact is declared here and nowhere else: the record keeps it, and `log_format: json`, `--json`
    and `--result` print it under its name. Facts may be added, but never renamed. Words are texts,
    because the record may have those of another version.
    """

    status: str  # `success`, `max-iters`, `aborted` or `interrupted`
    rule: str | None = None  # the rule that ended it, see [record.md](record.md#why-a-run-ended)
    exit_code: int | None = None  # the exit code of rooda
    signal: str | None = None  # the signal to rooda, if that ended the run
    iterations: int | None = None  # how many iterations ran
    max_iterations: int | None = None  # how many iterations may run; null means no limit
    consecutive_failures: int | None = None  # how many of the last iterations failed
    threshold: int | None = None  # how many failures in a row abort a run
    total: float | None = None  # for how many seconds the run was at work
    stats: dict[str, float | None] | None = None  # of the iterations' durations, in seconds
    tokens: int | None = None  # how many tokens the agents used
    cost: float | None = None  # what the run cost, in US dollars
    tasks: TaskCount | None = None  # how many tasks of the task file are done (`tasks`)
