"""A real browser that opens pages as a user does: Chromium, driven by Playwright."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from support.pages import browser

SHOTS = "ROODA_TEST_SHOTS"
PATIENCE = 60  # seconds; a loaded machine is slow
WIDTHS = (390, 800, 1280)
# A name that leads to this machine: what an attacker gets by changing the address of a name.
REBOUND = "evil.example"
_FLAGS = (
    "--no-sandbox",  # root, as in a container, cannot use Chromium's sandbox
    "--disable-dev-shm-usage",
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield the browser of this machine; skip the tests where there is none.

    Playwright keeps an event loop in this thread until the end, so no test that uses asyncio may
    run meanwhile: use it for the tests of one module.
    """
    found = browser()
    if found is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=found, args=list(_FLAGS))
        yield started
        started.close()


@dataclass
class Tab:
    """A page of the browser, and what the browser said about it."""

    page: Page
    context: BrowserContext
    console: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def shows(self, text: str, selector: str = "body", timeout: float = PATIENCE) -> None:
        """Wait until an element has this text; it need not be in view."""
        try:
            self.page.wait_for_function(
                "([where, text]) => Array.from(document.querySelectorAll(where))"
                ".some(one => one.textContent.includes(text))",
                arg=[selector, text],
                timeout=timeout * 1000,
            )
        except Exception as error:
            shown = self.page.inner_text("body")[:3000]
            raise AssertionError(f"no {text!r} in {selector}: {shown}") from error

    def go(self, target: str, text: str) -> None:
        """Follow the link to a place within the page; wait for a text there."""
        self.page.locator(f'a[href="{target}"]').first.click()
        self.page.wait_for_function("place => location.hash === place", arg=target)
        self.shows(text)

    def look(self) -> dict[str, Any]:
        """Return what is in the page now, with everything open that can be opened."""
        found: dict[str, Any] = self.page.evaluate(_LOOK)
        return found

    def check_layout(self, name: str) -> None:
        """Check that nothing is wider than the window, at all widths, light and dark.

        If `ROODA_TEST_SHOTS` names a folder, a screenshot of each is written there.
        """
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 900})
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                found = self.look()
                if shots := os.environ.get(SHOTS):
                    self.page.screenshot(path=Path(shots) / f"{name}-{width}-{scheme}.png")
                where = f"{name} at {width}, {scheme}: {found['wide']}"
                assert found["needed"] <= found["width"], where
                assert found["wide"] == [], where
                dark = found["brightness"] < 128
                assert dark == (scheme == "dark"), f"{name}: {found['background']}"
        self.page.set_viewport_size({"width": 1280, "height": 900})
        self.page.emulate_media(color_scheme="light")


@contextmanager
def tab(browser: Browser, address: str = "about:blank") -> Iterator[Tab]:
    """Yield a page without a past: no storage, no cookies, no cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    found = Tab(page, context)
    page.on("console", lambda said: found.console.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: found.console.append(f"error: {error}"))
    page.on(
        "response",
        lambda answer: (
            found.failed.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None
        ),
    )
    page.goto(address)
    try:
        yield found
    finally:
        context.close()


_LOOK = """() => {
  const root = document.documentElement;
  document.querySelectorAll('details').forEach(one => { one.open = true; });
  const sticksOut = one => one.getBoundingClientRect().right > root.clientWidth + 1;
  const isCut = one => {  // by an element that is narrow enough itself
    for (let above = one.parentElement; above !== document.body; above = above.parentElement)
      if (getComputedStyle(above).overflowX !== 'visible' && !sticksOut(above)) return true;
    return false;
  };
  const wide = Array.from(document.querySelectorAll('body *')).filter(one =>
    one.getClientRects().length > 0 && !one.closest('svg') && sticksOut(one) && !isCut(one));
  const colours = [document.body, root].map(one => getComputedStyle(one).backgroundColor);
  const background = colours.find(one => one !== 'rgba(0, 0, 0, 0)') || 'rgb(255, 255, 255)';
  const parts = background.match(/[0-9.]+/g).map(Number);
  return {
    title: document.title, owned: root.dataset.owned || window.owned || null,
    width: root.clientWidth, needed: root.scrollWidth,
    wide: wide.slice(0, 5).map(one => one.outerHTML.slice(0, 200)),
    images: document.images.length, scripts: document.scripts.length,
    foreign: document.querySelectorAll('iframe,object,embed,form,base').length,
    handlers: Array.from(document.querySelectorAll('*')).filter(one =>
      one.getAttributeNames().some(name => name.startsWith('on') || name === 'srcdoc')).length,
    links: Array.from(document.querySelectorAll('[href],[src]'), one =>
      one.getAttribute('href') || one.getAttribute('src')),
    background: background, brightness: (parts[0] + parts[1] + parts[2]) / 3
  };
}"""
