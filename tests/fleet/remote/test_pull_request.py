"""`finish: pr`: one pull request for each run, and a reason in words where there is none."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rooda.base.secrets.masking import Masker
from rooda.fleet.remote.pull_request import (
    Description,
    NotFinished,
    PullRequest,
    describe_run,
    open_pull_request,
)
from rooda.fleet.run_model import FleetTask
from rooda.fleet.tasks.task_checks import run_name
from rooda.world.tools import Tools
from support.fleetwork import changes_since, fingerprint, user_repository
from support.gitrepo import Repo

GH = """\
#!PYTHON -IS
import json, os, pathlib, sys
home = pathlib.Path(os.environ["HOME"])
words = sys.argv[1:]
body = pathlib.Path(words[words.index("--body-file") + 1]).read_text() if "create" in words else ""
with open(home / "gh.log", "a") as log:
    log.write(json.dumps({"words": words, "body": body, "cwd": os.listdir(".")}) + "\\n")
state = home / "pulls.json"
pulls = json.loads(state.read_text()) if state.exists() else []
if words[1] == "list":
    print(json.dumps(pulls))
    sys.exit()
if (home / "refuses").exists():
    sys.exit("gh: HTTP 403 for https://me:pass-word@github.com/o/r")
head = words[words.index("--head") + 1]
url = f"https://github.com/o/r/pull/{7 + len(pulls)}"
pulls.append({"number": 7 + len(pulls), "url": url, "state": "OPEN", "headRefOid": "x"})
state.write_text(json.dumps(pulls))
if (home / "dies").exists():
    sys.exit("gh: connection reset")
print(url)
"""
TEXT = Description("Add an API", "the text\n")


@pytest.fixture
def user(tmp_path: Path) -> Repo:
    """A user whose origin is on GitHub, which is a folder here, and who has a stand-in for gh."""
    repo = user_repository(tmp_path / "user")
    repo.git("init", "-q", "--bare", str(tmp_path / "hosting.git"))
    repo.git("config", f"url.{tmp_path}/hosting.git.insteadOf", "https://github.com/o/r.git")
    repo.git("remote", "add", "origin", "https://github.com/o/r.git")
    gh = tmp_path / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(GH.replace("PYTHON", sys.executable))
    gh.chmod(0o755)
    repo.environ["PATH"] = f"{gh.parent}{os.pathsep}{repo.environ['PATH']}"
    return repo


def finish(user: Repo, run: str = "api", url: str = "") -> PullRequest:
    tools = Tools(user.environ, [user.path])
    tip = user.git("rev-parse", "main")
    place = url or str(user.path)
    git_dir = user.path / ".git"
    return open_pull_request(run, tip, "main", TEXT, url=place, git_dir=git_dir, tools=tools)


def calls(user: Repo) -> list[dict[str, Any]]:
    log = Path(user.environ["HOME"], "gh.log")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def note(user: Repo, name: str) -> Path:
    path = Path(user.environ["HOME"], name)
    path.write_text("")
    return path


@pytest.mark.real
def test_a_run_gets_one_pull_request_however_often_it_is_finished(
    user: Repo, tmp_path: Path
) -> None:
    before = fingerprint(user)
    expected = PullRequest(7, "https://github.com/o/r/pull/7")
    assert finish(user) == expected
    assert finish(user) == expected
    create = [call for call in calls(user) if "create" in call["words"]]
    assert len(create) == 1
    *words, body_file = create[0]["words"]
    assert words == [
        *("pr", "create", "--repo", "github.com/o/r", "--head", "rooda/api", "--base", "main"),
        *("--title", "Add an API", "--body-file"),
    ]
    assert create[0]["body"] == "the text\n"
    assert create[0]["cwd"] == []
    assert not Path(body_file).exists()
    hosting = Repo(tmp_path / "hosting.git", user.environ)
    assert hosting.git("rev-parse", "rooda/api") == user.git("rev-parse", "main")
    assert changes_since(before, user) == []


@pytest.mark.real
def test_a_pull_request_that_gh_made_before_it_failed_is_found(user: Repo) -> None:
    note(user, "dies")
    assert finish(user).number == 7


@pytest.mark.real
def test_a_fleet_whose_remote_is_on_a_server_needs_no_second_push(
    user: Repo, tmp_path: Path
) -> None:
    assert finish(user, url="git@github.com:o/r.git").number == 7
    assert "github.com/o/r" in calls(user)[0]["words"]
    assert not list((tmp_path / "hosting.git/refs/heads").iterdir())


@pytest.mark.real
def test_a_failure_is_a_reason_in_words_without_credentials(user: Repo, tmp_path: Path) -> None:
    refusing = note(user, "refuses")
    with pytest.raises(NotFinished, match="HTTP 403") as caught:
        finish(user)
    assert "pass-word" not in str(caught.value)
    refusing.unlink()
    (tmp_path / "hosting.git").rename(tmp_path / "away.git")
    with pytest.raises(NotFinished, match="was not pushed"):
        finish(user)
    (tmp_path / "bin/gh").unlink()
    with pytest.raises(NotFinished, match="gh auth login"):
        finish(user)
    user.git("config", "remote.origin.url", "/some/folder")
    with pytest.raises(NotFinished, match="by hand"):
        finish(user)
    user.git("remote", "remove", "origin")
    with pytest.raises(NotFinished, match="git remote add"):
        finish(user)


def test_the_words_of_an_agent_are_nothing_but_text() -> None:
    task = FleetTask("api", "Add\x1b[31m an API", "Please add it.")
    said = "done ```\n@everyone closes #1 API_KEY=abcdef\x1b]0;x\x07"
    found = describe_run(task, "api", iterations=1, cost=1.5, words=said)
    assert found.title == "Add an API"
    assert "1 iteration, $1.50." in found.body
    assert "## Task\n\nPlease add it.\n" in found.body
    block = found.body.partition("## What the agent said\n\n")[2]
    assert block == "````text\ndone ```\n@everyone closes #1 API_KEY=...\n````\n"
    plain = describe_run(FleetTask("api"), "api", iterations=2)
    assert (plain.title, plain.body) == ("api", "Made by rooda in run `api`: 2 iterations.\n")


def test_a_pull_request_shows_no_secret_of_the_worker() -> None:
    value, token = "p4ssword of the worker", f"ghp_{'a1' * 18}"
    task = FleetTask("auth", f"With {value}", f"Use {token}")
    masker = Masker({"DB_PASSWORD": value})
    found = describe_run(task, "auth", iterations=1, words=f"I used {value}", masker=masker)
    assert value not in found.title + found.body
    assert token not in found.body
    assert found.title == "With (masked)"


def test_the_name_of_a_branch_shows_no_token() -> None:
    assert run_name(f"use ghp_{'A1' * 18} for it") == "use-ghp_.-masked-for-it"
