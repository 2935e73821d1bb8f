"""`rooda history --all`: the runs of all work trees of a user on this machine."""

import json
import shutil

import pytest

from support.children import Nursery
from support.recorded import SUCCESS, asked, refused
from support.workspace import PROCEDURE, Workspace

WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"


@pytest.mark.long
def test_runs_of_all_work_trees_are_listed_with_their_tree(
    workspace: Workspace, nursery: Nursery
) -> None:
    shop, gone = workspace.sibling("shop"), workspace.sibling("gone")
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(WAITS))
    nursery.pid("agent")
    assert shop.work(shop.agent(f"echo 'Wrote the basket.'; {SUCCESS}")).code == 0
    assert gone.work(gone.agent(SUCCESS)).code == 0
    shutil.rmtree(gone.path)
    elsewhere = workspace.sibling("elsewhere")
    found = asked(elsewhere.rooda, "history", "--all", "--json")
    assert [(one["tree"], one["status"]) for one in found] == [
        (str(workspace.path), "running"),  # those at work first
        (str(gone.path), "success"),  # its record stays for 90 days
        (str(shop.path), "success"),
    ]
    assert found[2]["headline"] == "Wrote the basket"
    assert found[2]["summary"]["successful_iterations"] == 1
    text = elsewhere.rooda("history", "--all").out.splitlines()
    assert text[0].split()[:3] == ["WORK", "TREE", "RUN"]
    trees = [str(one.path) for one in (workspace, gone, shop)]
    assert [line.split()[0] for line in text[1:]] == trees
    only = asked(elsewhere.rooda, "history", "--all", "--json", "--status", "success", "-n", "1")
    assert [one["tree"] for one in only] == [str(gone.path)]
    workspace.write("go", "")
    running.finish()
    # Without --all, a work tree lists its own runs, and their objects have no tree.
    [own] = asked(shop.rooda, "history", "--json")
    assert "tree" not in own


@pytest.mark.real
def test_a_work_tree_below_the_home_folder_is_shown_with_a_tilde(workspace: Workspace) -> None:
    path = workspace.home / "shop"
    path.mkdir()
    (path / "rooda-config.yml").write_text(PROCEDURE)
    shop = Workspace(path, workspace.home, workspace.env)
    assert shop.work(shop.agent(SUCCESS)).code == 0
    assert workspace.rooda("history", "--all").out.splitlines()[1].startswith("~/shop  ")


@pytest.mark.real
def test_a_record_that_can_not_be_read_is_named_and_the_others_are_shown(
    workspace: Workspace,
) -> None:
    shop = workspace.sibling("shop")
    for one in (workspace, shop):
        assert one.work(one.agent(SUCCESS)).code == 0
    shop.state.joinpath("rooda.db").write_bytes(b"no database" * 1000)
    done = workspace.rooda("history", "--all", "--json")
    assert done.code == 0
    assert f"Warning: the record of {shop.path} can't be read: " in done.err
    assert [one["tree"] for one in json.loads(done.out)] == [str(workspace.path)]


def test_a_machine_without_runs_says_how_to_start_one(workspace: Workspace) -> None:
    done = workspace.rooda("history", "--all")
    assert (done.code, done.out) == (0, "")
    assert "No run is recorded on this machine yet." in done.err
    assert json.loads(workspace.rooda("history", "--all", "--json").out) == []
    refused(
        workspace.rooda("history", "--all", "--since", "yesterday"), "'yesterday' is not a date"
    )
