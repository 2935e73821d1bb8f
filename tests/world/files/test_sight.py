"""Paths through a folder whose links an agent controls."""

from pathlib import Path

import pytest

from rooda.world.files.sight import OutOfSightError, Sight, leads_out, read_named
from support.tables import each_row

# The path in the tree, links as (name, target), and whether the path leads out of the tree.
WAYS = [
    ("a.md", [], False),
    ("missing.md", [], False),
    ("a.md", [("a.md", "b.md")], False),
    ("a.md", [("a.md", "{out}/key")], True),
    ("a.md", [("a.md", "../out/key")], True),
    ("a.md", [("a.md", "b.md"), ("b.md", "../out/key")], True),
    ("d/a.md", [("d", "../out")], True),
    ("d/a.md", [("d", "e"), ("e/a.md", "../a.md")], False),
    ("e/../../out/key", [], True),
    ("a.md", [("a.md", "{shown}/key")], False),
    ("a.md", [("a.md", "{shown}-not/key")], True),
    ("a.md", [("a.md", "a.md")], False),
]


@each_row("path, links, is_out", WAYS)
def test_path_leads_out_if_any_link_of_the_tree_does(
    tmp_path: Path, path: str, links: list[tuple[str, str]], *, is_out: bool
) -> None:
    top = tmp_path.resolve()
    tree, out, shown = top / "tree", top / "out", top / "shown"
    for folder in (tree / "e", out, shown, top / "shown-not"):
        folder.mkdir(parents=True)
    for name in ("out/key", "shown/key", "tree/a.md", "tree/b.md"):
        (top / name).touch()
    for name, target in links:
        (tree / name).unlink(missing_ok=True)
        (tree / name).symlink_to(target.format(out=out, shown=shown))
    assert (leads_out(tree / path, Sight((tree,), (shown,))) is not None) is is_out


def test_links_outside_of_the_tree_are_the_users(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    sight = Sight((top / "tree",))
    (top / "tree").mkdir()
    (top / "out").mkdir()
    (top / "out/prompt.md").symlink_to("../elsewhere/prompt.md")
    assert leads_out(top / "out/prompt.md", sight) is None
    (top / "out/in.md").symlink_to("../tree/in.md")
    assert leads_out(top / "out/in.md", sight) is None
    (top / "tree/in.md").symlink_to("../key")
    assert leads_out(top / "out/in.md", sight) == top / "key"
    (top / "link").symlink_to(top / "tree")
    assert leads_out(top / "link/in.md", sight) == top / "key"


def test_file_in_sight_is_read_and_one_out_of_sight_is_refused(tmp_path: Path) -> None:
    tree = tmp_path.resolve() / "tree"
    (tree / "own").mkdir(parents=True)
    (tmp_path / "key").write_text("secret")
    (tree / "own/record").write_text("record")
    (tree / "text").write_text("0123456789")
    (tree / "in").symlink_to("text")
    (tree / "out").symlink_to("../key")
    sight = Sight((tree,), hidden=(tree / "own",))
    assert read_named(tree / "in", 5, sight) == b"01234"
    assert read_named(tmp_path / "key", None, sight) == b"secret"
    assert read_named(tree / "out", None, None) == b"secret"
    for path in ("out", "own/record"):
        with pytest.raises(OutOfSightError):
            read_named(tree / path, None, sight)
    with pytest.raises(FileNotFoundError):
        read_named(tree / "missing", None, sight)


def test_link_that_turns_in_a_circle_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels"):
        read_named(tmp_path / "a", None, Sight((tmp_path.resolve(),)))
