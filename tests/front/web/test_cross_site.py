"""Web pages in the user's browser that try to read or use `rooda web`."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from support.browser import REBOUND, chromium, tab
from support.gitwork import GitWork
from support.webwork import Site, web, work_with_a_run

pytestmark = pytest.mark.real


SECRET = "words-that-only-the-owner-may-read"


class _Attacker(BaseHTTPRequestHandler):
    """A page of an attacker: it has no policy, and its script may do everything."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>attacker</title><body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def attacker() -> Iterator[int]:
    """Serve the attacker's page on another port; yield the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Attacker) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitWork]:
    with work_with_a_run(tmp_path_factory.mktemp("web"), SECRET) as found:
        yield found


# Each returns what the attacker's script learned. `token` is the real one: even if it leaked,
# a page of another origin can't use it.
FETCHES = """async ([base, path, token]) => {
  const ways = [
    {}, {mode: 'no-cors'}, {credentials: 'include'}, {method: 'POST', body: 'x'},
    {method: 'POST', mode: 'no-cors', body: 'x'}, {mode: 'no-cors', method: 'HEAD'},
    {headers: {Authorization: 'Bearer ' + token}},
  ];
  const found = [];
  for (const way of ways) {
    try {
      const answer = await fetch(base + path, way);
      found.push(answer.type + ':' + answer.status + ':' + await answer.text());
    } catch (error) { found.push('refused'); }
  }
  return found;
}"""
ELEMENTS = """async ([base, paths]) => {
  const load = (name, attributes) => new Promise(done => {
    const one = document.createElement(name);
    one.onload = () => done(name + ' loaded');
    one.onerror = () => done(name + ' refused');
    Object.assign(one, attributes);
    document.body.append(one);
  });
  const found = [];
  for (const path of paths) {
    found.push(await load('img', {src: base + path}));
    found.push(await load('script', {src: base + path}));
    found.push(await load('link', {rel: 'stylesheet', href: base + path}));
  }
  return found;
}"""
FRAME = """base => new Promise(done => {
  const one = document.createElement('iframe');
  one.onload = () => {
    let inside = 'closed';
    try { inside = one.contentDocument ? one.contentDocument.body.textContent : 'closed'; }
    catch (error) { inside = 'closed'; }
    done(inside);
  };
  one.src = base;
  document.body.append(one);
})"""
FORM = """([base, token]) => {
  const form = document.createElement('form');
  form.method = 'post';
  form.action = base + 'api/runs?token=' + token;
  document.body.append(form);
  form.submit();
}"""


def learned(page: Page, site: Site, work: GitWork) -> None:
    """Check that the attacker's page learns nothing and that nothing of it is accepted."""
    statuses: set[int] = set()
    page.on("response", lambda one: statuses.add(one.status) if _is_of(site, one.url) else None)
    loaded = site.get("/", authorization=None).text
    script = next(one for one in loaded.split('"') if one.endswith(".js"))
    place = site.runs()[0]
    for path in ("api/runs", f"api/live/run/{place}", script.lstrip("/"), ""):
        for answer in page.evaluate(FETCHES, [site.address, path, site.token]):
            assert answer in {"refused", "opaque:0:"}, (path, answer)
    found = page.evaluate(ELEMENTS, [site.address, ["api/runs", script.lstrip("/"), ""]])
    assert {one for one in found if "loaded" in one} == set()
    assert page.evaluate(FRAME, site.address) == "closed"
    for frame in page.frames[1:]:
        assert "rooda" not in frame.evaluate("document.documentElement.textContent")
    page.evaluate(FORM, [site.address, site.token])
    page.wait_for_url(f"{site.address}**")
    assert SECRET not in page.content()
    assert work.path.name not in page.content()
    assert statuses <= {403, 405}, statuses


def _is_of(site: Site, url: str) -> bool:
    return f":{site.port}/" in url


@pytest.mark.long
def test_page_on_another_port_or_name_reads_and_changes_nothing(
    browser: Browser, work: GitWork
) -> None:
    with web(work) as site, attacker() as port:
        for name in ("127.0.0.1", "localhost", REBOUND):
            with tab(browser, f"http://{name}:{port}/") as seen:
                learned(seen.page, site, work)


def test_name_that_was_led_to_this_machine_gets_no_page(browser: Browser, work: GitWork) -> None:
    with web(work) as site, tab(browser) as seen:
        answer = seen.page.goto(f"http://{REBOUND}:{site.port}/#{site.token}")
        assert answer is not None
        assert answer.status in {400, 421}
        told = seen.page.evaluate(
            "async token => { const a = await fetch('/api/runs', {headers: "
            "{Authorization: 'Bearer ' + token}}); return a.status + await a.text(); }",
            site.token,
        )
        assert told[:3] in {"400", "421"}
        assert work.path.name not in told


def test_page_that_opened_rooda_in_a_window_cannot_reach_into_it(
    browser: Browser, work: GitWork
) -> None:
    with web(work) as site, attacker() as port, tab(browser, f"http://127.0.0.1:{port}/") as seen:
        with seen.context.expect_page() as opened:
            seen.page.evaluate("url => { window.other = window.open(url); }", site.url)
        opened.value.wait_for_load_state()
        inside = (
            "() => { try { return other.document.body.textContent; }"
            " catch (error) { return 'closed'; } }"
        )
        assert seen.page.evaluate(inside) == "closed"
        assert opened.value.evaluate("window.opener") is None
