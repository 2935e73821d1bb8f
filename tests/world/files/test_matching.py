"""Patterns find files without following a link, in bounded time."""

from pathlib import Path

from rooda.world.files.matching import matching


def test_search_stops_after_the_maximum_number_of_names(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "a.xml").touch()
    assert len(matching(["**/*.xml"], tmp_path)) == 20
    assert len(matching(["**/*.xml"], tmp_path, most=25)) < 10


def test_links_to_folders_are_not_entered(tmp_path: Path) -> None:
    """Three links to their own folder are as many paths as there are words of three letters."""
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in/deep/a.json").write_text("{}")
    for name in ("x", "y", "z"):
        (tmp_path / name).symlink_to(".")
    (tmp_path / "out").symlink_to("/")
    assert matching(["**/*.json"], tmp_path) == ["in/deep/a.json"]
