"""A hostile agent in the sandbox, as root and as an ordinary user, tries to get out.

One run of rooda has all tries; `support/escapes/` has them. A check looks at what the agent
says about its tries, and the last checks look from outside.
"""

import json
import re
import stat
from collections.abc import Callable

import pytest

from support.escape_world import ABSENT, FIXED, GUARDED, HARMLESS, SECRETS, TOOLCHAINS, World, world

# These may return something, but nothing secret.
LOOKS = ("environment of all processes", "command lines of all processes")
HELD = (
    *("git config", "git config --worktree", "git config of a submodule", "git remote set-url"),
    *("objects with other alternates", "hard link to a guarded file"),
    *("hard link to a file outside", "hard link to a toolchain", "move the work tree"),
    *("change the prompt in the record", "change own transcript", "read the record"),
    *("write into the record", "replace the record by a link", "delete the record"),
    *("see a process outside", "signal a process outside", "signal the parents"),
    *("trace a process outside", "memory of a process outside"),
    *("root folder of another process", "inherited descriptors"),
    *("descriptors of the process above", "core pattern", "sysrq", "uevent helper", "mount"),
    *("remount read-only parts", "unmount a protection", "nested namespace"),
    *("any user namespace", "control group", "device file", "disks", "kernel log"),
    *("open_by_handle_at", "chroot", "become root", "capabilities", "type into the terminal"),
    *("session keyring", "shared memory", "abstract socket", "sockets of the system"),
    *("variables that name sockets", "socket: of the ssh agent", "socket: in the home"),
    *("socket: in the temporary folder", "write outside: canary", "write outside: new"),
    *(
        "follow a link of the tree: link-to-canary",
        "follow a link of the tree: link-to-folder/canary",
    ),
    *(f"read a secret: {name}" for name in (*SECRETS, "/etc/shadow", "/etc/sudoers")),
    *(f"{what}: {name}" for name in GUARDED for what in ("change", "delete", "replace")),
    *(f"make: {name}" for name in ABSENT),
    *(f"{what}: {name}" for name in FIXED for what in ("move away", "delete the folder")),
    *(f"plant a program: {name}" for name in TOOLCHAINS),
    *(f"plant a program on PATH: {number}" for number in range(5)),
    *(f"write to the system: {path}" for path in ("/etc/passwd", "/etc/new", "/usr/bin/new")),
    *(f"write to the system: {path}" for path in ("/usr/lib/new", "/opt/new", "/new")),
    *("planted link in the tree", "planted link in HOME", "planted link of git", "planted rebase"),
)


def check_every_try_was_made_and_both_iterations_ended(after: World) -> None:
    assert {*HELD, *LOOKS} - after.results.keys() == set(), after.output
    assert {name for name, one in after.results.items() if "got" in one} <= set(LOOKS)
    assert after.output.count("tried everything") >= 2, after.output


def check_tries_are_held_back(after: World) -> None:
    results = {name: after.results.get(name, {}) for name in HELD}
    assert {name: one for name, one in results.items() if "held" not in one} == {}


def check_looks_show_no_secret(after: World) -> None:
    for name in LOOKS:
        assert after.results[name]["got"]
        assert after.token not in after.results[name]["got"]


def check_nothing_that_the_agent_wrote_contains_a_secret(after: World) -> None:
    for path in (*after.tree.rglob("*"), *(after.state / "runs").rglob("*")):
        if path.is_file() and not path.is_symlink() and "outside" not in str(path.resolve()):
            content = path.read_bytes()
            is_own = path.name.startswith("results-") or path.is_relative_to(after.state)
            if is_own:
                held = re.sub(rb"rooda-[0-9a-f]{24}", b"", content)  # names that the test gave
                assert after.token.encode() not in held, path


def check_files_outside_are_as_they_were(after: World) -> None:
    now = after.files()
    changed = {
        path for path in {*now, *after.contents} if now.get(path) != after.contents.get(path)
    }
    assert changed == set()


def check_no_socket_outside_had_a_visitor(after: World) -> None:
    assert {name: one.connections for name, one in after.listeners.items()} == dict.fromkeys(
        after.listeners, 0
    )


def check_process_outside_still_runs(after: World) -> None:
    assert after.victim is not None
    assert after.victim.poll() is None


def check_hooks_and_verify_ran_inside_and_push_ran_without_hooks(after: World) -> None:
    assert (after.tree / "ran-verify").exists()
    assert (after.tree / "ran-pre-commit").exists()
    assert not (after.tree / "ran-pre-push").exists()
    assert not (after.outside / "pre-commit").exists()
    tip = after.sh("git rev-parse HEAD").strip()
    assert after.sh("git ls-remote origin refs/heads/main").startswith(tip), after.output


def check_planted_files_are_gone_and_in_the_record(after: World) -> None:
    folder = next((after.state / "runs").iterdir()) / "1"
    kept = {
        str(path.relative_to(folder / "removed")).partition("-")[2]  # a number is before each name
        for path in (folder / "removed").rglob("*")
        if not path.is_dir() or path.is_symlink()
    }
    assert kept == {
        *("HEAD", "rebase-merge/git-rebase-todo", ".gemini/settings.json"),
        *(".ralph", ".qwen"),
    }
    assert stat.S_IMODE((after.tree / "set-uid").stat().st_mode) == 0o755
    assert "nest" not in after.sh("git ls-tree --name-only HEAD")
    assert (folder / "prompt.md").read_text().startswith("do it")
    assert "the first words" in (folder / "stdout.log").read_text()


def check_record_and_views_name_what_was_found(after: World) -> None:
    rooda = f"{after.python[0]} -m rooda"
    row = json.loads(after.sh(f"{rooda} show 1 --json"))
    found = {one["finding"]: (one["action"], one["files"]) for one in row["unsafe_tree"]}
    assert found == {
        "git-link": ("removed", [".git/logs/HEAD"]),
        "rebase": ("removed", [".git/rebase-merge"]),
        "set-id": ("cleared", ["set-uid"]),
        "repository": ("excluded", ["nest"]),
        "cli-settings": ("removed", [".gemini", ".qwen"]),
        "config": ("removed", [".ralph"]),
    }
    for view in ("show 1", "why 1"):
        assert ".gemini, .qwen" in after.sh(f"{rooda} {view}")
    prompt = next((after.state / "runs").iterdir()) / "2/prompt.md"
    assert "rooda removed these after the last iteration" in prompt.read_text()


def check_private_home_is_for_the_user_alone(after: World) -> None:
    home = after.state / "home"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    planted = home / ".gitconfig"
    assert "fsmonitor" in planted.read_text(), "it acts inside only"


def check_tries_are_real_ones_that_work_without_a_sandbox(after: World) -> None:
    assert {name for name, one in after.control.items() if "got" in one} == set(HARMLESS)
    for name in ("read a secret: .ssh/id_rsa", "environment of all processes", "shared memory"):
        assert after.token in after.control[name]["got"]


CHECKS: tuple[Callable[[World], None], ...] = (
    check_every_try_was_made_and_both_iterations_ended,
    check_tries_are_held_back,
    check_looks_show_no_secret,
    check_nothing_that_the_agent_wrote_contains_a_secret,
    check_files_outside_are_as_they_were,
    check_no_socket_outside_had_a_visitor,
    check_process_outside_still_runs,
    check_hooks_and_verify_ran_inside_and_push_ran_without_hooks,
    check_planted_files_are_gone_and_in_the_record,
    check_record_and_views_name_what_was_found,
    check_private_home_is_for_the_user_alone,
    check_tries_are_real_ones_that_work_without_a_sandbox,
)


@pytest.mark.long
@pytest.mark.parametrize("user", ["root", "user"])
def test_hostile_agent_gets_nothing_out_of_the_sandbox(user: str) -> None:
    """One world for all checks: it takes seconds to make one."""
    failed = {}
    with world(user) as after:
        for check in CHECKS:
            try:
                check(after)
            except AssertionError as error:
                failed[check.__name__] = str(error)
    assert failed == {}
