"""Which branches of the user move, and which commits of the agent get names of their own."""

from rooda.world.sandbox.git_moves import GitState, Move, Moves, Way, moves, moves_beside_head
from rooda.world.sandbox.git_moves import moves_that_keep as at_the_end

MAIN, SIDE, TAG = "refs/heads/main", "refs/heads/side", "refs/tags/v1"
A, B, C = "a" * 40, "b" * 40, "c" * 40
BASE = GitState(MAIN, A, {MAIN: A, SIDE: A})


def on(head: str, commit: str, **more: str) -> GitState:
    """Return a state with this branch checked out; `side` and `v1` are other refs."""
    refs = {MAIN: A, SIDE: more.pop("side", A)} | ({TAG: more.pop("v1")} if "v1" in more else {})
    return GitState(head, commit, refs | ({head: commit} if head else {}))


def test_branch_moves_with_the_index_if_the_user_has_not_moved_it() -> None:
    assert moves(BASE, on(MAIN, B), BASE) == Moves(Move(MAIN, A, B), takes_index=True)
    assert moves(BASE, BASE, BASE) == Moves(takes_index=True), "files may be staged"


def test_head_follows_the_agent_to_another_branch_and_off_all_branches() -> None:
    new = "refs/heads/new"
    assert moves(BASE, on(new, B), BASE) == Moves(Move(new, "", B), head=new, takes_index=True)
    detached = moves(BASE, on("", B), BASE)
    assert (detached.detached, detached.head, detached.checked_out) == (B, None, None)


def test_commits_get_a_name_of_their_own_if_the_user_has_committed_meanwhile() -> None:
    found = moves(BASE, on(MAIN, B), on(MAIN, C))
    assert found == Moves(kept=(Move(f"refs/heads/rooda-kept/main-{B[:10]}", "", B),))
    assert moves(BASE, BASE, on(MAIN, C)) == Moves(), "the agent has committed nothing"


def test_commits_get_a_name_of_their_own_if_the_user_has_switched_branches_meanwhile() -> None:
    found = moves(BASE, on(MAIN, B), on(SIDE, A))
    assert found == Moves(kept=(Move(f"refs/heads/rooda-kept/main-{B[:10]}", "", B),))


def test_other_branches_only_move_forward_and_tags_stay() -> None:
    found = moves(BASE, on(MAIN, A, side=B, v1=B), BASE)
    assert found.others == (Move(SIDE, A, B, Way.FORWARD), Move(TAG, "", B, Way.FORWARD))
    found = moves(on(MAIN, A, v1=A), on(MAIN, A, v1=B), on(MAIN, A, v1=A))
    assert [one.ref for one in found.kept] == [f"refs/tags/rooda-kept/v1-{B[:10]}"]


def test_branch_that_the_agent_deletes_stays() -> None:
    assert moves(BASE, GitState(MAIN, A, {MAIN: A}), BASE) == Moves(takes_index=True)


def test_branch_of_another_work_tree_stays() -> None:
    user = GitState(MAIN, A, {MAIN: A, SIDE: A}, elsewhere=frozenset({SIDE}))
    found = moves(BASE, on(SIDE, B), user)
    assert (found.checked_out, found.head) == (None, None)
    assert [one.new for one in found.kept] == [B]


def test_name_that_git_would_read_as_another_thing_is_not_taken_over() -> None:
    user = GitState(MAIN, A, {MAIN: A}, others={"refs/remotes/origin/main": A})
    names = [
        *("refs/tags/main", "refs/heads/origin/main", "refs/heads/origin", "refs/tags/HEAD"),
        *("refs/heads/refs/heads/main", f"refs/heads/{A}", "refs/tags/-x"),
    ]
    agent = GitState(MAIN, A, {MAIN: A, **dict.fromkeys(names, B)})
    found = moves(user, agent, user)
    assert found.others == ()
    assert {one.new for one in found.kept} == {B}
    assert len(found.kept) == len(names)


def test_unfinished_rebase_moves_nothing_and_is_kept_at_the_end() -> None:
    agent = on("", B)
    assert moves_beside_head(BASE, agent, BASE) == Moves()
    kept = at_the_end(BASE, agent, BASE).kept
    assert kept == (Move(f"refs/heads/rooda-kept/HEAD-{B[:10]}", "", B),)


def test_only_new_entries_of_the_stash_are_taken_over() -> None:
    old, new = (A, "mine"), (B, "of the agent")
    base = GitState(MAIN, A, {MAIN: A}, stash=(old,))
    agent = GitState(MAIN, A, {MAIN: A}, stash=(new, old))
    assert moves(base, agent, base).stash == (new,)
