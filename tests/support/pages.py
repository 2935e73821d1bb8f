"""What is in a page: its elements and texts as a browser would see them, and a real browser."""

import json
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_HANDLERS = "on"


class Page(HTMLParser):
    """Counts the elements of a page, and collects its attributes and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.policy = ""
        self.text = ""
        self.raw: dict[str, str] = {}
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self._inside = tag
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        found = dict(attrs)
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"] or ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.raw[self._inside] = self.raw.get(self._inside, "") + data
            self._inside = ""
        else:
            self.text += data

    @property
    def handlers(self) -> list[str]:
        """The attributes that would run a script."""
        return [name for _, name, _ in self.attributes if name.startswith(_HANDLERS)]

    @property
    def links(self) -> set[str]:
        """Where the links and the references of the page lead."""
        names = ("href", "src", "action", "data", "xlink:href")
        return {value for _, name, value in self.attributes if name in names}


def browser() -> str | None:
    """Return the browser of this machine."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def opened(page: Path, widths: tuple[int, ...], folder: Path) -> tuple[list[dict[str, Any]], str]:
    """Open a page in the browser at several widths.

    Return what is found at each width, and what the browser's console says.
    """
    frames = "".join(
        f'<iframe src="{page.as_uri()}" style="width:{width}px;height:900px"></iframe>'
        for width in widths
    )
    wrapper = folder / "wrapper.html"
    wrapper.write_text(f"<!doctype html><body>{frames}<pre id=found></pre>{_LOOK}")
    done = subprocess.run(
        [
            browser() or "",
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"),
            *("--disable-dev-shm-usage", "--enable-logging=stderr", "--dump-dom"),
            *("--virtual-time-budget=20000", f"--user-data-dir={folder}/profile"),
            wrapper.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    start, _, rest = done.stdout.partition('<pre id="found">')
    assert rest, done.stderr + start[:500]
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    found: list[dict[str, Any]] = json.loads(Page(rest.partition("</pre>")[0]).text)
    return found, console


_LOOK = """<script>
addEventListener('load', function () {
  var found = Array.from(document.querySelectorAll('iframe')).map(function (frame) {
    var doc = frame.contentDocument, root = doc.documentElement;
    doc.querySelectorAll('details').forEach(function (one) { one.open = true; });
    var shown = function (one) { return one.getClientRects().length > 0; };
    var wide = Array.from(doc.querySelectorAll('body *')).filter(function (one) {
      return shown(one) && !one.closest('pre,svg,.cmd,.vh,.u,.skip') &&
        one.getBoundingClientRect().right > root.clientWidth + 1;
    });
    return {
      title: doc.title, owned: root.dataset.owned || window.owned || null,
      width: root.clientWidth, needed: root.scrollWidth,
      wide: wide.slice(0, 5).map(function (one) { return one.outerHTML.slice(0, 200); }),
      images: doc.images.length, scripts: doc.scripts.length, frames: doc.querySelectorAll(
        'iframe,object,embed,form,base,link').length,
      works: root.classList.contains('on'),
      background: frame.contentWindow.getComputedStyle(doc.body).backgroundColor
    };
  });
  document.getElementById('found').textContent = JSON.stringify(found);
});
</script>"""
