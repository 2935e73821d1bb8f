"""No module reaches the tree of an agent by a path: only `rooda.files` does."""

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
    "files/": "the door itself",
    "text/plain_files.py": "what the door opens files with",
    "text/times.py": "the time zone of the system",
    # files of the user, before a run starts
    "config/locate.py": "rooda's own presets",
    "config/own_files.py": "rooda's own output streams",
    "config/project_tests.py": "a list of names for `rooda init`",
    "console/": "completion, crash reports, and arguments of the user",
    "cli/": "files that the user names for a command",
    "ralph/": "the folder that `ralph init` makes",
    "demo/": "a repository of its own",
    "doctor/": "folders of its own trials",
    "selftest/": "folders of its own trials",
    # rooda's own files
    "engine/": "the record and the results of a run",
    "iteration/iteration_history.py": "the file of the Python API's caller",
    "live/": "logs in the record",
    "loop/clean_check.py": "the temporary copy",
    "loop/note_delivery.py": "notes in the record",
    "process/": "pipes, logs in the record, and files of the kernel",
    "prompts/builtin.py": "rooda's own texts",
    "prompts/parts.py": "a pipe that the user names, such as bash's `<(command)`",
    "record/": "the record",
    "report/": "the report, and rooda's own templates",
    "views/": "the log that the user names, and the terminal",
    "web/": "rooda's own page",
    "workspace/fleet_state.py": "the state of a fleet, and what version 0.1 left, before an agent",
    "workspace/file_systems.py": "the kernel's list of mounts",
    "workspace/held_folders.py": "folders to keep open",
    "workspace/old_record.py": "the list of work trees of version 0.1",
    "workspace/state_home.py": "the state folders",
    "workspace/tree_identity.py": "rooda's note in a state folder",
    "workspace/lock.py": "the lock, and the kernel's list of locks",
    "workspace/lock_note.py": "the note of the lock",
    "workspace/state_folder.py": "the record",
    "workspace/user_notes.py": "notes in the record",
    # the sandbox
    "sandbox/home.py": "the private home folder, and toolchains of the user",
    "sandbox/private_git.py": "the folder around the agent's git folder, out of its reach",
    "sandbox/mounts.py": "the target of a link, for a message",
    "sandbox/system_mounts.py": "the system's folders",
    "sandbox/tree_check.py": "a folder of the record",
    "workspace/tools.py": "/dev/null",
    "workspace/interpreter.py": "the first line of a program that no agent could have made",
    # the tree, without a look at the contents
    "workspace/clean_copy.py": "temporary copies",
    "workspace/put_back.py": "the top of the tree, and then folder by folder",
    "workspace/work_tree.py": "kinds and times, and whether `.git` names a repository",
    "workspace/git_files.py": "kinds of files, before git reads them",
    "workspace/snapshots/": "the private store, and copies of ignore rules",
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
        "Files of a work tree are opened through rooda.files (Beneath, or read_named for files "
        "that the user names). A module that opens other files has a row in ELSEWHERE."
    )
    stale = [row for row in ELSEWHERE if not any(name.startswith(row) for name in found)]
    assert not stale
