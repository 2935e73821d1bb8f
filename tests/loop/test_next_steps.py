"""The commands of a run, and the one that continues it after each end."""

import tomllib
from pathlib import Path

from rooda import PROGRAMS
from rooda.loop.next_steps import (
    LIMIT_FLAGS,
    RunCommands,
    commands_at_end,
    earlier_commands,
    resuming,
)
from rooda.loop.stops import StopRule
from support.tables import each_row

RUN = "20261114-230211-build"
ROODA = RunCommands("rooda build", flags=LIMIT_FLAGS).named(RUN)
PLAN = RunCommands("ralph plan", f"ralph plan --resume={RUN}", ("--max-iterations",), "ralph build")
VALUES = {"max_iterations": 40.0, "max_cost": 2.5}
LOOK = ("rooda show", "rooda report")


def test_programs_are_the_commands_that_the_package_installs() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    assert set(PROGRAMS) == set(project["project"]["scripts"])


@each_row(
    "commands,rule,expected",
    [
        (ROODA, StopRule.SIGNAL, ""),
        (ROODA, StopRule.STALL, f"rooda resume {RUN}"),
        (ROODA, None, f"rooda resume {RUN}"),
        (ROODA, StopRule.MAX_ITERATIONS, f"rooda resume {RUN} --max-iterations 50"),
        (ROODA, StopRule.MAX_COST, f"rooda resume {RUN} --max-cost 5"),
        (ROODA, StopRule.MAX_DURATION, f"rooda resume {RUN} --max-duration MORE"),
        (PLAN, StopRule.MAX_ITERATIONS, f"ralph plan --resume={RUN} --max-iterations 50"),
        (PLAN, StopRule.MAX_COST, f"ROODA_LOOP_MAX_COST=5 ralph plan --resume={RUN}"),
    ],
)
def test_command_that_resumes_raises_the_limit_that_ended_the_run(
    commands: RunCommands, rule: StopRule | None, expected: str
) -> None:
    found = resuming(commands, rule, VALUES.get)
    assert (found.command if found else "") == expected


@each_row(
    "commands,rule,last",
    [
        (ROODA, StopRule.DONE, ()),
        (PLAN, StopRule.DONE, ("ralph build",)),
        (PLAN, StopRule.MAX_ITERATIONS, ("ralph build",)),
        (PLAN, StopRule.INTERRUPTED, (PLAN.resume,)),
    ],
)
def test_command_that_usually_follows_comes_after_a_run_with_nothing_left_to_do(
    commands: RunCommands, rule: StopRule, last: tuple[str, ...]
) -> None:
    assert commands_at_end(commands, rule, VALUES.get) == (*LOOK, *last)


@each_row(
    "text",
    [f"rooda resume {RUN}", "rooda loop 'my prompt.md'", f"ralph build --resume={RUN}"],
)
def test_command_of_this_package_makes_sense(text: str) -> None:
    assert RunCommands(text).named(RUN).make_sense
    assert RunCommands(resume=text).make_sense


@each_row(
    "text",
    ["rm -rf /", "rooda resume; rm -rf /", "rooda $(id)", "rooda 'open", "rooda '\x1b[2J'", " "],
)
def test_command_that_something_put_into_the_record_makes_no_sense(text: str) -> None:
    assert not RunCommands(text).named(RUN).make_sense
    assert not RunCommands(resume=text).make_sense


@each_row(
    "procedure,expected",
    [
        ("build", f"rooda resume {RUN}"),
        ("ralph build", f"ralph build --resume={RUN}"),
        ("ralph build; rm -rf /", f"rooda resume {RUN}"),
        ("other build", f"rooda resume {RUN}"),
    ],
)
def test_run_in_a_record_of_version_0_1_has_the_command_that_resumes_it(
    procedure: str, expected: str
) -> None:
    assert earlier_commands(procedure, RUN).resume == expected
