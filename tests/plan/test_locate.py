"""Which config file of the work tree is read, and from where its paths are meant."""

import os
from pathlib import Path

import pytest

from rooda.base.problems import Problem, Severity
from rooda.front.completion import procedure_names
from rooda.plan.locate import CONFIG_NAME, read_layers
from rooda.plan.settings.settings import LOG_FILE
from rooda.plan.world import World
from support.states import record_at


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The top of a work tree with a config file, and a config file above it."""
    configured(tmp_path)
    top = configured(tmp_path / "top")
    (top / ".git").mkdir()
    (top / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (top / "deep/start").mkdir(parents=True)
    return top


def configured(folder: Path) -> Path:
    """Give a folder a config file with a relative path."""
    folder.mkdir(exist_ok=True)
    (folder / CONFIG_NAME).write_text("loop: {log_file: run.log}\n")
    return folder


def found(folder: Path, record: Path | None = None) -> tuple[str, str | None]:
    """Return the name of the config file for a user in a folder, and the log file that it sets."""
    problems: list[Problem] = []
    layer = read_layers(
        World(folder, {}, None if record is None else record_at(record)), None, {}, problems
    ).workspace
    assert problems == []
    log = layer.loop.get(LOG_FILE.key)
    return layer.file, None if log is None else log.value


def test_nearest_file_up_to_the_top_is_read_and_its_paths_are_relative_to_it(top: Path) -> None:
    assert found(top) == (CONFIG_NAME, str(top / "run.log"))
    assert found(top / "deep/start") == (f"../../{CONFIG_NAME}", str(top / "run.log"))
    configured(top / "deep")
    assert found(top / "deep/start") == (f"../{CONFIG_NAME}", str(top / "deep/run.log"))
    configured(top / "deep/start")
    assert found(top / "deep/start") == (CONFIG_NAME, str(top / "deep/start/run.log"))


def test_file_above_the_top_is_not_read(top: Path) -> None:
    (top / CONFIG_NAME).unlink()
    assert found(top / "deep") == ("", None)


def test_only_the_file_of_the_folder_is_read_without_a_repository(tmp_path: Path) -> None:
    configured(tmp_path)
    (tmp_path / "below").mkdir()
    assert found(tmp_path / "below") == ("", None)


def test_run_that_goes_on_reads_the_file_of_its_record(top: Path) -> None:
    start = top / "deep/start"
    (start / ".git").mkdir()
    (start / ".git/HEAD").write_text("ref: refs/heads/main\n")
    assert found(start, top) == (f"../../{CONFIG_NAME}", str(top / "run.log"))


def test_file_of_the_work_tree_around_a_repository_is_not_read_and_named(top: Path) -> None:
    start = top / "deep/start"
    (start / ".git").mkdir()
    (start / ".git/HEAD").write_text("ref: refs/heads/main\n")
    problems: list[Problem] = []
    assert read_layers(World(start, {}), None, {}, problems).workspace.file == ""
    assert [(one.file, one.severity) for one in problems] == [
        (f"../../{CONFIG_NAME}", Severity.WARNING)
    ]
    assert problems[0].message.startswith(f"this config file is not read: {start} is a repository")
    configured(start)
    assert found(start) == (CONFIG_NAME, str(start / "run.log"))


def test_broken_link_that_is_nearer_is_a_problem(top: Path) -> None:
    (top / "deep" / CONFIG_NAME).symlink_to("nowhere")
    problems: list[Problem] = []
    read_layers(World(top / "deep/start", {}), None, {}, problems)
    assert [(one.file, one.message) for one in problems] == [
        (f"../{CONFIG_NAME}", "is a link to nothing")
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_file_of_another_user_in_a_folder_of_all_users_is_not_read(top: Path) -> None:
    configured(top / "deep").chmod(0o1777)
    os.chown(top / "deep" / CONFIG_NAME, 4711, 4711)
    assert found(top / "deep/start") == (f"../../{CONFIG_NAME}", str(top / "run.log"))


def test_completion_knows_the_procedures_of_a_file_above(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top / CONFIG_NAME).write_text("procedures:\n  mine: {}\n")
    monkeypatch.chdir(top / "deep/start")
    assert "mine" in procedure_names()
