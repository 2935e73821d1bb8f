"""Paths through a folder whose links an agent controls."""

from pathlib import Path

from rooda.workspace.real_folders import leads_out
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
    ("d/../../out/key", [], True),
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
    for folder in (tree / "e", out, shown):
        folder.mkdir(parents=True)
    for name, target in links:
        (tree / name).symlink_to(target.format(out=out, shown=shown))
    assert (leads_out(tree / path, [tree], [shown]) is not None) is is_out


def test_links_outside_of_the_tree_are_the_users(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "tree").mkdir()
    (top / "out").mkdir()
    (top / "out/prompt.md").symlink_to("../elsewhere/prompt.md")
    assert leads_out(top / "out/prompt.md", [top / "tree"], []) is None
    (top / "out/in.md").symlink_to("../tree/in.md")
    assert leads_out(top / "out/in.md", [top / "tree"], []) is None
    (top / "tree/in.md").symlink_to("../key")
    assert leads_out(top / "out/in.md", [top / "tree"], []) == top / "key"
    (top / "link").symlink_to(top / "tree")
    assert leads_out(top / "link/in.md", [top / "tree"], []) == top / "key"
