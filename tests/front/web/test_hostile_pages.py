"""Agents that attack the reader of their words: in the browser, all of it is text."""

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support.browser import Tab, chromium, tab
from support.gitwork import GitWork, git_work
from support.hostile import ALL, SCRIPT, TEXTS
from support.hostile_nights import keep_hostile_night
from support.webwork import Site, obedient_run, web
from support.workspace import Workspace

pytestmark = pytest.mark.real


# A claude whose words, tool calls, file names and files are hostile.
AGENT = r"""
import json, os, pathlib, sys
name = "<img src=x onerror=top.owned=1>.py"
pathlib.Path(name).write_text(SCRIPT + "\n" + "\u202egnp.exe \x1b[31m\n" + "x" * 1_000_000 + "\n")
pathlib.Path(os.fsdecode(b"\xff\xfe'\"><b>")).write_bytes(b"\xff\xfe\x00 not text\n" * 9)
pathlib.Path("</script><script>").write_text("</pre>" + SCRIPT)
words = SCRIPT + " Added it.\n\n[x](javascript:top.owned=1) {{ 7 * 7 }}\n" + "word" * 250_000
block = {"type": "tool_use", "name": SCRIPT, "input": {"command": SCRIPT + "y" * 1_000_000}}
for content in ([block], [{"type": "text", "text": words}]):
    print(json.dumps({"type": "assistant", "message": {"content": content}}), flush=True)
sys.stdout.buffer.write(b"\xff\xfe<b>\n")
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": words}))
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def is_harmless(seen: Tab, site: Site) -> None:
    """Check that no text has become a part of the page, and that the page still reacts."""
    found = seen.look()
    assert found["owned"] is None
    assert found["title"] != "owned"
    assert (found["images"], found["foreign"], found["handlers"]) == (0, 0, 0), found
    assert found["scripts"] <= 2, "rooda's own"
    own = ("#", "/", site.address)
    assert [one for one in found["links"] if not one.startswith(own)] == []
    assert [one for one in found["links"] if one.startswith("//")] == []
    assert found["needed"] <= found["width"], found["wide"]
    assert found["wide"] == []
    said = [one for one in seen.console if "404" not in one]
    assert said == []
    hidden = seen.page.evaluate(
        r"() => (/[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/"
        ".exec(document.body.textContent) || []).length"
    )
    assert hidden == 0, "control characters"
    assert seen.page.evaluate("getComputedStyle(document.body).display") != "none"


def look_at_all_pages(seen: Tab, site: Site, place: str, *iterations: int) -> None:
    """Open all pages about a run, each at the width of a telephone and at that of a desk."""
    pages = ["#/", f"#/run/{place}", f"#/report/{place}"]
    pages += [f"#/run/{place}/{number}" for number in iterations]
    for page in pages:
        with seen.page.expect_response(lambda answer: "/api/" in answer.url):
            seen.page.goto("about:blank")
            seen.page.goto(f"{site.address}{page}")
        seen.page.wait_for_function("() => document.querySelector('main') !== null")
        for width in (390, 1280):
            seen.page.set_viewport_size({"width": width, "height": 900})
            is_harmless(seen, site)


@pytest.mark.long
def test_words_files_and_checks_of_a_hostile_agent_are_texts(
    browser: Browser, work: GitWork
) -> None:
    work.settings(verify=f"echo '{SCRIPT}</pre>'; printf '\\377\\033[31m'; exit 1")
    folder = work.home / "bin"
    folder.mkdir()
    (folder / "agent.py").write_text(f"SCRIPT = {SCRIPT!r}\n{AGENT}")
    claude = folder / "claude"
    claude.write_text(f"#!/bin/sh\nexec {sys.executable} -S {folder}/agent.py\n")
    claude.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    command = "claude -p --output-format stream-json --verbose"
    work.work(command, "-n", "1", "--commit", env={"PATH": path})
    with web(work) as site, tab(browser, site.url) as seen:
        place = site.place(work.reader.run().run)
        look_at_all_pages(seen, site, place, 1)
        for text in (SCRIPT, "<img src=x onerror=top.owned=1>.py", "</script><script>"):
            seen.shows(text)


@pytest.mark.long
def test_live_words_of_a_hostile_agent_are_one_text(browser: Browser, work: GitWork) -> None:
    with (
        web(work) as site,
        obedient_run(work) as agent,
        tab(browser, f"{site.address}#{site.token}") as seen,
    ):
        seen.shows("running")
        seen.go(f"#/run/{site.place(agent.run)}", "running")
        agent.says(SCRIPT)
        seen.shows(SCRIPT, "#log")
        for number, text in enumerate(TEXTS):
            agent.says(text.encode("utf-8", "surrogateescape") + f"\nsaid {number}.\n".encode())
            seen.shows(f"said {number}.", "#log")
        agent.says(b"\xff\xfe\x00<b>bold</b>\nsaid bytes.\n")
        seen.shows("said bytes.", "#log")
        seen.shows("<b>bold</b>", "#log")
        assert (
            seen.page.evaluate("document.querySelector('#log').querySelectorAll('*').length") == 0
        )
        is_harmless(seen, site)
        agent.says("x" * 5_000_000 + "\nafter the long line.\n")
        agent.ends_iteration()  # of so much output, the session log has the beginning and the end
        seen.shows("after the long line.", "#log")
        assert seen.page.evaluate("document.querySelector('#log').textContent.length") < 2_000_000
        agent.says("and on.")
        seen.shows("and on.", "#log")
        is_harmless(seen, site)
        agent.ends()
        assert agent.running.finish().code == 0
        seen.shows("success")
        seen.page.locator('a[href="#/"]').first.click()
        seen.shows(work.path.name)


@pytest.mark.long
def test_rows_that_an_agent_has_written_into_the_record_are_texts(
    browser: Browser, work: GitWork
) -> None:
    assert work.work(work.agent("echo '<promise>SUCCESS</promise>'")).code == 0
    good = work.reader.run().run
    night = keep_hostile_night(work.path)
    forge_rows(work.state / "rooda.db", good)
    with web(work) as site, tab(browser, site.url) as seen:
        seen.page.locator(f'a[href="#/run/{site.place(good)}"]').first.wait_for()
        is_harmless(seen, site)
        assert all(".." not in one and "<" not in one for one in site.runs())
        look_at_all_pages(seen, site, site.place(night), 1, 4, 9, 12)
        seen.page.goto(f"{site.address}#/run/{site.place(night)}/14")
        seen.shows("no such iteration")
        look_at_all_pages(seen, site, site.place(good))


def forge_rows(path: Path, run: str) -> None:
    """Write rows as an agent with an SQL client could."""
    with closing(sqlite3.connect(path)) as database, database:
        for forged in ("../../../../etc", "<img src=x onerror=top.owned=1>", "/etc/passwd", ""):
            database.execute(
                "INSERT INTO runs SELECT ?, procedure, status, started_at, ended_at, pid,"
                " pid_started, host, boot, workspace, data FROM runs WHERE run = ?",
                (forged, run),
            )
        text = ALL.encode("utf-8", "replace").decode()[:60_000]  # rooda skips rows with more
        database.execute(
            "UPDATE runs SET status = ?, procedure = ? WHERE run = ?", (text, text, run)
        )
        database.execute("UPDATE iterations SET status = ? WHERE run = ?", (SCRIPT, run))
        database.execute("UPDATE iterations SET data = 'no JSON' WHERE number = 14")
        database.execute("UPDATE iterations SET started_at = ? WHERE number = 13", (SCRIPT,))
