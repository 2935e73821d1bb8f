"""Draw docs/images/run.svg from a real run in the demo's repository: part of `make docs`."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from html import escape, unescape
from pathlib import Path

from rooda.front.demo import demo_repository
from rooda.world.tools import Tools
from tools.examples import stable

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "run.svg"
COMMANDS = (("rooda", "tasks"), ("rooda", "show"))
_DETAILS = "Details"

# The first pattern that matches gives a line, or the part of it in the group, its color.
_STYLES = (
    (re.compile(r"^\$ .*"), "command"),
    (re.compile(r"^\[[\d:]+\]"), "time"),
    (re.compile(r"\(success\)|Completed: .*|(?<=  )success .*|(?<=\d   )completed"), "good"),
    (re.compile(r"\(failure.*\)|(?<=\d   )failed"), "bad"),
    (re.compile(r"^    \| .*"), "time"),
)
_CHARACTER, _LINE, _MARGIN, _BAR = 8.0, 20, 20, 36

_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img" aria-label="A run of rooda in a terminal">
<style>
  text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; \
fill: #24292f; white-space: pre; }}
  .window {{ fill: #f6f8fa; stroke: #d0d7de; }}
  .dot {{ fill: #d0d7de; }}
  .command {{ font-weight: bold; }}
  .time {{ fill: #57606a; }}
  .good {{ fill: #116329; font-weight: bold; }}
  .bad {{ fill: #a40e26; font-weight: bold; }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3; }}
    .window {{ fill: #161b22; stroke: #30363d; }}
    .dot {{ fill: #484f58; }}
    .time {{ fill: #8b949e; }}
    .good {{ fill: #56d364; }}
    .bad {{ fill: #ff7b72; }}
  }}
</style>
<rect class="window" x="0.5" y="0.5" width="{inner_width}" height="{inner_height}" rx="8"/>
<circle class="dot" cx="22" cy="19" r="6"/>
<circle class="dot" cx="42" cy="19" r="6"/>
<circle class="dot" cx="62" cy="19" r="6"/>
{lines}
</svg>
"""


def record() -> list[str]:
    """Run the commands in a fresh copy of the demo's repository; return what a terminal shows."""
    with tempfile.TemporaryDirectory(prefix="rooda-picture-") as name:
        folder = Path(name) / "greet"
        folder.mkdir()
        demo_repository.make(folder, Tools(folders=[folder]))
        return [line for command in COMMANDS for line in (*_shown(command, folder), "")][:-1]


def _shown(command: tuple[str, ...], folder: Path) -> list[str]:
    environ = demo_repository.environment(os.environ) | {"ROODA_CONFIG_HOME": str(folder / "none")}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    # Paths of this machine are of no use to a reader.
    printed = done.stdout.replace(sys.executable, "python").replace(str(folder), "~/greet")
    lines = printed.splitlines()
    # The details at the end would make the picture long.
    end = lines.index(_DETAILS) - 1 if _DETAILS in lines else len(lines)
    return [f"$ {' '.join(command)}", *lines[:end]]


def draw(lines: list[str]) -> str:
    """Return the picture of a terminal with these lines."""
    width = round(max(map(len, lines)) * _CHARACTER) + 2 * _MARGIN
    height = _BAR + len(lines) * _LINE + _MARGIN
    return _FRAME.format(
        width=width,
        height=height,
        inner_width=width - 1,
        inner_height=height - 1,
        lines="\n".join(_texts(lines)),
    )


def _texts(lines: list[str]) -> Iterable[str]:
    for number, line in enumerate(lines):
        y = _BAR + (number + 1) * _LINE - 6
        yield f'<text x="{_MARGIN}" y="{y}" xml:space="preserve">{_styled(line)}</text>'


def _styled(line: str) -> str:
    """Return the line as markup, with a span around each part that has a color."""
    parts = [
        (match.span(), style) for pattern, style in _STYLES for match in pattern.finditer(line)
    ]
    markup, end = "", 0
    for (start, stop), style in sorted(parts):
        if start < end:
            continue  # within the part before
        markup += escape(line[end:start])
        markup += f'<tspan class="{style}">{escape(line[start:stop])}</tspan>'
        end = stop
    return markup + escape(line[end:])


def shown_in(svg: str) -> list[str]:
    """Return the lines of a picture."""
    texts = re.findall(r"<text [^>]*>(.*)</text>", svg)
    return [unescape(re.sub(r"<[^>]*>", "", text)) for text in texts]


def is_fresh(svg: str, lines: list[str]) -> bool:
    """Return whether the picture shows these lines, apart from what differs from run to run."""
    return stable("\n".join(shown_in(svg))) == stable("\n".join(lines))


def main() -> None:
    """Write the picture, unless the present one differs in nothing but times."""
    lines = record()
    if PICTURE.exists() and is_fresh(PICTURE.read_text(encoding="utf-8"), lines):
        return
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
