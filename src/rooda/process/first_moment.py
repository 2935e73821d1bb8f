"""What rooda does first: leave the work tree out of the import path, and end quietly on Ctrl+C.

An agent writes to the work tree, and `PYTHONPATH=:` and `PYTHONPATH=src` put folders of it before
Python's own modules. This module imports only what Python itself has loaded already.
"""

import _signal  # type: ignore[import-not-found]  # built in, without a stub
import os
import sys

_ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))  # noqa: PTH118, PTH120


def leave_work_tree_out() -> None:
    """Remove the folders of the work tree from `sys.path` before rooda imports anything else."""
    sys.path[:] = without_work_tree(sys.path)


def without_work_tree(path: list[str]) -> list[str]:
    """Return the path without the current folder and the folders of PYTHONPATH in the work tree.

    Relative folders of PYTHONPATH are left out wherever they lead. The folder of rooda itself
    stays, and so does everything that does not come from PYTHONPATH: the virtual environment may be
    in the work tree.
    """
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:
        return path  # the folder was deleted, so it has no modules
    top = _top(here)
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    dropped = {
        os.path.abspath(folder)  # noqa: PTH100
        for folder in (here, *named)
        if not os.path.isabs(folder) or _is_below(folder, top)  # noqa: PTH117
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
    return f"{os.path.realpath(folder)}/".startswith(f"{top.rstrip('/')}/")


def _top(here: str) -> str:
    """Return the highest folder with `.git`, from here upward; without one, this folder.

    An agent can make a repository in a folder of the work tree.
    """
    top = folder = os.path.realpath(here)
    while folder != "/":
        top = folder if os.path.lexists(f"{folder}/.git") else top
        folder = os.path.dirname(folder)  # noqa: PTH120
    return top


def end_quietly_on_ctrl_c() -> None:
    """Let Ctrl+C end rooda without Python's traceback until rooda's own handlers are installed."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
