"""Hooks in the configuration: each form, and each mistake with its line."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.base.problems import Severity, errors
from rooda.plan.settings.feature_kinds import Hook
from rooda.plan.settings.json_schema import schema
from rooda.plan.settings.settings import (
    HOOKS_LOOP_END,
    HOOKS_ON_WAIT,
    HOOKS_POST_ITERATION,
    HOOKS_PRE_ITERATION,
)
from rooda.views.terminal import config_view
from support.config import dumped, inspected, planned, read
from support.properties import examples
from support.tables import each_row

POINTS = ["loop_start", "pre_iteration", "post_iteration", "on_failure", "on_wait", "loop_end"]

SEVERAL = """\
loop:
  hooks:
    pre_iteration:
      - make format
      - command: make lint
        timeout: 5m
        on_error: fail
    loop_end: {command: "notify 'all done'", on_error: abort}
"""


def test_hooks_are_read_in_order_with_their_options(tmp_path: Path) -> None:
    values = planned(tmp_path, "build", workspace=SEVERAL).values
    assert values[HOOKS_PRE_ITERATION] == (
        Hook("make format"),
        Hook("make lint", timeout=300.0, on_error="fail"),
    )
    assert values[HOOKS_LOOP_END] == (Hook("notify 'all done'", on_error="abort"),)
    assert values[HOOKS_POST_ITERATION] == ()
    assert values.origin(HOOKS_PRE_ITERATION).line == 3


def test_hook_has_a_timeout_of_30_seconds_and_on_error_ignore_by_default() -> None:
    assert Hook("true") == Hook("true", timeout=30.0, on_error="ignore")


@each_row("point", POINTS)
@each_row("form", ["sync", "[sync]", "{command: sync}", "[{command: sync}]"])
def test_each_event_accepts_each_form(point: str, form: str) -> None:
    layer, problems = read(f"loop: {{hooks: {{{point}: {form}}}}}")
    assert problems == []
    assert layer.loop[f"hooks.{point}"].value == (Hook("sync"),)


def test_events_merge_one_by_one_and_the_list_of_an_event_is_replaced(tmp_path: Path) -> None:
    values = planned(
        tmp_path,
        "build",
        global_="loop: {hooks: {pre_iteration: [a, b], loop_end: c, on_wait: d}}",
        workspace="loop: {hooks: {pre_iteration: e}}\n"
        "procedures: {build: {hooks: {loop_end: [f, g]}}}",
    ).values
    assert values[HOOKS_PRE_ITERATION] == (Hook("e"),)
    assert values[HOOKS_LOOP_END] == (Hook("f"), Hook("g"))
    assert values[HOOKS_ON_WAIT] == (Hook("d"),)


@pytest.mark.parametrize("where", ["loop: {%s}", "procedures: {build: {%s}}"])
def test_null_removes_all_hooks_of_weaker_layers(where: str, tmp_path: Path) -> None:
    values = planned(
        tmp_path,
        "build",
        global_="loop: {hooks: {pre_iteration: [a, b], loop_end: c}}",
        workspace=where % "hooks: null",
    ).values
    for row in (HOOKS_PRE_ITERATION, HOOKS_LOOP_END):
        assert values[row] == ()
        assert values.origin(row).exact == "workspace: ./rooda-config.yml:1"


def test_flag_and_variable_give_one_unsplit_command(tmp_path: Path) -> None:
    values = planned(
        tmp_path,
        "build",
        "--hooks-loop-end=echo 'a b'; sync",
        workspace="loop: {hooks: {loop_end: [a, b]}}",
        env={"ROODA_LOOP_HOOKS_ON_WAIT": "say 'please wait' && true"},
    ).values
    assert values[HOOKS_LOOP_END] == (Hook("echo 'a b'; sync"),)
    assert values[HOOKS_ON_WAIT] == (Hook("say 'please wait' && true"),)


# -- mistakes ------------------------------------------------------------------------------

MISTAKES = """\
loop:
  hooks:
    pre_iteration:
      - command: make lint
        timeot: 5
        on_error: explode
      - timeout: soon
        command: [make, test]
      - 7
      - on_error: fail
    post_iteraton: sync
    loop_end: {}
    on_wait: fine
"""


def test_all_mistakes_are_reported_at_once_each_with_its_line_and_field() -> None:
    layer, problems = read(MISTAKES)
    pre = "loop.hooks.pre_iteration"
    assert [(p.line, p.field, p.severity.value) for p in problems] == [
        (5, f"{pre}.timeot", "error"),
        (6, f"{pre}.on_error", "error"),
        (7, f"{pre}.timeout", "error"),
        (8, f"{pre}.command", "error"),
        (9, pre, "error"),
        (10, pre, "error"),
        (11, "loop.hooks.post_iteraton", "error"),
        (12, "loop.hooks.loop_end", "error"),
    ]
    assert all(problem.message and problem.suggestion for problem in problems)
    assert list(layer.loop) == ["hooks.on_wait"], "a list with a mistake is ignored as a whole"


@each_row(
    "hook,field,guess",
    [
        ("{comand: a, command: b}", "comand", "'command'"),
        ("[{command: b, time_out: 5}]", "time_out", "'timeout'"),
        ("{command: b, on-error: fail}", "on-error", "'on_error'"),
        ("{command: b, flavor: red}", "flavor", "config schema"),
    ],
)
def test_unknown_key_of_a_hook_is_an_error_with_a_suggestion(
    hook: str, field: str, guess: str
) -> None:
    layer, [problem] = read(f"loop:\n  hooks:\n    on_failure: {hook}\n")
    assert problem.severity is Severity.ERROR
    assert (problem.line, problem.field) == (3, f"loop.hooks.on_failure.{field}")
    assert guess in problem.suggestion
    assert layer.loop["hooks.on_failure"].value == (Hook("b"),)


def test_mistake_in_the_hooks_of_a_procedure_has_its_place() -> None:
    _, problems = read("procedures:\n  build:\n    hooks:\n      on_wait: {timeout: 0}\n")
    assert [(p.line, p.field) for p in errors(problems)] == [
        (4, "procedures.build.hooks.on_wait.timeout")
    ]


def test_hooks_section_must_be_a_mapping() -> None:
    layer, [problem] = read("loop: {hooks: make lint}")
    assert "must be a mapping of keys to values, not 'make lint'" in problem.message
    assert layer.loop == {}


# -- config show ---------------------------------------------------------------------------


def test_config_show_prints_hooks_as_valid_yaml(tmp_path: Path) -> None:
    found = inspected(tmp_path, workspace=SEVERAL)
    lines = "\n".join(line.partition("  # ")[0] for line in config_view.as_yaml(found).splitlines())
    layer, problems = read(lines)
    assert problems == []
    for row in (HOOKS_PRE_ITERATION, HOOKS_LOOP_END, HOOKS_ON_WAIT):
        assert layer.loop[row.key].value == found.values[row]
    shown = json.loads(config_view.as_json(found))["loop"][HOOKS_PRE_ITERATION.key]
    assert shown["value"] == [
        "make format",
        {"command": "make lint", "timeout": 300.0, "on_error": "fail"},
    ]


# -- the schema ----------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", " ", "5m", "make"])
HOOK = st.dictionaries(
    st.sampled_from(["command", "timeout", "on_error", "comand"]),
    SCALARS | st.sampled_from(["ignore", "fail", "abort", "make test", 30]),
    max_size=3,
)
ONE = SCALARS | HOOK | st.lists(SCALARS, max_size=1)
VALIDATOR: Any = jsonschema.Draft202012Validator(schema())


@examples(60)
@given(st.sampled_from(POINTS), ONE | st.lists(ONE, max_size=3))
def test_schema_accepts_a_hook_exactly_if_the_reader_does(point: str, raw: object) -> None:
    whole = {"loop": {"hooks": {point: raw}}}
    assert VALIDATOR.is_valid(whole) == (read(dumped(whole))[1] == [])
