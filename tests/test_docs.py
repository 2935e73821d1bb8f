"""The documentation is true: generated tables are fresh, commands run, examples load."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from support.workspace import Workspace
from tools import docs

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


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


ROODA_COMMANDS = [
    pytest.param(words, id=f"{page.name}: {shlex.join(words)}")
    for page in PAGES
    for words in shell_commands(page)
    if words[0] == "rooda"
]
YAML_EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "yaml"))
]


@pytest.mark.parametrize("name", docs.GENERATED)
def test_generated_tables_are_fresh(name: str) -> None:
    assert (docs.DOCS / name).read_text() == docs.updated(name), "run `make docs`"


@pytest.mark.parametrize("words", ROODA_COMMANDS)
def test_documented_commands_run(workspace: Workspace, words: list[str]) -> None:
    agent = "cat > /dev/null; echo '<promise>SUCCESS</promise>'"
    for name in ("claude", "my-agent"):
        workspace.agent(agent, name=f"bin/{name}")
    workspace.write("TASK.md", "Do it.\n")
    path = f"{workspace.path / 'bin'}:{workspace.environ()['PATH']}"
    done = workspace.rooda(*words[1:], env={"PATH": path})
    assert done.code == 0, done.err


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documented_make_targets_and_scripts_exist(page: Path) -> None:
    for words in shell_commands(page):
        if words[0] == "make":
            subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        elif words[0] == ".ci/run":
            assert (ROOT / ".ci/run").exists()
        else:
            assert words[0] in ("rooda", "pip"), words


@pytest.mark.parametrize("text", YAML_EXAMPLES)
def test_documented_configs_are_valid(workspace: Workspace, text: str) -> None:
    workspace.config(text)
    workspace.write("prompts/act_build.md", "Do it, then say <promise>SUCCESS</promise>.\n")
    done = workspace.rooda("config", "check")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_readme_shows_what_the_demo_prints(workspace: Workspace) -> None:
    """The picture of a run has the demo's lines; only times, numbers and paths differ."""
    picture = next(b for b in blocks(ROOT / "README.md", "text") if "Starting procedure" in b)
    demo = workspace.rooda("demo").err

    def normal(text: str) -> list[str]:
        lines = [line for line in text.splitlines() if line.startswith(("[", "  Iteration"))]
        return [re.sub(r"\d+:\d+:\d+|\d+\.\d+s", "T", line) for line in lines]

    assert normal(picture) == normal(demo)
