"""Tables of examples: one test for one rule, which reports every row that fails."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Iterable[object] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Return a decorator that calls the test for each row, as `parametrize` would.

    All rows are one item for pytest, which is much cheaper to collect. Each row gets an empty
    `tmp_path` of its own, and what it does with `monkeypatch` is undone after it. Fixtures of the
    project are shared by all rows, so a test that needs fresh ones uses `parametrize`.
    """
    columns = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    table = list(_named_rows(list(rows), ids, is_single=len(columns) == 1))
    assert table, "a table without rows shows nothing"

    def decorate(test: Test) -> Test:
        wanted = inspect.signature(test).parameters.values()
        fixtures = [one for one in wanted if one.name not in columns]
        numbers = count()

        def run(**given: Any) -> None:
            failed: list[Exception] = []
            for name, values in table:
                found = dict(given)
                if "tmp_path" in found:
                    found["tmp_path"] = _folder(found["tmp_path"], next(numbers))
                try:
                    test(**dict(zip(columns, values, strict=True)), **found)
                except Exception as error:  # noqa: BLE001 - every row that fails is reported
                    error.add_note(f"in row {name} of {test.__name__}")
                    failed.append(error)
                finally:
                    if isinstance(patch := found.get("monkeypatch"), pytest.MonkeyPatch):
                        patch.undo()
            if len(failed) == 1:
                raise failed[0]
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {len(table)} rows", failed)

        for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(run, attribute, getattr(test, attribute))
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in fixtures]
        )
        run.pytestmark = list(getattr(test, "pytestmark", []))  # type: ignore[attr-defined]
        return run

    return decorate


def _folder(parent: Path, number: int) -> Path:
    folder = parent / str(number)
    folder.mkdir()
    return folder


def _named_rows(
    rows: Sequence[Any],
    ids: Iterable[object] | Callable[[Any], object] | None,
    *,
    is_single: bool,
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the name and the values of each row."""
    given = None if ids is None or callable(ids) else list(ids)
    for number, row in enumerate(rows):
        values: Sequence[Any] = (row,) if is_single else row
        name = f"{number}: {values!r:.200}"
        if isinstance(row, ParameterSet):
            assert not row.marks, "a row can't have marks"
            values, name = row.values, str(row.id or name)
        if given is not None:
            name = str(given[number])
        elif callable(ids):
            name = "-".join(str(ids(one)) for one in values)
        yield name, values


ParameterSet = type(pytest.param(None))
