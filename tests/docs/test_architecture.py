"""The pages for developers name files that exist, and the picture has every room and folder."""

import re
from pathlib import Path

from rooda.loop.iteration import STAGES
from support.tables import each_row

ROOT = Path(__file__).parents[2]
ROOMS = ROOT / "src/rooda"
_NAMES = re.compile(r"`(\w+/(?:\w+/)*(?:\w+\.(?:py|yml|md))?)`")


def folders_in(folder: Path) -> set[str]:
    """Folders with files; what a moved package has left behind is compiled files alone."""
    found = (one for one in folder.rglob("*") if one.is_file() and one.parent.name != "__pycache__")
    return {one.relative_to(folder).parts[0] for one in found if one.parent != folder}


@each_row("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/dev/parts.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    names = _NAMES.findall((ROOT / page).read_text())
    assert names
    missing = [name for name in names if not any((top / name).exists() for top in (ROOMS, ROOT))]
    assert [name for name in missing if not name.endswith("/NAME.py")] == []


def test_picture_has_every_room_and_its_folders() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    picture = text.partition("```text\n")[2].partition("```")[0]
    shown: dict[str, set[str]] = {}
    for line in picture.splitlines()[1:]:
        if room := re.match(r"  (\w+)/", line):
            shown[room[1]] = set()
        shown[[*shown][-1]] |= set(re.findall(r"(\w+)/", line[12:]))
    assert shown == {room: folders_in(ROOMS / room) for room in folders_in(ROOMS)}


def test_table_of_an_iteration_has_every_stage_and_no_other() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("| stage |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in text.splitlines()[2:]]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == {stage.__name__ for stage in STAGES}
