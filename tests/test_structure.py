"""`python -m tools.structure` measures the source of rooda."""

import ast
from pathlib import Path

import pytest

from tools.structure import (
    FACTS,
    LARGE,
    RECIPES,
    SOURCE,
    Module,
    code_lines,
    copies,
    import_lines,
    imports_in_functions,
    only_importers,
    places_of_facts,
    places_of_members,
    read_modules,
    records,
    running_rows,
    static_rows,
    table,
)

EXAMPLE = '''\
"""What the module is for."""

import os
from rooda.b import (
    one,
    two,
)


# A comment is no code.
def function() -> str:
    """Explain."""
    from rooda import c

    return """text
    of two lines""" + c.name
'''


def module(name: str, text: str) -> Module:
    return Module(name, text, ast.parse(text))


def fields(number: int, start: int = 0) -> str:
    return "".join(f"    field_{n}: int\n" for n in range(start, start + number))


def test_lines_of_code_leave_out_docstrings_comments_and_blank_lines() -> None:
    found = module("rooda.a", EXAMPLE)
    assert code_lines(found) == 9
    assert import_lines(found) == 6
    assert imports_in_functions(found) == 1


def test_module_with_one_importer_is_counted_also_if_it_is_imported_as_a_name(
    tmp_path: Path,
) -> None:
    package = tmp_path / "rooda"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "inner" / "__init__.py").touch()
    (package / "a.py").write_text("from rooda.inner import c\nfrom rooda.b import x\n")
    (package / "b.py").write_text("import rooda.inner.c\nx = 1\n")
    (package / "inner" / "c.py").write_text("")
    modules = read_modules(package)
    names = ["rooda", "rooda.a", "rooda.b", "rooda.inner", "rooda.inner.c"]
    assert [one.name for one in modules] == names
    assert only_importers(modules) == 1, "a imports b; a and b import c"


def test_large_record_is_listed_with_each_record_whose_fields_it_repeats() -> None:
    text = (
        f"class Large:\n{fields(LARGE + 5)}"
        f"class AlsoLarge:\n{fields(LARGE + 5, start=20)}"
        f"class Small:\n{fields(12)}"
        f"class Other:\n{fields(12, start=30)}"
    )
    found = [(a.name, b.name, shared) for a, b, shared in copies(records([module("a", text)]))]
    wanted = [
        ("AlsoLarge", "Large", 15),
        ("AlsoLarge", "Other", 12),
        ("Large", "Small", 12),
    ]
    assert sorted(found) == wanted


def test_places_of_a_fact_and_of_a_member_are_means() -> None:
    rows = module("rooda.rows", "class IterationRow:\n    a: int\n    b: int\n")
    views = module("rooda.shown", "class Shown:\n    a: int\n\nprint(Kind.ONE)\nOther.TWO\n")
    kinds = module("rooda.kinds", "class Kind:\n    ONE = 1\n    TWO = 2\n")
    assert places_of_facts(records([rows, views]), "IterationRow") == 1.5
    assert places_of_members([kinds, views], "Kind") == 1.5
    assert places_of_members([views], "Kind") == 0


def test_rows_of_a_package_have_its_numbers(tmp_path: Path) -> None:
    package = tmp_path / "rooda"
    package.mkdir()
    (package / "a.py").write_text(EXAMPLE)
    (package / "rows.py").write_text(f"class {FACTS}:\n{fields(LARGE + 1)}")
    (package / "views.py").write_text(f"class Shown:\n{fields(LARGE)}")
    rows = dict(static_rows(package))
    assert rows["modules"] == "3"
    assert rows["lines of code"] == "72"
    assert rows["records that have a fact of an iteration (mean)"] == "2.0"
    assert rows[f"  {FACTS} (31) and Shown (30)"] == "30 fields"


def test_table_has_two_columns() -> None:
    assert table([("a", "1"), ("longer", "20")]).splitlines() == [
        "a                1",
        "longer          20",
    ]


def test_names_that_the_script_looks_for_are_classes_of_rooda() -> None:
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for name in (FACTS, *RECIPES):
        assert text.count(f"\nclass {name}(") == 1, name


@pytest.mark.real
def test_runs_are_measured(tmp_path: Path) -> None:
    rows = dict(running_rows(tmp_path, rounds=1))
    assert int(rows["modules that a run imports"]) > 50
    assert int(rows["switches between modules in one iteration"]) > 50
    assert len(rows) == 7
