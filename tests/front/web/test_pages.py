"""What the pages show, and that nothing in a record acts in them."""

import asyncio
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooda.front.web import sources as sources_module
from support.hostile import TEXTS
from support.nights import RUN, STEP, at, checked, doubtful_night, failed, iteration, night, results
from support.pages import Page
from support.states import state_of
from support.web import Answer, Machine, ask, serving

SECRET = "correct-horse-battery"
ALL = " ".join(one for one in TEXTS if len(one) < 1000)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def asked(machine: Machine, *paths: str) -> list[Answer]:
    async def ask_all() -> list[Answer]:
        async with serving(machine) as app:
            return [await ask(app, path) for path in paths]

    return asyncio.run(ask_all())


def text_of(machine: Machine, path: str) -> str:
    (answer,) = asked(machine, path)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    return answer.text


def test_list_shows_runs_at_work_before_those_that_have_ended(machine: Machine) -> None:
    ended = machine.good_run("shop")
    at_work = machine.run_at_work("payments", iteration(1, results(41)))
    page = text_of(machine, "/api/runs")
    assert page.index(f"#/run/{at_work}") < page.index('data-part="ended"')
    assert page.index('data-part="ended"') < page.index(f"#/run/{ended}")
    for words in ("payments", "running", "41/41", "shop", "success", "13/13", "Finished step 3"):
        assert words in page, words


def test_list_and_run_warn_of_a_success_with_open_tasks(machine: Machine) -> None:
    tree = machine.tree("shop")
    row, rows = doubtful_night()
    machine.save(tree, row, *rows)
    page = text_of(machine, "/api/runs")
    assert '<span class="st warn">' in page
    assert '<use href="#warn"/>' in page
    assert '<span class="hl warn"><bdi>14 of 20 tasks; 6 open in PLAN.md: Parse dates' in page
    assert '14/20<span class="u"> tasks</span>' in page
    assert "All tasks are done" not in page
    (address,) = re.findall('href="#/run/([^"]+)"', page)
    page = text_of(machine, f"/api/run/{address}")
    assert '<h1 id="h" class="warn">' in page
    assert "<b>14 of 20 tasks</b></span> <bdi>6 open in PLAN.md: Parse dates" in page


def test_list_of_a_machine_without_runs_says_how_to_start_one(machine: Machine) -> None:
    page = text_of(machine, "/api/runs")
    assert "No run has been recorded yet" in page
    assert "No run is at work" in page


def test_run_has_headline_timeline_plots_iterations_and_the_place_for_its_words(
    machine: Machine,
) -> None:
    address = machine.good_run()
    page = text_of(machine, f"/api/run/{address}")
    names = re.findall('data-part="([^"]+)"', page)
    assert names == ["trouble", "head", "timeline", "trends", "i3", "i2", "i1", "spent", "next"]
    assert page.index('id="iterations"') < page.index('id="log"')
    assert f'href="#/run/{address}/3"' in page
    assert f'href="#/report/{address}"' in page


def test_words_of_a_run_at_work_come_first_and_its_iteration_is_at_work(machine: Machine) -> None:
    working = iteration(2, ended_at=None, status="executing", headline="", verify=None)
    address = machine.run_at_work("payments", iteration(1, results(41)), working)
    page = text_of(machine, f"/api/run/{address}")
    assert page.index('id="log"') < page.index('id="iterations"')
    assert "At work since" in page
    assert "; iteration 2 is at work" in page


@pytest.mark.real
def test_iteration_shows_words_files_tests_verify_and_what_the_agent_printed(
    machine: Machine,
) -> None:
    tree = machine.tree("shop")
    bad = failed(2, "verify", "verify failed: exit code 2", verify=checked(2, "exit code 2"))
    machine.save(tree, night(ended_at=at(2 * STEP)), iteration(1, results(4)), bad)
    machine.transcript(tree, 2, b"I read the code.\n<b>Now</b> I write.\n")
    address = machine.good_run("other").partition("/")[0]
    assert address
    key = text_of(machine, "/api/runs").split("#/run/")
    page = text_of(machine, f"/api/iteration/{_key(key, 'shop')}/{RUN}/2")
    for words in ("failed: verify", "the end of the output", "&lt;b&gt;Now&lt;/b&gt; I write."):
        assert words in page, words
    assert 'rel="prev"' in page
    assert 'rel="next"' not in page


def _key(cards: list[str], project: str) -> str:
    return next(card for card in cards if f"<bdi>{project}</bdi>" in card).partition("/")[0]


@pytest.mark.real
def test_iteration_with_a_huge_transcript_names_the_command_that_shows_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "_MOST_READ", 100)
    address = machine.good_run()
    machine.transcript(machine.tree("shop"), 1, b"x" * 101)
    page = text_of(machine, f"/api/iteration/{address}/1")
    assert f"rooda show {RUN} 1 --output" in page


@pytest.mark.real
def test_iteration_shows_the_end_of_a_long_transcript(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_module, "_MOST_SHOWN", 100)
    address = machine.good_run()
    lines = b"".join(b"line %d\n" % number for number in range(1000))
    machine.transcript(machine.tree("shop"), 1, lines)
    page = text_of(machine, f"/api/iteration/{address}/1")
    transcript = page.partition("What the agent printed")[2]
    assert "[...]\n" in transcript
    assert "line 999" in transcript
    assert "line 900\n" not in transcript


@pytest.mark.real
def test_report_and_its_file_show_the_run(machine: Machine) -> None:
    address = machine.good_run()
    page, file = asked(machine, f"/api/report/{address}", f"/api/download/{address}")
    assert (page.status, file.status) == (200, 200)
    assert f'href="/api/download/{address}" data-download="rooda-{RUN}.html"' in page.text
    assert page.text.count("<details") >= 3
    assert "<html" not in page.text
    assert file.text.startswith("<!doctype html>")
    assert file.headers["content-disposition"] == f'attachment; filename="rooda-{RUN}.html"'


@pytest.mark.parametrize(
    "path",
    [
        "/api/run/0000000000000000/{run}",
        "/api/run/../{run}",
        "/api/run/{key}/nothing",
        "/api/run/{key}/..",
        "/api/run/{key}/last",
        "/api/run/{key}/20261114",
        "/api/run/{key}/{run}\x00",
        "/api/run/{key}/{run}/",
        "/api/run/{key}/..%2f..",
        "/api/live/run/{key}/nothing",
        "/api/iteration/{key}/{run}/99",
        "/api/iteration/{key}/{run}/-1",
        "/api/iteration/{key}/{run}/1e1",
        "/api/iteration/{key}/{run}/last",
        "/api/iteration/{key}/{run}/9999999999999999999999",
        "/api/report/{key}/nothing",
        "/api/download/{key}/nothing",
        "/api/nothing",
        "/api/",
    ],
)
def test_unknown_address_is_answered_with_one_sentence(machine: Machine, path: str) -> None:
    key, _, run = machine.good_run().partition("/")
    (answer,) = asked(machine, path.format(key=key, run=run))
    assert answer.status == 404
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert re.fullmatch(r"[^\n]+\.\n", answer.text)


def test_record_that_is_broken_is_named(machine: Machine) -> None:
    address = machine.good_run()
    (state_of(machine.tree("shop")) / "rooda.db").write_bytes(b"no database" * 1000)
    runs, run = asked(machine, "/api/runs", f"/api/run/{address}")
    assert (runs.status, run.status) == (200, 404)


@pytest.mark.real
def test_hostile_texts_are_text_on_every_page(machine: Machine) -> None:
    tree = machine.tree("<img src=x onerror=alert(1)>")
    rows = [
        replace(iteration(1, results(4), headline=ALL), model=ALL, reason=ALL),
        failed(2, "agent", ALL, headline=ALL, evidence=ALL, verify=checked(2, ALL)),
    ]
    machine.save(tree, night(procedure=ALL, reason=ALL, status="aborted"), *rows)
    machine.transcript(tree, 2, ALL.encode("utf-8", "replace"))
    (runs,) = asked(machine, "/api/runs")
    key = runs.text.split("#/run/")[1][:16]
    paths = [f"/api/{name}/{key}/{RUN}" for name in ("run", "report")]
    for page in (runs, *asked(machine, *paths, f"/api/iteration/{key}/{RUN}/2")):
        assert page.status == 200
        found = Page(page.text)
        assert found.handlers == []
        for element in ("script", "img", "iframe", "style", "object", "form"):
            assert found.elements[element] == 0, element
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page.text)
        targets = re.findall(r'href="([^"]*)"', page.text)
        assert all(re.fullmatch(r"#[\w/-]+|/api/download/[\w/-]+", one) for one in targets), targets


@pytest.mark.real
def test_secrets_are_masked_on_every_page(machine: Machine) -> None:
    machine.more["SOME_TOKEN"] = SECRET
    tree = machine.tree("shop")
    row = iteration(1, results(4), headline=f"used {SECRET}", reason=SECRET)
    machine.save(tree, night(ended_at=at(STEP), procedure=f"build {SECRET}"), row)
    machine.transcript(tree, 1, f"export X={SECRET}\n".encode())
    (runs,) = asked(machine, "/api/runs")
    key = runs.text.split("#/run/")[1][:16]
    names = ("run", "report", "download")
    paths = [*(f"/api/{name}/{key}/{RUN}" for name in names), f"/api/iteration/{key}/{RUN}/1"]
    for page in (runs, *asked(machine, *paths)):
        assert page.status == 200
        assert SECRET not in page.text
        assert "used" in page.text


def test_machine_without_a_fleet_says_so(machine: Machine) -> None:
    machine.good_run()
    assert "No work tree of this machine has a fleet" in text_of(machine, "/api/fleet")
    assert "#/fleet" not in text_of(machine, "/api/runs")
