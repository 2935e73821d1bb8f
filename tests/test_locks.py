"""The locks are complete: pip installs them without resolving anything."""

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
_LOCKED = re.compile(r"(?m)^([a-z].*?==.*?)\s*\\$")
_SYSTEMS = {"linux": "Linux", "darwin": "Darwin"}


def locked(lock: str) -> list[Requirement]:
    return [Requirement(line) for line in _LOCKED.findall((ROOT / lock).read_text())]


def needs(name: str, extras: set[str], world: dict[str, str]) -> list[Requirement]:
    """Return the requirements of an installed package; none of one for another system."""
    try:
        every = [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:
        return []
    return [
        one
        for one in every
        if one.marker is None or any(one.marker.evaluate({**world, "extra": e}) for e in extras)
    ]


@pytest.mark.parametrize("system", _SYSTEMS)
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize(
    "lock,extra", [("requirements.lock", ""), ("requirements-dev.lock", "all")]
)
def test_lock_has_every_package_that_its_packages_need(
    lock: str, extra: str, python: str, system: str
) -> None:
    world = {
        **{name: str(value) for name, value in default_environment().items()},
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_system": _SYSTEMS[system],
    }
    pins = {
        canonicalize_name(one.name): next(iter(one.specifier)).version
        for one in locked(lock)
        if one.marker is None or one.marker.evaluate(world)
    }
    assert pins
    asked = [("rooda", {"", extra}), *((name, {""}) for name in pins)]
    seen: set[tuple[str, str]] = set()
    missing = []
    while asked:
        name, extras = asked.pop()
        if (name, str(sorted(extras))) in seen:
            continue
        seen.add((name, str(sorted(extras))))
        for one in needs(name, extras, world):
            needed = canonicalize_name(one.name)
            pin = pins.get(needed, "")
            if needed != "rooda" and (not pin or not one.specifier.contains(pin)):
                missing.append(f"{name} needs {one}, the lock has {pin or 'nothing'}")
            asked.append((needed, {"", *one.extras}))
    assert missing == []
