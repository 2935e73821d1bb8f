"""No module reaches the tree of an agent by a path: only `rooda.world.files` does."""

import ast
from collections.abc import Iterator
from pathlib import Path

import rooda

SOURCE = Path(rooda.__file__).parent

# What opens, lists or changes files by their path.
CALLS = {
    *("open", "read_plain_file", "open_plain_file", "replace_file"),
    *(f"os.{name}" for name in ("open", "scandir", "listdir", "walk", "fwalk", "readlink")),
    *(f"os.{name}" for name in ("remove", "unlink", "rmdir", "mkdir", "makedirs", "symlink")),
    *(f"os.{name}" for name in ("link", "rename", "replace", "truncate", "chmod", "chown")),
    *(f"shutil.{name}" for name in ("rmtree", "move", "copy", "copyfile", "copytree", "copy2")),
}
METHODS = {
    *("read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "glob", "rglob"),
    *("unlink", "mkdir", "rmdir", "symlink_to", "hardlink_to", "touch", "chmod", "readlink"),
    "rename",
}
MODES = {"r", "rb", "w", "wb", "a", "ab", "x", "xb"}  # of `path.open(MODE)`; the door has none

# Packages and modules that do so, and what is at these paths.
ELSEWHERE = {
    "world/files/": "the door itself",
    "base/times.py": "the time zone of the system",
    # files of the user, before a run starts
    "plan/locate.py": "rooda's own presets",
    "plan/own_files.py": "rooda's own output streams",
    "plan/first_config.py": "a list of names for `rooda init`",
    "front/completion.py": "completion, crash reports, and arguments of the user",
    "front/crash.py": "completion, crash reports, and arguments of the user",
    "front/entry.py": "completion, crash reports, and arguments of the user",
    "front/options.py": "completion, crash reports, and arguments of the user",
    "front/program_options.py": "completion, crash reports, and arguments of the user",
    "front/cli/": "files that the user names for a command",
    "front/ralph/": "the folder that `ralph init` makes",
    "front/demo/": "a repository of its own",
    "front/doctor/": "folders of its own trials",
    "front/selftest/": "folders of its own trials",
    # rooda's own files
    "run/": "the record and the results of a run",
    "loop/history.py": "the file of the Python API's caller",
    "views/run_feed.py": "logs in the record",
    "loop/stages/checks.py": "the temporary copy",
    "loop/note_delivery.py": "notes in the record",
    "world/process/": "pipes, logs in the record, and files of the kernel",
    "plan/prompts/builtin.py": "rooda's own texts",
    "plan/prompts/parts.py": "a pipe that the user names, such as bash's `<(command)`",
    "record/": "the record",
    "views/report/": "the report, and rooda's own templates",
    "views/terminal/": "the log that the user names, and the terminal",
    "front/web/": "rooda's own page",
    "world/state/record_place.py": (
        "the state of a fleet, and what version 0.1 left, before an agent; rooda's note in a "
        "state folder"
    ),
    "world/git/pin.py": "folders to keep open",
    "world/state/home.py": "the list of work trees of version 0.1; the state folders",
    "world/state/lock.py": "the lock, and the kernel's list of locks",
    "world/state/lock_note.py": "the note of the lock",
    "world/state/folder.py": "the record",
    "world/state/user_notes.py": "notes in the record",
    # the sandbox
    "world/sandbox/home.py": "the private home folder, and toolchains of the user",
    "world/sandbox/private_git.py": "the folder around the agent's git folder, out of its reach",
    "world/sandbox/mounts.py": "the target of a link, for a message; the system's folders",
    "world/sandbox/tree_check.py": "a folder of the record",
    "world/tools.py": "/dev/null",
    # the tree, without a look at the contents
    "world/git/clean_copy.py": "temporary copies",
    "world/git/work_tree.py": "kinds and times, and whether `.git` names a repository",
    "world/git/git_files.py": "kinds of files, before git reads them",
    "world/git/snapshots/": "the private store, and copies of ignore rules",
    "fleet/": "folders of the fleet, and the slots in them",
}


def paths_in(module: Path) -> Iterator[str]:
    """Yield the calls of a module that reach a file by its path."""
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Call) or any(one.arg == "dir_fd" for one in node.keywords):
            continue
        name = ast.unparse(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_opened = method == "open" and any(
            ast.unparse(one).strip("'") in MODES for one in node.args
        )
        if name in CALLS or method in METHODS or is_opened:
            yield f"{name} in line {node.lineno}"


def test_modules_that_open_files_by_path_are_known_and_no_row_is_stale() -> None:
    found = {str(one.relative_to(SOURCE)): [*paths_in(one)] for one in SOURCE.rglob("*.py")}
    found = {name: calls for name, calls in found.items() if calls}
    unknown = {
        name: calls for name, calls in found.items() if not any(map(name.startswith, ELSEWHERE))
    }
    assert not unknown, (
        "Files of a work tree are opened through rooda.world.files (Beneath, or read_named for "
        "files that the user names). A module that opens other files has a row in ELSEWHERE."
    )
    stale = [row for row in ELSEWHERE if not any(name.startswith(row) for name in found)]
    assert not stale
