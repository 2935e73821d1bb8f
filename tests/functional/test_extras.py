"""Commands whose extra is not installed, and what a plain run imports."""

import pytest

from rooda.base.problems import InvalidInput
from rooda.front.extras import need_extra


def test_a_missing_package_is_refused_with_the_command_that_installs_the_extra() -> None:
    with pytest.raises(InvalidInput) as refused:
        need_extra("tui", "rooda watch", "json", "no_such_module")
    problem = refused.value.problems[0]
    assert problem.message == "rooda watch needs packages that are not installed: no_such_module"
    assert problem.suggestion == "Install them: pip install 'rooda[tui]'"


def test_installed_packages_are_accepted() -> None:
    need_extra("tui", "rooda watch", "json", "click")
