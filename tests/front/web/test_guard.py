"""Who may read the page, and what every answer forbids the browser."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.web import OWN, PORT, TOKEN, Answer, Machine, ask, serving

ADDRESSES = ("/", "/web.js", "/report.css", "/api/runs", "/api/nothing", "/nothing")


def answers(machine: Machine, *wanted: tuple[str, Mapping[str, str], str]) -> list[Answer]:
    async def ask_all() -> list[Answer]:
        async with serving(machine) as app:
            return [await ask(app, path, headers, method) for path, headers, method in wanted]

    return asyncio.run(ask_all())


def statuses(folder: Path, headers: Mapping[str, str], *paths: str) -> list[int]:
    machine = Machine(folder)
    machine.good_run()
    return [one.status for one in answers(machine, *((path, headers, "GET") for path in paths))]


def test_the_page_has_no_data_and_everything_else_needs_the_token(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.good_run("secret-project")
    host = {"host": OWN["host"]}
    start, script, runs = answers(
        machine, ("/", host, "GET"), ("/web.js", host, "GET"), ("/api/runs", OWN, "GET")
    )
    assert (start.status, script.status, runs.status) == (200, 200, 200)
    assert "secret-project" in runs.text
    assert "secret-project" not in start.text + script.text


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        TOKEN,
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"bearer {TOKEN}",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN} ",
        "Bearer \u00e9",
    ],
)
def test_no_or_another_token_gets_no_data(tmp_path: Path, given: str | None) -> None:
    headers = {"host": OWN["host"]} | ({} if given is None else {"authorization": given})
    paths = ("/api/runs", "/api/live/runs", "/api/fleet", "/api/nothing", "/api/run/x/y")
    assert statuses(tmp_path, headers, *paths) == [401] * len(paths)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        "",
        "[::1]:7000",
    ],
)
def test_another_host_is_refused_on_every_address(tmp_path: Path, host: str) -> None:
    found = statuses(tmp_path, OWN | {"host": host}, *ADDRESSES)
    assert found == [421] * len(ADDRESSES)


def test_localhost_is_a_good_host(tmp_path: Path) -> None:
    assert statuses(tmp_path, OWN | {"host": f"localhost:{PORT}"}, "/", "/api/runs") == [200, 200]


@pytest.mark.parametrize(
    "more",
    [
        {"origin": "http://evil.example"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ],
)
def test_requests_of_other_pages_are_refused_on_every_address(
    tmp_path: Path, more: Mapping[str, str]
) -> None:
    assert statuses(tmp_path, {**OWN, **more}, *ADDRESSES) == [403] * len(ADDRESSES)


def test_a_link_from_another_page_opens_only_the_page_without_data(tmp_path: Path) -> None:
    click = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    }
    assert statuses(tmp_path, OWN | click, "/", "/api/runs", "/web.js") == [200, 403, 403]


def test_requests_of_the_page_itself_pass(tmp_path: Path) -> None:
    own = {"origin": f"http://127.0.0.1:{PORT}", "sec-fetch-site": "same-origin"}
    assert statuses(tmp_path, OWN | own, "/", "/api/runs") == [200, 200]


def test_only_reading_methods_are_allowed(tmp_path: Path) -> None:
    methods = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW")
    found = answers(Machine(tmp_path), *(("/api/runs", OWN, one) for one in methods))
    assert {one.status for one in found} == {405}
    assert {one.headers["allow"] for one in found} == {"GET, HEAD"}


def test_every_answer_tells_the_browser_what_is_forbidden(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    address = machine.good_run()
    wanted = [
        *((path, OWN, "GET") for path in (*ADDRESSES, f"/api/run/{address}", "/icon.svg")),
        ("/api/runs", {"host": OWN["host"]}, "GET"),
        ("/", {"host": "evil.example"}, "GET"),
        ("/", OWN, "POST"),
        ("/api/live/runs", OWN, "HEAD"),
    ]
    for one in answers(machine, *wanted):
        policy = one.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        names = ("x-content-type-options", "referrer-policy", "cache-control")
        assert [one.headers[name] for name in names] == ["nosniff", "no-referrer", "no-store"]
        assert one.headers["cross-origin-resource-policy"] == "same-origin"
        assert one.headers["cross-origin-opener-policy"] == "same-origin"
        assert "set-cookie" not in one.headers
        assert "access-control-allow-origin" not in one.headers
