"""What rooda does first: leave the work tree out of the import path, and end quietly on Ctrl+C.

An agent writes to the work tree, and `PYTHONPATH=:` and `PYTHONPATH=src` put folders of it before
Python's own modules. This module imports only what Python itself has loaded already.
"""

import _signal  # type: ignore[import-not-found]  # built in, without a stub
import os
import sys

_ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))  # noqa: PTH118, PTH120


def leave_work_tree_out() -> None:
    """Remove the folders of the work tree from `sys.path` before rooda imports anything else."""
    sys.path[:] = without_work_tree(sys.path)


def without_work_tree(path: list[str]) -> list[str]:
    """Return the path without the current folder and the folders of PYTHONPATH in the work tree.

    Relative folders of PYTHONPATH are left out wherever they lead, and so are folders in any other
    repository, which may be the work tree of another run, unless rooda itself is installed in one
    of PYTHONPATH. What does not come from PYTHONPATH stays: the virtual environment may be in the
    work tree.
    """
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:
        return path  # the folder was deleted, so it has no modules
    top = _top(os.path.realpath(here))
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    is_installed = any(os.path.realpath(folder) == _ROOT for folder in named if folder)
    dropped = {
        os.path.abspath(folder)  # noqa: PTH100
        for folder in (here, *named)
        if not os.path.isabs(folder)  # noqa: PTH117
        or _is_below(folder, top)
        or (not is_installed and _is_in_repository(folder))
    }
    return [
        folder
        for folder in path
        if os.path.abspath(folder) not in dropped or os.path.realpath(folder) == _ROOT  # noqa: PTH100
    ]


_MODULE = (
    "import sys; sys.path[:] = sys.argv.pop(1).split(chr(0x1f)); del sys.argv[1]; "
    "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def own_module(module: str, *words: str) -> list[str]:
    """Return the command that starts a module of rooda with the import path of this process.

    `-I` ignores PYTHONPATH before the first import; it stays in the environment for the agent.
    """
    path = "\x1f".join(filter(None, without_work_tree(sys.path)))
    return [sys.executable, "-I", "-c", _MODULE, path, "-m", module, *words]


def _is_below(folder: str, top: str) -> bool:
    return any(f"{place}/".startswith(f"{top.rstrip('/')}/") for place in _places(folder))


def _is_in_repository(folder: str) -> bool:
    return any(os.path.lexists(f"{_top(place)}/.git") for place in _places(folder))


def _places(folder: str) -> list[str]:
    """Return where a path leads, and each place on the way: an agent can make it a link."""
    path = os.path.abspath(folder)  # noqa: PTH100
    found = [os.path.realpath(path)]
    while path != "/":
        path, name = os.path.split(path)
        found.append(os.path.join(os.path.realpath(path), name))  # noqa: PTH118
    return found


def _top(here: str) -> str:
    """Return the highest folder with `.git`, from here upward; without one, this folder.

    An agent can make a repository in a folder of the work tree.
    """
    top = folder = here
    while folder != "/":
        top = folder if os.path.lexists(f"{folder}/.git") else top
        folder = os.path.dirname(folder)  # noqa: PTH120
    return top


def end_quietly_on_ctrl_c() -> None:
    """Let Ctrl+C end rooda without Python's traceback until rooda's own handlers are installed."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
