"""The config file of a work tree can make the sandbox of the user stronger, and not weaker."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rooda.base.problems import Problem, Severity, errors
from rooda.plan.command import Agent, choose, command_of
from rooda.plan.layers import Layers
from rooda.plan.locate import read_layers
from rooda.plan.preflight.sandbox import check_paths, variables_held_inside
from rooda.plan.repository_values import explain
from rooda.plan.resolve import Values, resolve
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    BY_KEY,
    GIT_PUBLISH,
    LOG_FILE,
    NOTIFY_URLS,
    REPORT,
    SANDBOX_COMMAND,
    SANDBOX_ENV,
    SANDBOX_KIND,
    SANDBOX_NETWORK,
    SANDBOX_READABLE,
    SANDBOX_TRUST,
    SANDBOX_WRITABLE,
    SESSION_LOG,
)
from rooda.views.terminal import config_view
from support.config import inspected, world
from support.tables import each_row

KIND, NETWORK = "ROODA_LOOP_SANDBOX_KIND", "ROODA_LOOP_SANDBOX_NETWORK"
TRUST = "ROODA_LOOP_SANDBOX_TRUST"
BWRAP = {KIND: "bwrap"}


def layers(folder: Path, flags: Mapping[str, str] | None = None, **files: Any) -> Layers:
    """Read the layers; `flags` are the values of settings by their keys."""
    problems: list[Problem] = []
    given = {key: (BY_KEY[key].flag_name, text) for key, text in (flags or {}).items()}
    found = read_layers(world(folder, **files), files.pop("config", None), given, problems)
    assert not errors(problems)
    return found


def decided(folder: Path, flags: Mapping[str, str] | None = None, **files: Any) -> Values:
    return resolve(layers(folder, flags, **files), "work")


def loop(text: str) -> str:
    return f"loop: {{{text}}}\n"


def own(text: str) -> str:
    return f"procedures: {{work: {{{text}}}}}\n"


# -- the stronger one wins -------------------------------------------------------------------


@each_row(
    ("user", "of_file", "kind"),
    [
        ("bwrap", "none", "bwrap"),
        ("bwrap", "command", "bwrap"),
        ("command", "none", "command"),
        ("command", "bwrap", "command"),
        ("none", "bwrap", "bwrap"),
        ("none", "command", "none"),
        ("none", "none", "none"),
        ("", "none", "none"),
        ("", "bwrap", "bwrap"),
        ("", "command", "command"),
        ("bwrap", "", "bwrap"),
    ],
)
@each_row("place", ["flag", "variable", "global", "own in global"])
@each_row("written", [loop, own])
def test_stronger_kind_wins_wherever_both_are_set(
    user: str, of_file: str, kind: str, place: str, written: Any, tmp_path: Path
) -> None:
    text = f"sandbox: {{kind: {user}}}"
    values = decided(
        tmp_path,
        {SANDBOX_KIND.key: user} if user and place == "flag" else {},
        workspace=written(f"sandbox: {{kind: {of_file}, command: boat}}") if of_file else None,
        global_={"global": loop(text), "own in global": own(text)}.get(place) if user else None,
        env={KIND: user} if user and place == "variable" else {},
    )
    assert values[SANDBOX_KIND] == kind
    if user != of_file:
        assert (values.origin(SANDBOX_KIND).tree is None) == (kind == user)


@each_row(
    ("user", "of_file", "network"),
    [
        ("false", "true", "off"),
        ("true", "false", "off"),
        ("true", "true", "on"),
        ("", "false", "off"),
    ],
)
def test_network_is_off_if_one_of_them_says_so(
    user: str, of_file: str, network: str, tmp_path: Path
) -> None:
    values = decided(
        tmp_path,
        workspace=loop(f"sandbox: {{kind: bwrap, network: {of_file}}}"),
        env={NETWORK: user} if user else {},
    )
    assert values[SANDBOX_NETWORK] is (network == "on")


def test_flags_of_the_user_keep_their_order_among_the_settings_of_the_user(tmp_path: Path) -> None:
    values = decided(
        tmp_path,
        {SANDBOX_KIND.key: "none"},
        workspace=loop("sandbox: none"),
        global_=loop("sandbox: bwrap"),
    )
    assert values[SANDBOX_KIND] == "none"
    assert not values.refusals


def test_one_line_names_the_weaker_one_and_the_place_to_change(tmp_path: Path) -> None:
    by_user = decided(tmp_path, workspace=loop("sandbox: none"), global_=loop("sandbox: bwrap"))
    [problem] = explain(by_user.refusals)
    assert problem.severity is Severity.WARNING
    assert problem.place == "rooda-config.yml:1: loop.sandbox"
    assert problem.message == (
        "none has no effect: this file can't weaken or replace your bwrap "
        "(global: ~/.config/rooda/rooda-config.yml:1)"
    )
    assert problem.suggestion == "For none, change your own setting"
    by_file = decided(tmp_path, {SANDBOX_KIND.key: "none"}, workspace=loop("sandbox: bwrap"))
    [problem] = explain(by_file.refusals)
    assert problem.place == "--sandbox"
    assert problem.message == (
        "none has no effect: bwrap is stronger (workspace: ./rooda-config.yml:1)"
    )
    assert problem.suggestion == "For none, edit that file"


def test_config_show_says_which_won_and_why(tmp_path: Path) -> None:
    found = inspected(tmp_path, workspace=own("sandbox: none"), env=BWRAP, procedure="work")
    shown = config_view.as_yaml(found)
    assert f"# env: {KIND}; stronger than none of workspace: ./rooda-config.yml:1" in shown
    found = inspected(
        tmp_path,
        workspace="loop: {sandbox: {kind: none, readable: [.]}}\n",
        global_=loop("sandbox: bwrap"),
    )
    shown = config_view.as_yaml(found)
    place = "workspace: ./rooda-config.yml:1"
    assert f"rooda-config.yml:1; stronger than none of {place}" in shown
    assert f"# built-in; left out without sandbox.trust: {place}" in shown
    assert '"note": "stronger than none of' in config_view.as_json(found)
    assert [problem.severity for problem in found.problems] == [Severity.WARNING] * 2


def test_config_check_names_what_a_procedure_of_the_file_may_not_decide(tmp_path: Path) -> None:
    found = inspected(tmp_path, workspace=own("sandbox: none"), global_=loop("sandbox: bwrap"))
    [problem] = [one for one in found.problems if "weaken" in one.message]
    assert problem.field == "procedures.work.sandbox"


# -- what needs trust ------------------------------------------------------------------------

OPENING: dict[Setting[Any], str] = {
    SANDBOX_READABLE: "sandbox: {readable: [/srv]}",
    SANDBOX_WRITABLE: "sandbox: {writable: [/srv]}",
    SANDBOX_ENV: "sandbox: {env: [TOKEN]}",
    GIT_PUBLISH: "git: {publish: ./evil.sh}",
    NOTIFY_URLS: "notify: {urls: ['json://localhost']}",
    LOG_FILE: "log_file: ../night.log",
    SESSION_LOG: "session_log: .git/hooks/post-commit",
    REPORT: "report: link/report.html",
}


@each_row("row", OPENING, ids=lambda row: row.key)
@each_row("written", [loop, own])
def test_file_opens_nothing_without_trust_of_the_user(
    row: Setting[Any], written: Any, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/link").symlink_to(tmp_path)
    text = (written if row.per_procedure else loop)(OPENING[row])
    closed = decided(tmp_path, workspace=text, env=BWRAP)
    assert closed[row] == row.default
    [problem] = explain(closed.refusals)
    assert problem.message.endswith(f"can write this file: {row.key}")
    assert "sandbox.trust: true" in problem.suggestion
    trusted = (
        decided(tmp_path, workspace=text, env={**BWRAP, TRUST: "true"}),
        decided(tmp_path, {SANDBOX_TRUST.key: "true"}, workspace=text, env=BWRAP),
        decided(tmp_path, workspace=text, env=BWRAP, global_=loop("sandbox: {trust: true}")),
        decided(tmp_path, workspace=text),  # without a sandbox, there is nothing to open
    )
    for values in trusted:
        assert values[row] != row.default
        assert not values.refusals


def test_one_line_names_all_that_is_left_out(tmp_path: Path) -> None:
    text = "\n".join(f"  {line}" for line in OPENING.values() if "sandbox" not in line)
    values = decided(tmp_path, workspace=f"loop:\n  sandbox: bwrap\n{text}\n")
    [problem] = explain(values.refusals)
    names = "git.publish, notify.urls, log_file, session_log"
    assert problem.message.endswith(names)


def test_values_of_the_user_stay_when_those_of_the_file_are_left_out(tmp_path: Path) -> None:
    values = decided(
        tmp_path,
        workspace=loop("sandbox: {kind: bwrap, readable: [/srv/theirs], env: []}"),
        global_=loop("sandbox: {readable: [/srv/mine], env: [MINE]}"),
    )
    assert values[SANDBOX_READABLE] == ("/srv/mine",)
    assert values[SANDBOX_ENV] == ()  # to pass less is stronger


def test_file_writes_below_its_own_tree_without_trust(tmp_path: Path) -> None:
    text = loop("sandbox: bwrap, log_file: logs/night.log, report: report.html")
    values = decided(tmp_path, workspace=text)
    assert values[LOG_FILE] == str(tmp_path / "work/logs/night.log")
    assert not values.refusals


def test_file_does_not_trust_itself(tmp_path: Path) -> None:
    text = loop("sandbox: {kind: bwrap, trust: true, readable: [/srv]}")
    values = decided(tmp_path, workspace=text)
    assert values[SANDBOX_TRUST] is False
    assert values[SANDBOX_READABLE] == ()
    itself, left_out = explain(values.refusals)
    assert itself.message == "has no effect in this file: others than you can write it"
    assert left_out.message.endswith("sandbox.readable")


def test_command_of_the_file_never_starts_for_a_kind_of_the_user(tmp_path: Path) -> None:
    text = loop("sandbox: {kind: command, command: ./boat}, env: {LD_PRELOAD: ./evil.so}")
    chosen = decided(tmp_path, workspace=text, env={KIND: "command"})
    assert chosen[SANDBOX_COMMAND] is None
    assert [one.setting.key for one in chosen.refusals] == ["sandbox.command", "env"]
    assert decided(tmp_path, workspace=text)[SANDBOX_COMMAND] == "./boat"


def test_file_that_the_user_keeps_elsewhere_and_names_is_the_users_own(tmp_path: Path) -> None:
    text = loop("sandbox: {kind: none, readable: [/srv]}")
    (tmp_path / "mine.yml").write_text(text)
    found = world(tmp_path, env={})
    problems: list[Problem] = []
    values = resolve(read_layers(found, "../mine.yml", {}, problems))
    assert values.origin(SANDBOX_KIND).tree is None
    inside = world(tmp_path, workspace=text, env=BWRAP)
    values = resolve(read_layers(inside, "./rooda-config.yml", {}, problems))
    assert values[SANDBOX_KIND] == "bwrap"


# -- variables, paths and words --------------------------------------------------------------


def test_variables_of_the_file_reach_only_programs_in_the_sandbox(tmp_path: Path) -> None:
    text = loop("sandbox: bwrap, env: {LD_PRELOAD: ./evil.so, EDITOR: vi}")
    mine = {"ROODA_LOOP_ENV": "EDITOR=ed"}
    assert variables_held_inside(decided(tmp_path, workspace=text, env=mine)) == {"LD_PRELOAD"}
    trusted = {**mine, TRUST: "true"}
    assert not variables_held_inside(decided(tmp_path, workspace=text, env=trusted))


@each_row(
    ("text", "answer"),
    [
        (loop("working_dir: .."), "refused"),
        (loop("working_dir: link"), "refused"),
        (loop("working_dir: sub"), "fine"),
        (loop("tasks: /srv/TASKS.md"), "refused"),
        (loop("tasks: TASKS.md"), "fine"),
        (own("act: [{path: ../secret}]"), "refused"),
        (own("act: [{path: link/secret}]"), "refused"),
        (own("act: [{path: prompt.md}]"), "fine"),
        (loop("ai_cmd: '../secret --fast'"), "refused"),
        (loop("ai_cmd: 'cat $PATH/secret'"), "refused"),
        (loop("ai_cmd: 'env X=1 ../secret'"), "refused"),
        (loop("ai_cmd: 'cat ./mine ./missing /tmp'"), "fine"),
        (loop("ai_cmd_alias: a") + "ai_cmd_aliases: {a: '../secret'}\n", "refused"),
        (loop("ai_cmd: 'sh -c true'"), "fine"),
    ],
)
def test_file_names_nothing_outside_of_its_tree_without_trust(
    text: str, answer: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "link").symlink_to(tmp_path)
    for place in (work / "mine", tmp_path / "secret"):
        place.write_text("words")
    text = text.replace("$PATH", str(tmp_path))
    assert bool(_refused_paths(tmp_path, text, BWRAP)) is (answer == "refused")
    assert not _refused_paths(tmp_path, text, {**BWRAP, TRUST: "true"})
    assert not _refused_paths(tmp_path, text, {})


def _refused_paths(folder: Path, text: str, env: Mapping[str, str]) -> list[Problem]:
    found = layers(folder, workspace=text, env=env)
    values = resolve(found, "work")
    command = command_of(found, choose(found, "work"))
    agents = [] if command is None else [Agent.of(command, tuple(command.text.split()))]
    return list(check_paths(values, agents, found.phases("work").values(), folder / "work"))
