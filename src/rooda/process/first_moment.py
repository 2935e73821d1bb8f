"""Signals in the first moment, before `interrupts.py` is loaded.

As `import_path.py`, this module imports only what Python itself has loaded already.
"""

import _signal  # type: ignore[import-not-found]  # built in, without a stub


def end_quietly_on_ctrl_c() -> None:
    """Let Ctrl+C end rooda without Python's traceback until rooda's own handlers are installed."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
