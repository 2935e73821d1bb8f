"""`rooda report` through the installed command."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.hostile import SCRIPT
from support.nights import keep_big_night
from support.pages import Page, browser, opened
from support.workspace import Workspace

pytestmark = pytest.mark.real

DONE = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


@pytest.mark.long
def test_report_writes_one_page_and_says_where_and_how_to_open_it(work: GitWork) -> None:
    work.settings(verify="echo '===== 3 passed in 0.01s ====='", git={"commit": True})
    agent = work.agents("echo one > a; echo Added a file.", f"rm a; echo Removed it.; {DONE}")
    assert work.work(agent).code == 0
    done = work.rooda("report")
    assert done.code == 0, done.err
    run = work.run_record()["run"]
    path = work.state / "runs" / run / "report.html"
    first, second = done.out.splitlines()
    assert first.startswith(f"Report of run {run}: {path} (")
    assert second.endswith(f"open {path}")
    assert path.stat().st_mode & 0o777 == 0o600
    page = Page(path.read_text())
    for expected in ("success", "verify passed", "3/3 tests", "Added a file", "+one", "-one"):
        assert expected in page.text, expected
    assert list(path.parent.parent.parent.glob("*.draft")) == []
    away = work.rooda("report", env={"SSH_CONNECTION": "1.2.3.4 1 5.6.7.8 22"})
    assert "To open it: scp " in away.out


@pytest.mark.long
def test_report_to_a_file_a_folder_and_standard_output(work: GitWork) -> None:
    assert work.work(work.agents(DONE)).code == 0
    run = work.run_record()["run"]
    target = work.path / "night.html"
    target.symlink_to(work.home / "elsewhere")
    done = work.rooda("report", run[:17], "-o", "night.html")
    assert done.code == 0, done.err
    assert f"Report of run {run}: {target} (" in done.out
    assert not target.is_symlink(), "the link is replaced, and not followed"
    assert not (work.home / "elsewhere").exists()
    assert work.rooda("report", "-o", str(work.home)).code == 0
    assert (work.home / f"rooda-{run}.html").read_text() != ""
    for standard in ("-", "/dev/stdout"):
        assert work.rooda("report", "-o", standard).out.startswith("<!doctype html>")
    refused = work.rooda("report", "-o", "no/such/folder/x.html")
    assert refused.code == 1
    missing = work.path / "no/such/folder"
    assert f"the report can't be written: {missing}: No such file or directory" in refused.err
    assert "Choose another file with -o PATH" in refused.err
    beside = work.rooda("report", "-o", "night.html/x.html")
    assert f"the report can't be written: {target}/x.html: Not a directory" in beside.err
    empty = work.rooda("report", "-o", "")
    assert (empty.code, empty.out) == (1, "")
    assert "-o has no PATH" in empty.err
    (work.path / "away").symlink_to(work.home)
    refused = work.rooda("report", "-o", "away/x.html")
    assert "a link in the work tree leads out of it" in refused.err
    unknown = work.rooda("report", "no-such-run")
    assert (unknown.code, "no run 'no-such-run'" in unknown.err) == (1, True)


NOTE_MEMORY = """\
import pathlib, sys
from rooda.front.cli.main import main
try:
    main()
finally:
    status = pathlib.Path('/proc/self/status')  # ru_maxrss would include pytest's memory
    most = status.read_text().partition('VmHWM:')[2].split()[0] if status.exists() else 0
    pathlib.Path('noted').write_text(f"{'jinja2' in sys.modules} {most}")
"""


def noted(work: GitWork, *words: str) -> tuple[bool, int]:
    """Run rooda; return whether it imported Jinja2, and its memory in kB."""
    program = work.write("start.py", NOTE_MEMORY)
    command = [sys.executable, str(program), *words]
    subprocess.run(command, cwd=work.path, env=work.environ(), check=True, timeout=55)
    imported, most = (work.path / "noted").read_text().split()
    return imported == "True", int(most)


def test_only_the_making_of_a_page_imports_jinja(work: GitWork) -> None:
    work.settings()
    assert not noted(work, "work", "--ai-cmd", work.agents(DONE))[0]
    assert noted(work, "report")[0]


HOSTILE_AGENT = r"""
import json, os, pathlib, sys
name = "<img src=x onerror=top.owned=1>.py"
script = SCRIPT
pathlib.Path(name).write_text(script + "\n" + "\u202egnp.exe \x1b[31m\n" + "x" * 1_000_000 + "\n")
pathlib.Path(os.fsdecode(b"\xff\xfe'\"><b>")).write_bytes(b"\xff\xfe\x00 not text\n" * 9)
pathlib.Path("</script><script>").write_text("</pre>" + script)
words = script + " Added it.\n\n</bdi></details>" + "word" * 250_000 + "\u202e\x1b]0;owned\x07"
block = {"type": "tool_use", "name": script, "input": {"command": script + "y" * 1_000_000}}
for content in ([block], [{"type": "text", "text": words}]):
    print(json.dumps({"type": "assistant", "message": {"content": content}}), flush=True)
sys.stdout.buffer.write(b"\xff\xfe<b>\n")
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": words}))
"""


@pytest.mark.long
@pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
def test_hostile_agent_executes_nothing_and_keeps_the_layout(work: GitWork) -> None:
    work.settings(verify=f"echo '{SCRIPT}</pre>'; printf '\\377\\033[31m'; exit 1")
    folder = work.home / "bin"
    folder.mkdir()
    (folder / "agent.py").write_text(f"SCRIPT = {SCRIPT!r}\n{HOSTILE_AGENT}")
    claude = folder / "claude"
    claude.write_text(f"#!/bin/sh\nexec {sys.executable} -S {folder}/agent.py\n")
    claude.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    command = "claude -p --output-format stream-json --verbose"
    work.work(command, "-n", "2", "--commit", env={"PATH": path})
    page = work.home / "page.html"
    assert work.rooda("report", "-o", str(page)).code == 0
    assert page.stat().st_size < 200_000
    found, console = opened(page, (390, 800, 1280), work.home)
    for one in found:
        assert one["owned"] is None
        assert "owned" not in one["title"]
        assert (one["images"], one["scripts"], one["frames"]) == (0, 1, 0)
        assert one["works"], "rooda's own script runs"
        assert one["needed"] <= one["width"], json.dumps(one)
        assert one["wide"] == []
    assert "Content Security Policy" not in console
    text = Page(page.read_text()).text
    assert "<script>document.documentElement.dataset.owned=1" in text


@pytest.mark.long
def test_three_hundred_iterations_with_a_gigabyte_of_transcripts(work: GitWork) -> None:
    keep_big_night(work.path, iterations=300, size=1024**3)
    _, memory = noted(work, "report", "-o", "big.html")
    assert memory < 100 * 1024
    page = work.path / "big.html"
    assert page.stat().st_size < 5_000_000
    assert "300 good" in Page(page.read_text()).text


@pytest.mark.long
def test_markdown_and_json_go_to_standard_output_or_a_file(work: GitWork) -> None:
    assert work.work(work.agents(f"echo Added it all.; {DONE}")).code == 0
    shown = work.rooda("report", "--format", "markdown")
    assert shown.out.startswith("# work: success\n")
    assert "| Added it all |" in shown.out
    found = json.loads(work.rooda("report", "--format", "json").out)
    assert found["iterations"][0]["headline"] == "Added it all"
    assert work.rooda("report", "--format", "markdown", "-o", ".").code == 0
    assert (work.path / f"rooda-{found['run']}.md").read_text() == shown.out
