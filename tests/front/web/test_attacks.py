"""`rooda web` as an attacker meets it: every byte goes over a socket to the real server."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from support.children import until
from support.gitwork import GitWork
from support.webwork import Answer, Site, web, work_with_a_run

pytestmark = pytest.mark.real

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
SECRET = "words-that-only-the-owner-may-read"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitWork]:
    with work_with_a_run(tmp_path_factory.mktemp("web"), SECRET) as found:
        yield found


@pytest.fixture(scope="module")
def site(work: GitWork) -> Iterator[Site]:
    with web(work) as found:
        yield found


@pytest.fixture(scope="module")
def paths(site: Site) -> list[str]:
    """All paths with data."""
    place = site.runs()[0]
    return [
        "/api/runs",
        f"/api/run/{place}",
        f"/api/iteration/{place}/1",
        f"/api/report/{place}",
        "/api/fleet",
        "/api/live/runs",
        f"/api/live/run/{place}",
    ]


def public_paths(site: Site) -> list[str]:
    """The page and what it loads."""
    page = site.get("/", authorization=None).text
    loaded = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert [one for one in loaded if one.endswith(".js")]
    assert [one for one in loaded if one.endswith(".css")]
    return ["/", *loaded]


def refused(answer: Answer, *statuses: int) -> None:
    assert answer.status in statuses, answer
    assert SECRET not in answer.text
    assert "set-cookie" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


def test_data_needs_the_token_in_the_header(site: Site, paths: list[str]) -> None:
    cut = site.token[:-1]
    values = (
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer null",
        f"Bearer {cut}",
        f"Bearer {site.token}x",
        f"Bearer {site.token.swapcase()}",
        f"Basic {site.token}",
        site.token,
        "Bearer \xff\xfe",
    )
    for path in paths:
        for value in values:
            refused(site.get(path, authorization=value), 401)
        refused(site.get(f"{path}?token={site.token}", authorization=None), 401)
        kept = f"token={site.token}"
        refused(site.get(f"{path}?{site.token}", authorization=None, cookie=kept), 401)
        assert site.get(path, "HEAD").status == 200
    assert site.get(paths[2]).text.count(SECRET) >= 1, "the owner reads it"


def test_page_and_its_files_have_no_data_and_every_answer_its_headers(
    site: Site, work: GitWork, paths: list[str]
) -> None:
    for path in public_paths(site):
        answer = site.get(path, authorization=None)
        assert answer.status == 200
        for private in (SECRET, site.token, str(work.path), work.path.name + "<"):
            assert private not in answer.text
    answers = [site.get(path) for path in [*public_paths(site), *paths[:5]]]
    answers += [site.get(path, "HEAD") for path in paths]
    answers += [
        site.get("/", authorization=None, host="evil.example"),
        site.get("/api/runs", authorization=None),
        site.get("/api/nothing"),
        site.get("/nothing", authorization=None),
        site.get("/api/runs", "POST"),
        site.get("/api/runs", origin="http://evil.example"),
    ]
    for one in answers:
        found = {name: one.headers.get(name) for name in HEADERS}
        assert found == HEADERS, one
        assert "set-cookie" not in one.headers
        assert not {name for name in one.headers if name.startswith("access-control")}
        assert "uvicorn" not in one.headers.get("server", "")


@pytest.mark.long
def test_other_names_of_the_host_are_refused(site: Site, paths: list[str]) -> None:
    """A page whose name an attacker has led to this machine sends its own name as the host."""
    other = site.port % 60000 + 1025
    hosts = (
        None,
        "",
        "evil.example",
        f"evil.example:{site.port}",
        f"127.0.0.1:{other}",
        "127.0.0.1",
        f"127.0.0.1.evil.example:{site.port}",
        f"localhost.evil.example:{site.port}",
        f"evil.example#127.0.0.1:{site.port}",
        f"127.0.0.1:{site.port}@evil.example",
        f"0.0.0.0:{site.port}",
        f"[::1]:{site.port}",
        f"2130706433:{site.port}",
        f"127.0.0.1:{site.port},evil.example",
    )
    for path in [*public_paths(site), *paths[:2]]:
        for host in hosts:
            refused(site.get(path, host=host), 400, 421)
        assert site.get(path, host=f"localhost:{site.port}").status == 200
    old = f"GET /api/runs HTTP/1.0\r\nAuthorization: Bearer {site.token}\r\n\r\n"
    refused(site.exchange(old.encode()), 400, 421)
    twice = site.request("/api/runs").replace(b"\r\n\r\n", b"\r\nHost: evil.example\r\n\r\n")
    refused(site.exchange(twice), 400, 421)
    whole = site.request("http://evil.example/api/runs", host="evil.example")
    refused(site.exchange(whole), 400, 404, 421)


def test_requests_of_other_sites_are_refused_even_with_the_token(
    site: Site, paths: list[str]
) -> None:
    origins = ("null", "http://evil.example", f"http://127.0.0.1:{site.port + 1}", "http://[::1]")
    for path in [*public_paths(site), *paths]:
        for origin in (*origins, f"https://127.0.0.1:{site.port}", f"{site.address}x"):
            refused(site.get(path, origin=origin), 403)
        for relation in ("cross-site", "same-site"):
            refused(site.get(path, sec_fetch_site=relation), 403)
    own = {"origin": site.address.rstrip("/"), "sec_fetch_site": "same-origin"}
    assert site.get("/api/runs", **own).status == 200
    assert site.get("/", sec_fetch_site="none").status == 200
    followed = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    link = site.get("/", authorization=None, sec_fetch_dest="document", **followed)
    assert link.status == 200, "a link to the page without data, as a terminal in a browser has it"
    refused(site.get("/", sec_fetch_dest="iframe", **followed), 403)
    refused(site.get("/api/runs", sec_fetch_dest="document", **followed), 403)
    for method in ("OPTIONS", "POST"):
        asked = site.get("/api/runs", method, origin="http://evil.example")
        refused(asked, 403, 405)


def test_page_is_read_only(site: Site, paths: list[str]) -> None:
    methods = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "X")
    for path in [*public_paths(site), *paths]:
        for method in methods:
            refused(site.get(path, method), 405)
    body = site.request("/api/runs", "POST", content_length="100000000")
    refused(site.exchange(body), 405)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "path",
    [
        "/api/run/../../etc/passwd",
        "/api/../../../etc/passwd",
        "/../../../etc/passwd",
        "/api/run/KEY/../../../../etc/passwd",
        "/api/run/KEY/..",
        "/api/run/KEY/.",
        "/api/run/KEY/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/api/run/%2e%2e/%2e%2e",
        "/api/run/..%2f..%2fetc/passwd",
        "/api/run/KEY/..%5c..%5cetc",
        "/api/run/%252e%252e/RUN",
        "/api/run//RUN",
        "/api/run/KEY/",
        "/api/run/KEY",
        "/api/run//etc/passwd",
        "/api/run/KEY/RUN%00",
        "/api/run/KEY%00/RUN",
        "/api/run/KEY/RUN%0d%0aX-Evil:%201",
        "/api/run/KEY/%ff%fe",
        "/api/run/KEY/RUN/",
        "/api/run/other/RUN",
        "/api/run/KEY/20200101-000000-000000",
        "/api/run/KEY/%2A",
        "/api/run/KEY/%",
        "/api/iteration/KEY/RUN/../1",
        "/api/iteration/KEY/RUN/0",
        "/api/iteration/KEY/RUN/2",
        "/api/iteration/KEY/RUN/-1",
        "/api/iteration/KEY/RUN/1e9",
        "/api/iteration/KEY/RUN/%D9%A1",
        "/api/iteration/KEY/RUN/99999999999999999999999999999",
        "/api/iteration/KEY/RUN/" + "9" * 5000,
        "/api/report/KEY/..",
        "/api/live/run/KEY/..",
        "/api/live/run/KEY/20200101-000000-000000",
        "/static/../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/%2e%2e/pyproject.toml",
        "/static/..%2f..%2fserver.py",
        "/static//etc/passwd",
        "/static/",
        "/static",
        "/api/run/KEY/" + "a" * 20_000,
        "/api/" + "../" * 5_000 + "etc/passwd",
        "/" + "a" * 60_000,
        "//evil.example/",
        "/api",
        "/.git/config",
        "/api/runs/",
        "/docs",
        "/openapi.json",
    ],
    ids=lambda path: path[:50],
)
def test_path_that_is_none_of_rooda_is_not_found(site: Site, path: str) -> None:
    key, run = site.runs()[0].split("/")
    path = path.replace("KEY", key).replace("RUN", run)
    answer = site.get(path)
    assert answer.status in {400, 404, 414}, answer
    assert "x-evil" not in answer.headers
    assert len(answer.body) < 500
    for leak in ("root:", "Traceback", "/etc/", "site-packages"):
        assert leak not in answer.text
    if answer.status == 404:
        assert len(answer.text.strip().splitlines()) == 1, "one sentence"


def test_broken_requests_are_answered_or_closed_and_the_server_goes_on(site: Site) -> None:
    good = site.request("/api/runs")
    # Its head is complete and has the token, so an answer that comes before the end is right.
    both = b"\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0"
    unfinished = good.replace(b"\r\n\r\n", both)
    for request in (
        b"\r\n\r\n\r\n",
        b"\x00" * 1000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,  # the start of TLS
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: " + site.host.encode() + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        good.replace(b"\r\n\r\n", b"\r\nX: " + b"a" * 100_000 + b"\r\n\r\n"),
        good.replace(b"\r\n\r\n", b"\r\n" + b"X: 1\r\n" * 20_000 + b"\r\n"),
        good.replace(b"GET", b"G" * 200_000),
        unfinished,
        good.replace(b"\r\n\r\n", b"\r\nContent-Length: -1\r\n\r\n"),
        good.replace(b"\r\n\r\n", b"\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
    ):
        with site.connect() as connection:
            try:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                said = connection.recv(1000)
            except OSError:
                said = b""
        codes = rb"(?:200|4\d\d)" if request is unfinished else rb"4\d\d"
        assert not said or re.match(rb"HTTP/1\.1 " + codes + b" ", said), (request[-50:], said)
        assert site.get("/api/runs").status == 200
    assert "Traceback" not in site.errors.read_text()


def test_websockets_are_refused(site: Site, paths: list[str]) -> None:
    upgrade = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec_websocket_version": "13",
        "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    for path in ("/", "/api/live/runs", "/ws"):
        with site.connect() as connection:
            connection.sendall(site.request(path, **upgrade))
            said = connection.recv(100)
            assert said.startswith(b"HTTP/1.1 "), said
            assert not said.startswith(b"HTTP/1.1 101"), said
    refused(site.get(paths[-1], origin="http://evil.example", **upgrade), 403)


def test_server_listens_on_loopback_alone(site: Site) -> None:
    found = psutil.Process(site.process.pid).net_connections()
    listening = [one.laddr for one in found if one.status == psutil.CONN_LISTEN]
    assert [tuple(one) for one in listening] == [("127.0.0.1", site.port)]
    others = [
        one.address
        for addresses in psutil.net_if_addrs().values()
        for one in addresses
        if one.family in {socket.AF_INET, socket.AF_INET6} and one.address != "127.0.0.1"
    ]
    for address in (*others, "127.0.0.2"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family) as connection:
            connection.settimeout(5)
            assert connection.connect_ex((address.partition("%")[0], site.port)) != 0


@pytest.mark.long
def test_token_is_in_the_printed_line_alone_and_new_at_each_start(
    site: Site, work: GitWork
) -> None:
    assert len(site.token) >= 43, "32 random bytes"
    process = psutil.Process(site.process.pid)
    assert site.token not in " ".join(process.cmdline())
    assert site.token not in json.dumps(process.environ())
    site.get(f"/api/runs?token={site.token}")
    assert site.token not in site.errors.read_text()
    for folder in (work.path, work.home):
        found = subprocess.run(
            ["grep", "-rlF", "--", site.token, str(folder)], capture_output=True, check=False
        )
        assert found.stdout == b""
    with web(work) as other:
        assert other.token != site.token
        refused(other.get("/api/runs", authorization=f"Bearer {site.token}"), 401)
        said = "".join(other.printed)
        assert said.count(other.token) == 1
        assert other.stop(signal.SIGINT) == 0
    with web(work) as other:
        until(lambda: other.get("/api/runs").status == 200, "it answers")
        with other.connect() as idle, other.connect() as reader:
            reader.sendall(other.request("/api/live/runs"))
            assert reader.recv(10)
            assert idle.fileno() > 0
            assert other.stop(signal.SIGTERM) in {0, -signal.SIGTERM, 143}
