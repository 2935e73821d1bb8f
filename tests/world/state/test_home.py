"""Where rooda keeps what belongs to a work tree."""

from collections.abc import Mapping
from pathlib import Path

from rooda.world.state.home import state_folder_at, state_folder_name, state_home, tree_key
from support.tables import each_row


@each_row(
    "environ, wanted",
    [
        ({"ROODA_STATE_HOME": "/own", "XDG_STATE_HOME": "/xdg", "HOME": "/home/me"}, "/own"),
        ({"XDG_STATE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/rooda"),
        ({"XDG_STATE_HOME": "xdg", "HOME": "/home/me"}, "/home/me/.local/state/rooda"),
        ({"HOME": "/home/me"}, "/home/me/.local/state/rooda"),
    ],
)
def test_state_home_is_the_first_that_a_variable_names(
    environ: Mapping[str, str], wanted: str
) -> None:
    assert state_home(environ) == Path(wanted)


@each_row(
    "tree, name",
    [
        ("/home/me/project", "project"),
        ("/home/me/my project!", "my-project"),
        ("/home/me/.dot", "dot"),
        ("/home/me/ümlaut", "mlaut"),
        ("/", "tree"),
        ("/x/" + "a" * 200, "a" * 40),
    ],
)
def test_name_of_a_state_folder_is_readable_and_ends_with_the_key(tree: str, name: str) -> None:
    path = Path(tree)
    assert state_folder_name(path) == f"{name}-{tree_key(path)}"
    assert state_folder_at(Path("/state"), path) == Path("/state/trees", state_folder_name(path))


def test_two_trees_of_one_name_have_two_state_folders() -> None:
    assert state_folder_name(Path("/a/project")) != state_folder_name(Path("/b/project"))
