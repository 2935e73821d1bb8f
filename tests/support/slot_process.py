"""A slot process for tests, as a script. Its coverage counts although it leaves with os._exit."""

import os

import coverage

_leave = os._exit


def save_coverage_at_exit() -> None:
    """From now on, os._exit saves the coverage first; without coverage nothing changes."""
    if coverage.Coverage.current() is not None:
        os._exit = _save_and_leave  # type: ignore[assignment]


def _save_and_leave(code: int) -> None:
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.stop()
        measured.save()
    _leave(code)


if __name__ == "__main__":
    from rooda.fleet.worker.slot_process import main

    # Its children are ordinary runs, which many other tests measure.
    for _name in [name for name in os.environ if name.startswith("COVERAGE_")]:
        del os.environ[_name]
    save_coverage_at_exit()
    main()
