"""The docs are true: generated parts are fresh, commands run, config examples are valid."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import pytest
from _pytest.mark import ParameterSet
from msgspec import Struct

from rooda.base.event import EVENTS, Event, LogLevel
from rooda.loop.stops import StopRule
from support.happenings import SAMPLES, written
from support.states import state_of
from support.tables import each_row
from support.workspace import ROODA, Workspace
from tools import docs, examples, picture

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
USER_PAGES = [ROOT / "README.md", *ROOT.glob("docs/guide/*.md"), *ROOT.glob("docs/reference/*.md")]
OF_A_FLEET = ("fleet", "worker")
FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(page.read_text()) if kind == language]


def shell_commands(page: Path) -> list[list[str]]:
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    commands = [words for line in lines if (words := shlex.split(line, comments=True))]
    return [_without_shell(words) for words in commands]


def _without_shell(words: list[str]) -> list[str]:
    """`nohup COMMAND > file 2>&1 &` is about the command."""
    words = words[1:] if words[0] == "nohup" else words
    return words[: words.index(">")] if ">" in words else words


def commands_of(program: str, *, of_a_fleet: bool = False) -> list[ParameterSet]:
    """All that the pages say about it, each under its page and its words."""
    return [
        pytest.param(words, id=f"{page.name}: {shlex.join(words)}")
        for page in PAGES
        for words in shell_commands(page)
        if words[0] == program and (words[1] in OF_A_FLEET) is of_a_fleet
    ]


YAML_EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "yaml"))
]


@each_row("name", docs.GENERATED)
def test_generated_tables_are_fresh(name: str) -> None:
    assert (docs.DOCS / name).read_text() == docs.updated(name), "run `make docs`"


LOGGED = [event for event in SAMPLES if event.is_logged]


@each_row("event", LOGGED, ids=lambda event: type(event).__name__)
def test_the_documented_fields_of_an_event_are_those_of_a_log(event: Event) -> None:
    line = written("json", ("10:00:45", event), threshold=LogLevel.DEBUG, time="none")
    read = json.loads(line)
    for name in ("schema_version", "elapsed", "level", "event"):
        del read[name]
    assert fits(read, type(event)), read


def fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value is what the docs say about this type."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits(value, one) for one in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(fits(one, get_args(hint)[0]) for one in value)
    if isinstance(hint, type) and issubclass(hint, Struct):
        known = docs.json_fields(hint)
        is_whole = isinstance(value, dict) and list(value) == list(known)
        return is_whole and all(fits(value[name], one) for name, one in known.items())
    plain = {int: (int,), float: (int, float), bool: (bool,), type(None): (type(None),)}
    return type(value) in plain.get(hint, (str,))


@each_row("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_the_documented_levels_of_an_event_are_those_that_it_has(kind: type[Event]) -> None:
    found = {event.log_level for event in SAMPLES if type(event) is kind}
    assert found == ({kind.level} if kind.raised is None else {kind.level, kind.raised[0]})


SUCCESS = "cat > /dev/null; echo '<promise>SUCCESS</promise>'"
OF_THE_RECORD = ("history", "show", "why", "diff", "restore", "report")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which a run of two iterations has ended."""
    home = tmp_path_factory.mktemp("recorded")
    workspace = Workspace(home / "work", home / "home")
    workspace.path.mkdir()
    workspace.home.mkdir()
    workspace.write("Makefile", "test:\n\ttrue\n")
    make_repository(workspace)
    agent = workspace.agents("date > made-1", f"date > made-2; {SUCCESS}")
    assert workspace.rooda("build", "--ai-cmd", agent).code == 0
    return workspace.path


BRINGS_TASKS = ("run", "add")
# What a command needs before it, in a fleet whose tasks wait.
FIRST = {
    "retry": ["fleet", "stop", "--all"],
    "forget": ["fleet", "stop", "--all"],
    "merge": ["worker", "--drain"],
    "follow": ["worker", "--drain"],
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("words", commands_of("rooda", of_a_fleet=True))
def test_documented_commands_of_a_fleet_run(workspace: Workspace, words: list[str]) -> None:
    """In a project with the tasks `auth` and `api`, which wait for a worker."""
    if words[-1] == "demo":
        pytest.skip("the demo has a test of its own")
    workspace.agent(f"date > $ROODA_RUN; {SUCCESS}", name="bin/claude")
    workspace.write(".gitignore", "bin/\n")
    workspace.write("Makefile", "test:\n\ttrue\n")
    workspace.write("TASKS.md", "## Auth\n\nWrite it.\n\n## API\n\nWrite that.\n")
    workspace.write("specs/search.md", "Find it.\n")
    workspace.write("fleet.yml", "- {name: db, context: Keep it.}\n")
    make_repository(workspace)
    env = {"PATH": f"{workspace.path / 'bin'}:{workspace.environ()['PATH']}"}
    command = [name for word in words[1:] for name in _expanded(word, workspace.path)]
    name = command[1] if len(command) > 1 else ""
    before = [] if name in BRINGS_TASKS else [["fleet", "add", "TASKS.md", "-a", "claude"]]
    before += [FIRST[name]] if name in FIRST else []
    for one in (*before, command):
        done = workspace.rooda(*one, env=env, timeout=50)
        assert done.code == 0, done.err


def _expanded(word: str, folder: Path) -> list[str]:
    """Return the files that a pattern stands for, as a shell does."""
    found = [str(path.relative_to(folder)) for path in folder.glob(word)] if "*" in word else []
    return found or [word]


@pytest.mark.real(rows=3)
@pytest.mark.parametrize("words", commands_of("rooda"))
def test_documented_commands_run(workspace: Workspace, recorded: Path, words: list[str]) -> None:
    for name in ("claude", "my-agent"):
        workspace.agent(SUCCESS, name=f"bin/{name}")
    for name in ("TASK.md", "PROMPT.md"):
        workspace.write(name, "Do it.\n")
    workspace.write("Makefile", "test:\n\ttrue\n")
    workspace.write("PLAN.md", "- [x] Do it\n")
    workspace.agent("true", name="all-done.sh")
    if "--push" in words:
        make_repository(workspace)
    if words[1] in OF_THE_RECORD:
        shutil.copytree(recorded, workspace.path, symlinks=True, dirs_exist_ok=True)
        shutil.copytree(state_of(recorded), workspace.state)
    path = f"{workspace.path / 'bin'}:{workspace.environ()['PATH']}"
    done = workspace.rooda(*words[1:], env={"PATH": path})
    assert done.code == 0, done.err


RESULT = json.dumps({"type": "result", "is_error": False, "result": "<promise>COMPLETE</promise>"})
COMPLETE = f"cat > /dev/null; date > made; echo '{RESULT}'"


@pytest.mark.real(rows=3)
@pytest.mark.parametrize("words", commands_of("ralph"))
def test_documented_ralph_commands_run(workspace: Workspace, words: list[str]) -> None:
    """In a project that `ralph init` has prepared, with a plan and a prompt in it."""
    workspace.agent(COMPLETE, name="bin/claude")
    workspace.write("prompts/look.md", "# Look around\n")
    make_repository(workspace)
    path = f"{workspace.path / 'bin'}:{workspace.environ()['PATH']}"
    for command in (["ralph", "init"], words):
        workspace.write(".ralph/config", "AGENT_CLI=claude\n")
        workspace.write(".ralph/implementation_plan.md", "# Plan\n\n## One\nStatus: open\n")
        done = subprocess.run(
            [ROODA.with_name(command[0]), *command[1:]],
            cwd=workspace.path,
            env=workspace.environ({"PATH": path}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    works = words[1] != "init" and "--dry-run" not in words
    assert (workspace.path / "made").exists() == works


def make_repository(workspace: Workspace) -> None:
    """A repository with a remote."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for arguments in (
        ("init", "-q", "--bare", str(workspace.home / "remote.git")),
        ("init", "-q"),
        ("config", "user.name", "A"),
        ("config", "user.email", "a@example.org"),
        ("remote", "add", "origin", str(workspace.home / "remote.git")),
        ("add", "-A"),
        (*who, "commit", "-q", "-m", "one"),
    ):
        subprocess.run(
            ["git", *arguments],
            cwd=workspace.path,
            env=workspace.environ(),
            check=True,
            capture_output=True,
        )


@pytest.mark.real
@each_row("page", PAGES, ids=lambda page: page.name)
def test_documented_python_runs(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "python"):
        subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.real
@each_row("page", PAGES, ids=lambda page: page.name)
def test_documented_make_targets_and_scripts_exist(page: Path) -> None:
    for words in shell_commands(page):
        if words[0] == "make":
            subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        elif words[0] == ".ci/run":
            assert (ROOT / ".ci/run").exists()
        else:
            assert words[0] in ("rooda", "ralph", "uv", "pipx"), words


@pytest.mark.real(rows=3)
@pytest.mark.parametrize("text", YAML_EXAMPLES)
def test_documented_configs_are_valid(workspace: Workspace, text: str) -> None:
    workspace.config(text)
    workspace.write("prompts/act_build.md", "Do it, then say <promise>SUCCESS</promise>.\n")
    # The examples are also for the user's own file, which opens the sandbox as it likes.
    done = workspace.rooda("config", "check", env={"ROODA_LOOP_SANDBOX_TRUST": "true"})
    assert (done.code, done.err) == (0, "")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@each_row("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", page.read_text())
    for path, anchor in links:
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


@each_row("page", USER_PAGES, ids=lambda page: page.name)
def test_pages_for_users_do_not_mention_the_source_documents(page: Path) -> None:
    assert not re.findall(r"(?i)\bseeds?\b|\bcontract\b|\bD\d+\b", page.read_text())


@pytest.mark.real
def test_the_picture_shows_what_a_run_prints() -> None:
    svg = picture.PICTURE.read_text()
    assert picture.is_fresh(svg, picture.record()), "run `make docs`"


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    svg = picture.PICTURE.read_text()
    assert not re.findall(r"<script|<image|@import|url\(|href", svg)
    assert "prefers-color-scheme: dark" in svg
    assert str(ROOT) not in svg


@pytest.mark.real
@pytest.mark.timeout(300)
@each_row("page", examples.pages(), ids=lambda page: page.name)
def test_examples_print_what_the_page_shows(page: Path) -> None:
    text = page.read_text()
    new = examples.updated(text)
    assert examples.stable(new) == examples.stable(text), "run `make docs`"


def test_guide_says_what_to_do_after_every_stop_rule() -> None:
    table = (docs.DOCS / "guide/why-it-stopped.md").read_text().partition("\nIf rooda itself")[0]
    missing = [str(rule) for rule in StopRule if f"`{rule}`" not in table]
    assert not missing
