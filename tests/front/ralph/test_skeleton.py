"""The files that `ralph init` writes: usable as they are, and never over a file of the user."""

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rooda.base.templates import SHELL, fill
from rooda.front.ralph.config_file import KEYS, read_config
from rooda.front.ralph.skeleton import files, write
from rooda.front.ralph.test_command import find_test_command
from rooda.plan.prompts.compose import promise_tag
from rooda.world.agents.registry import COMMANDS
from rooda.world.tasks.task_file import first_heading, tasks_in

ALL = (
    ".ralph/config",
    ".ralph/prompts/plan.md",
    ".ralph/prompts/build.md",
    ".ralph/.gitignore",
    "specs/README.md",
    "AGENTS.md",
)
PROMPTS = (".ralph/prompts/plan.md", ".ralph/prompts/build.md")
NAMES = {"SPECS_DIR": "specs", "PLAN_PATH": "PLAN.md", "MODE": "build", "ITERATION": "7"}
LIMITED = """\
import resource, sys
from pathlib import Path
from rooda.front.ralph.skeleton import write
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    write(Path(sys.argv[1]))
except OSError as error:
    print(error.filename, end="")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def text_of(path: str) -> str:
    return files()[path].decode()


def contents_of(root: Path) -> dict[str, str]:
    """Return each file below a folder with its text."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_empty_project_gets_all_files(tmp_path: Path) -> None:
    created, kept = write(tmp_path)
    assert created == ALL
    assert kept == ()
    assert contents_of(tmp_path) == {path: data.decode() for path, data in files().items()}


def test_second_init_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "AGENTS.md").write_text("mine")
    assert write(tmp_path) == ((), ALL)
    assert (tmp_path / "AGENTS.md").read_text() == "mine"


def test_files_of_the_user_stay_and_missing_files_are_added(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph/config").write_text("AGENT_CLI=mine\n")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/README.md").write_bytes(b"")
    created, kept = write(tmp_path)
    assert kept == (".ralph/config", "specs/README.md")
    assert set(created) | set(kept) == set(ALL)
    assert (tmp_path / ".ralph/config").read_text() == "AGENT_CLI=mine\n"
    assert (tmp_path / "specs/README.md").read_bytes() == b""


def test_project_itself_may_be_the_home(tmp_path: Path) -> None:
    created, _ = write(tmp_path, "")
    assert set(created) == {path.removeprefix(".ralph/") for path in ALL}


def test_link_in_place_of_a_file_is_kept_and_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    (root / ".ralph").mkdir(parents=True)
    (root / "AGENTS.md").symlink_to(outside)
    (root / ".ralph/config").symlink_to(root / "AGENTS.md")
    assert write(root).kept == (".ralph/config", "AGENTS.md")
    assert not outside.exists()


@pytest.mark.parametrize("is_link", [True, False])
def test_specs_that_are_a_link_or_a_file_are_kept(tmp_path: Path, is_link: bool) -> None:  # noqa: FBT001  (an example)
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    if is_link:
        (root / "specs").symlink_to(outside)
    else:
        (root / "specs").write_text("mine")
    created, kept = write(root)
    assert kept == ("specs",)
    assert set(created) == set(ALL) - {"specs/README.md"}
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", [".ralph", ".ralph/prompts"])
def test_home_behind_a_link_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    (root / name).parent.mkdir(parents=True)
    outside.mkdir()
    (root / name).symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link; move it away") as caught:
        write(root)
    assert caught.value.errno == errno.ELOOP
    assert caught.value.filename == str(root / name)
    assert list(outside.iterdir()) == []


def test_file_in_place_of_the_home_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / ".ralph").write_text("mine")
    with pytest.raises(OSError, match="not a folder; move it away") as caught:
        write(tmp_path)
    assert caught.value.filename == str(tmp_path / ".ralph")
    assert (tmp_path / ".ralph").read_text() == "mine"


def test_missing_project_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "missing")


def test_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    name = "x" * 300
    with pytest.raises(OSError, match="too long") as caught:
        write(tmp_path, name)
    assert caught.value.filename == str(tmp_path / name)


@pytest.mark.real
def test_full_disk_leaves_no_partial_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == str(tmp_path / ".ralph/config")
    assert contents_of(tmp_path) == {}


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "specs").write_text("in the way")
    before = len(list(Path("/dev/fd").iterdir()))
    write(tmp_path)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_config_sets_nothing_and_its_examples_are_valid() -> None:
    config = text_of(".ralph/config")
    empty, findings = read_config(config.encode(), "config")
    assert findings == []
    assert empty.lines == {}
    uncommented = re.sub(r"(?m)^#(?=[A-Z_]+=)", "", config)
    filled, findings = read_config(uncommented.encode(), "config")
    assert findings == []
    assert set(filled.lines) == set(KEYS)
    assert f"{filled.agent_cli} {filled.agent_args}" == COMMANDS["claude"]
    assert ", ".join(COMMANDS) in config
    assert (filled.default_max_iterations, filled.max_retries, filled.specs_dir) == (10, 3, "specs")


@pytest.mark.parametrize("path", PROMPTS)
def test_prompts_use_exactly_the_known_names(path: str) -> None:
    prompt = text_of(path)
    assert set(re.findall(r"\$\{(\w+)\}", prompt)) == set(NAMES)
    assert "${" not in fill(prompt, NAMES, SHELL)
    assert first_heading(prompt)


@pytest.mark.parametrize("path", PROMPTS)
def test_prompt_that_an_agent_echoes_does_not_count_as_complete(path: str) -> None:
    tag = promise_tag("COMPLETE")
    lines = [line for line in text_of(path).splitlines() if tag in line]
    assert lines  # the prompt says how to end
    assert all(line.strip() != tag for line in lines)


@pytest.mark.parametrize("path", PROMPTS)
def test_prompt_keeps_context_and_plan_small(path: str) -> None:
    prompt = " ".join(text_of(path).split())
    assert "Keep your context small" in prompt
    assert "If you can start subagents" in prompt
    assert "keep it short" in prompt or "keep them short" in prompt
    assert "`blocked`" in prompt or "`Status: blocked`" in prompt
    assert "FAILURE" not in prompt


def test_example_in_the_plan_prompt_is_read_as_a_task() -> None:
    prompt = fill(text_of(".ralph/prompts/plan.md"), NAMES, SHELL)
    assert tasks_in(prompt) == ()
    example = re.search(r"```markdown\n(.*?)```", prompt, re.DOTALL)
    assert example is not None
    (task,) = tasks_in(re.sub(r"(?m)^ {3}", "", example[1]))
    assert task.spec == "specs/the-spec.md"


def test_agents_md_names_no_test_command_until_the_user_fills_it_in() -> None:
    notes = text_of("AGENTS.md")
    assert find_test_command(notes) is None
    lint = notes.replace("- Lint:", "- Lint: `make lint`").replace("- Build:", "- Build: `make`")
    assert find_test_command(lint) is None
    for filled in ("- Test: `make test`", "- Test: make test"):
        assert find_test_command(lint.replace("- Test:", filled)) == "make test"


def test_only_logs_are_ignored() -> None:
    lines = text_of(".ralph/.gitignore").splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["/logs/"]
