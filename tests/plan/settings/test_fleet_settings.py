"""The section `fleet` of a config file: which value wins, what is wrong, and what stays secret."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rooda.base.problems import InvalidInput
from rooda.base.secrets.sensitive import masked_url
from rooda.plan.settings.fleet_settings import FLEET_SETTINGS, JOBS, MAX_COST, SETUP, TAKEOVER, URL
from rooda.plan.settings.fleet_values import read_fleet
from rooda.plan.settings.json_schema import schema
from rooda.plan.settings.setting import Setting
from rooda.views.terminal import config_view
from support.config import inspected, sample, world
from support.tables import each_row

SECRET = "postgresql://night:pa%40ss/word@db.example/fleet?sslpassword=abc"
each_setting = each_row("row", FLEET_SETTINGS, ids=lambda row: row.key)


def problems_of(folder: Path, text: str = "", **env: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read_fleet(world(folder, workspace=text, env=env), {})
    return [f"{one.place}: {one.message}. {one.suggestion}" for one in caught.value.problems]


@each_setting
def test_each_setting_is_read_from_the_file_and_its_variable(
    tmp_path: Path, row: Setting[Any]
) -> None:
    given = sample(row)
    text = f"fleet: {{{row.key}: {given.yaml}}}"
    values, _ = read_fleet(world(tmp_path, workspace=text), {})
    assert values[row] == given.value
    assert jsonschema.Draft202012Validator(schema()).is_valid(yaml.safe_load(text))
    assert row.variable == f"ROODA_FLEET_{row.key.upper()}"
    values, _ = read_fleet(world(tmp_path, env={row.variable: given.text}), {})
    assert values[row] == given.value


def test_a_flag_beats_a_variable_beats_the_files(tmp_path: Path) -> None:
    here = world(
        tmp_path,
        workspace="fleet: {jobs: 4, takeover: 2m}\nloop: {max_cost: 1}\n",
        global_="fleet: {jobs: 3, takeover: 3m, setup: npm ci}\n",
        env={"ROODA_FLEET_JOBS": "5"},
    )
    values, _ = read_fleet(here, {"jobs": ("-j", "6")})
    assert (values[JOBS], values[TAKEOVER], values[SETUP]) == (6, 120.0, "npm ci")
    assert values[MAX_COST] is None  # the one of the loop is that of a run
    assert read_fleet(here, {})[0][JOBS] == 5


@each_row(
    "text, env, words",
    [
        ("fleet:\n  job: 3\n", {}, ":2: fleet.job: unknown key 'job'. Did you mean 'jobs'?"),
        ("fleet: {jobs: 0}\n", {}, ":1: fleet.jobs: must be 1 or more"),
        ("fleet: {verify: make}\n", {}, "unknown key 'verify'. It belongs below `loop`"),
        ("fleet: 3\n", {}, ":1: fleet: must be a mapping"),
        ("fleet: {labels: [a b]}\n", {}, "fleet.labels: 'a b' is no label"),
        ("fleet: {finish: merge}\n", {}, "must be one of branch, pr"),
        ("", {"ROODA_FLEET_JOB": "3"}, "Did you mean 'ROODA_FLEET_JOBS'?"),
        ("", {"ROODA_FLEET_URL": "mysql://me:hush@db/x"}, "not 'mysql://me:...@db/x'"),
        ("", {"ROODA_FLEET_URL": "postgresql://me:hu@sh@db/x"}, "a password with an @ in it"),
        ("", {"ROODA_FLEET_URL": "postgresql://me:hush@db:none/x"}, "a host or a port that"),
        ("", {"ROODA_FLEET_URL": "postgresql://me:hu/sh@db:1:2/x"}, "a host or a port that"),
    ],
)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path, text: str, env: dict[str, str], words: str
) -> None:
    (found,) = problems_of(tmp_path, text, **env)
    assert words in found
    assert "hush" not in found


def test_config_show_and_check_know_the_section_and_hide_the_password(tmp_path: Path) -> None:
    found = inspected(tmp_path, workspace=f"fleet:\n  url: {SECRET}\n  jobs: 3\n")
    assert found.problems == ()
    assert found.fleet[URL] == SECRET
    shown = config_view.as_yaml(found) + config_view.as_json(found)
    assert "pa%40ss" not in shown
    assert "word@" not in shown
    assert "abc" not in shown
    assert "postgresql://night:...@db.example/fleet" in shown
    url = json.loads(config_view.as_json(found))["fleet"]["url"]
    assert (url["tier"], url["line"]) == ("workspace", 2)
    assert "\nfleet:\n  url: " in config_view.as_yaml(found)
    wrong = inspected(tmp_path, workspace="fleet: {jobs: many}\n")
    assert [one.field for one in wrong.problems] == ["fleet.jobs"]


@each_row(
    "url, shown",
    [
        ("postgresql://me:hush@db:5432/x", "postgresql://me:...@db:5432/x"),
        ("postgresql://me@db/x", "postgresql://me@db/x"),
        ("postgresql:///x?host=/run&password=hush", "postgresql:///x?host=/run&password=..."),
        ("https://hush:x-oauth@host/a.git", "https://hush:...@host/a.git"),
        ("sqlite:////home/me/fleet.sqlite", "sqlite:////home/me/fleet.sqlite"),
        ("git@github.com:me/repo.git", "git@github.com:me/repo.git"),
        ("https://ghp_0123456789abcdefghij0123@h/a", "https://ghp_...(masked)@h/a"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert masked_url(url) == shown
