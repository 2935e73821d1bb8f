"""`rooda web` as a user meets it: the real server, real runs and a real browser."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser

from support.browser import Tab, chromium, tab
from support.gitwork import GitWork, git_work
from support.webwork import obedient_run, web
from support.workspace import Workspace

pytestmark = pytest.mark.real


ADVICE = "rooda web"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    """A repository with a run that has ended, of two iterations."""
    with git_work(workspace) as found:
        found.settings(verify="echo '===== 3 passed in 0.01s ====='", git={"commit": True})
        agent = found.agents(
            "printf 'first line\\n' > notes.txt; echo 'Added the notes.'",
            "printf 'second line\\n' > notes.txt; echo 'Changed the notes.';"
            " echo '<promise>SUCCESS</promise>'",
        )
        assert found.work(agent).code == 0
        yield found


@pytest.fixture
def other(work: GitWork) -> GitWork:
    """A second work tree of the same user."""
    path = work.path.parent / "other tree"
    work.git("clone", "-q", str(work.path), str(path), cwd=work.path.parent)
    return replace(work, path=path, started=work.started)


def is_quiet(tab: Tab) -> None:
    """The browser had nothing to say, and nothing was refused to the page."""
    assert tab.console == []
    assert tab.failed == []


@pytest.mark.long
def test_page_shows_the_runs_of_all_work_trees_and_a_live_one_to_its_end(
    browser: Browser, work: GitWork, other: GitWork
) -> None:
    ended = work.reader.run().run
    with (
        web(work) as site,
        obedient_run(other, "-n", "3") as agent,
        tab(browser, site.url) as seen,
    ):
        place, live = site.place(ended), site.place(agent.run)
        seen.shows(work.path.name)
        seen.shows(other.path.name)
        assert seen.page.evaluate("location.href") == f"{site.address}#/"
        assert site.token in seen.page.evaluate("Object.values(sessionStorage).join()")
        assert seen.page.evaluate("localStorage.length + document.cookie.length") == 0
        assert seen.page.evaluate("history.length") <= 2, "the token is not in the history"

        seen.go(f"#/run/{live}", "running")
        agent.says("I look at the code first.")
        seen.shows("I look at the code first.", "#log")
        agent.says("<b>Now</b> I write & test.")
        seen.shows("<b>Now</b> I write & test.", "#log")
        agent.does("echo text > new-file")
        agent.ends()
        assert agent.running.finish().code == 0
        seen.shows("success")
        assert "running" not in seen.page.inner_text("main")
        assert seen.page.evaluate("performance.getEntriesByType('navigation').length") == 1

        seen.go(f"#/run/{live}/1", "+text")
        seen.shows("I look at the code first.")
        seen.page.reload()
        seen.shows("+text")

        seen.page.goto(f"{site.address}#/run/{place}")
        seen.go(f"#/run/{place}/2", "-first line")
        for text in ("+second line", "notes.txt", "Changed the notes.", "3 passed"):
            seen.shows(text)
        seen.page.go_back()
        seen.go(f"#/report/{place}", "Timeline")
        seen.page.locator('a[href="#i2"]').first.click()
        seen.page.locator("#i2 details[open], details#i2[open]").first.wait_for()
        assert seen.page.evaluate("location.hash") == f"#/report/{place}"
        seen.page.reload()
        seen.shows("Timeline")
        seen.page.goto(f"{site.address}#/fleet")
        seen.shows("rooda fleet")
        seen.page.goto(f"{site.address}#/run/{place}/77")
        seen.shows("no such iteration")
        refusals = [one for one in seen.failed if "/77" not in one]
        assert (refusals, len(seen.failed)) == ([], 1)
        assert seen.context.cookies() == []
        assert [one for one in seen.console if "77" not in one and "404" not in one] == []


@pytest.mark.long
def test_list_shows_a_run_that_starts_and_its_end_without_a_reload(
    browser: Browser, work: GitWork, other: GitWork
) -> None:
    with web(work) as site, tab(browser, site.url) as seen:
        seen.shows("success")
        with obedient_run(other) as agent:
            seen.shows("running")
            seen.page.locator(f'a[href="#/run/{site.place(agent.run)}"]').first.wait_for()
            agent.ends()
            assert agent.running.finish().code == 0
        seen.page.wait_for_function("() => !document.body.textContent.includes('running')")
        is_quiet(seen)


@pytest.mark.long
def test_page_without_the_token_says_what_to_do(browser: Browser, work: GitWork) -> None:
    with web(work) as site:
        with tab(browser, site.address) as seen:
            seen.shows(ADVICE)
            assert work.path.name not in seen.page.inner_text("body")
            assert seen.console == []
        with tab(browser, f"{site.address}#{'x' * 43}") as seen:
            seen.shows(ADVICE)
            assert {one.split()[0] for one in seen.failed} <= {"401"}
            assert work.path.name not in seen.page.inner_text("body")
            seen.page.goto("about:blank")
            seen.page.goto(site.url)
            seen.shows(work.path.name)
        with tab(browser, site.url) as seen:
            seen.shows(work.path.name)
            other = seen.context.new_page()  # another tab
            other.goto(site.address)
            other.wait_for_selector(f"text={ADVICE}")


@pytest.mark.long
def test_page_says_that_the_server_has_gone_and_goes_on_with_the_next_one(
    browser: Browser, work: GitWork
) -> None:
    with web(work) as site, tab(browser, site.url) as seen:
        seen.shows(work.path.name)
        assert site.stop() == 0
        seen.page.wait_for_function(
            "() => /Connection lost/.test(document.getElementById('lost').textContent)"
        )
        with web(work, "--port", str(site.port)) as again:
            seen.page.goto("about:blank")
            seen.page.goto(again.url)
            seen.shows(work.path.name)


@pytest.mark.long
def test_no_page_is_wider_than_the_window(browser: Browser, work: GitWork, other: GitWork) -> None:
    ended = work.reader.run().run
    with (
        web(work) as site,
        obedient_run(other, "-n", "3") as agent,
        tab(browser, site.url) as seen,
    ):
        place, live = site.place(ended), site.place(agent.run)
        agent.says("word" * 100 + " and a long line of words that wraps" * 20)
        pages = {
            "runs": ("#/", work.path.name),
            "live": (f"#/run/{live}", "wordword"),
            "run": (f"#/run/{place}", "Added the notes"),
            "iteration": (f"#/run/{place}/2", "+second line"),
            "report": (f"#/report/{place}", "Timeline"),
            "fleet": ("#/fleet", "fleet"),
        }
        for name, (where, text) in pages.items():
            seen.page.goto(f"{site.address}{where}")
            seen.shows(text)
            seen.check_layout(name)
        is_quiet(seen)
    with web(work) as site, tab(browser, site.address) as seen:
        seen.shows(ADVICE)
        seen.check_layout("no-token")
