"""The flags of `rooda fleet run` and `add`: those of the fleet, and those of each iteration."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rooda.base.problems import InvalidInput, Problem, errors, in_order
from rooda.base.secrets.secret_values import names_a_secret
from rooda.base.secrets.sensitive import without_secret_values
from rooda.fleet.run_model import FleetTask
from rooda.fleet.tasks.read_tasks import By
from rooda.front.command_line import anchored_in, given_of, parts_of
from rooda.front.command_table import RESERVED
from rooda.front.flags import PROMPT, RULES, PathHint, given_flags, run_options
from rooda.front.options import RunOption
from rooda.front.program_options import NAMES as FOR_PROGRAMS
from rooda.plan.command import AgentChoice, choice_problems, choose, command_of, split
from rooda.plan.layers import FILE_RUN, Layers
from rooda.plan.locate import read_layers
from rooda.plan.preflight.programs import check_program
from rooda.plan.preflight.validate import unknown_procedure
from rooda.plan.prompts.parts import PHASES
from rooda.plan.settings.fleet_settings import FINISH, JOBS, MAX_COST, PROCEDURE
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import ENV
from rooda.plan.world import World

GROUP = "Fleet"
# The fleet decides these itself, or they make no sense for many runs.
_LEFT_OUT = frozenset(
    {
        *PHASES,
        *FOR_PROGRAMS,
        "dry_run",
        "resume",
        "config",
        "set_max_cost",
        "set_git__branch",
        "set_git__push",
        "set_git__dirty",
        "set_git__untracked",
        "set_working_dir",
        "set_wait_for_limits",
        "set_keep_awake",
    }
)
_OWN = frozenset({"files", "jobs", "by", "max_cost", "run_max_cost", "finish", "base"}) | {
    "procedure",
    "config",
    "contexts",
    "as_json",
}


def fleet_options(*, with_jobs: bool) -> list[click.Parameter]:
    """Return the parameters of `add`, or of `run`, which also has a worker."""
    jobs = RunOption(
        ["-j", "--jobs"],
        metavar="N",
        section=GROUP,
        help=f"{JOBS.help} [default: {JOBS.default}]",
    )
    return [
        click.Argument(["files"], nargs=-1, required=not with_jobs, type=PathHint()),
        *([jobs] if with_jobs else []),
        RunOption(
            ["--by"],
            type=click.Choice([str(one) for one in By]),
            section=GROUP,
            help="What one task is in Markdown [default: a heading (##) of one file; a file, if "
            "several or a folder are named]",
        ),
        RunOption(["--max-cost"], metavar="USD", section=GROUP, help=MAX_COST.help),
        RunOption(
            ["--run-max-cost"],
            metavar="USD",
            section=GROUP,
            help="End a run when it has cost this many US dollars",
        ),
        RunOption(["--finish"], metavar="branch|pr", section=GROUP, help=FINISH.help),
        RunOption(
            ["--base"],
            metavar="COMMIT",
            section=GROUP,
            help="Branch or commit to start from [default: HEAD]",
        ),
        RunOption(["--procedure"], metavar="NAME", section=GROUP, help=PROCEDURE.help),
        RunOption(
            ["-c", "--context", "contexts"],
            multiple=True,
            metavar="TEXT-or-FILE",
            type=PathHint(),
            help="Text before each task, or a file with the text; can be given more than once",
            section=PROMPT,
        ),
        RunOption(["--config"], metavar="PATH", type=PathHint(), help="Config file of the fleet"),
        *(one for one in run_options() if one.name not in _LEFT_OUT | {"contexts"}),
    ]


def fleet_flags(parameters: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the settings of the fleet that the user gave, as `{key: (flag, text)}`."""
    rows: tuple[Setting[Any], ...] = (JOBS, MAX_COST, FINISH, PROCEDURE)
    names = [(row.key, f"--{row.key.replace('_', '-')}") for row in rows]
    return {key: (flag, str(parameters[key])) for key, flag in names if parameters.get(key)}


def run_words(ctx: click.Context, folder: Path) -> tuple[str, ...]:
    """Return the flags for each iteration as words, with absolute paths.

    Raises UsageError, InvalidInput.
    """
    if ctx.params.get("set_git__commit") is False:
        raise click.UsageError("--no-commit: a fleet publishes commits", ctx)
    given = {
        name: words
        for name, words in anchored_in(folder, parts_of(ctx), RULES).items()
        if name not in _OWN and name != "set_git__commit"
    }
    words = [word for flag in given_of(ctx.command, given).flags for word in flag]
    if ctx.params.get("run_max_cost"):
        words += ["--max-cost", ctx.params["run_max_cost"]]
    problems = list(_secrets(words))
    if problems:
        raise InvalidInput(problems)
    return tuple(words)


def _secrets(words: Sequence[str]) -> Iterator[Problem]:
    """Yield values that must not go into the database and into git, as the flags of a batch do."""
    for flag, value in itertools.pairwise(words):
        name = value.partition("=")[0]
        is_secret = without_secret_values(value) != value
        if flag == ENV.flag_name:
            is_secret = names_a_secret(name)
        if is_secret and flag.startswith("--"):
            yield Problem(
                "has a value that looks like a secret, and the flags of a fleet are kept in its "
                "database and in git",
                "Set it in the environment of the worker instead",
                field=flag,
            )


def _missing_agent(layers: Layers, choice: AgentChoice, world: World) -> list[Problem]:
    """Return the problem that the program of the agent is not on this machine."""
    command = command_of(layers, choice)
    if command is None:
        return []
    problems: list[Problem] = []
    words = split(command.text, command.origin, command.field, problems)
    if words and (missing := check_program(words, command, world.folder, world.environ).problem):
        problems.append(missing)
    return problems


def check_run_flags(
    parameters: Mapping[str, Any], tasks: Sequence[FleetTask], world: World, config: str | None
) -> None:
    """Raise InvalidInput if the runs of these tasks could not start: no agent, no procedure.

    `run` works here, so its agent must be installed here; that of `add` may be elsewhere.
    """
    flags = given_flags({"dry_run": False, **dict.fromkeys(_LEFT_OUT), **parameters})
    if parameters.get("run_max_cost"):
        flags["max_cost"] = ("--run-max-cost", parameters["run_max_cost"])
    problems: list[Problem] = []
    layers = read_layers(world, config, flags, problems)
    for name in dict.fromkeys(task.procedure for task in tasks):
        if name is not None and name not in layers.names_to_run():
            problems.append(unknown_procedure(name, layers, RESERVED))
        else:
            choice = choose(layers, name or FILE_RUN)
            found = choice_problems(layers, choice, "fleet run TASKS.md")
            problems += [one for one in found if one not in problems]
            if "jobs" in parameters and not errors(problems):
                problems += _missing_agent(layers, choice, world)
    if errors(problems):
        raise InvalidInput(in_order(problems))
