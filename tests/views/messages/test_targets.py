"""Where messages go on a machine, and what `rooda doctor` says about it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rooda.base.problems import Origin, Tier
from rooda.front.doctor.findings import Finding, Mark
from rooda.front.doctor.machine_checks import check_notifications
from rooda.plan.preflight.validate import check_notify, moments_of
from rooda.plan.resolve import Values
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import NOTIFY_ON, NOTIFY_URLS
from rooda.views.messages import delivery
from rooda.views.messages.targets import Target, targets_of
from rooda.world.tools import Tools
from support.builders import built_values

SECRET = "s3cr3t-t0ken-99"
SERVICES = (f"discord://1234567890/{SECRET}", f"jsons://hooks.example.org/{SECRET}")
DESKTOP = {"DISPLAY": ":99"}


def values(urls: tuple[str, ...] = (), on: tuple[str, ...] | None = None) -> Values:
    """Return the settings as a config file gives them; None: it does not have them."""
    origin = Origin(Tier.GLOBAL, "rooda-config.yml", 3)
    given: dict[Setting[Any], Any] = {NOTIFY_URLS: urls or None, NOTIFY_ON: on}
    return built_values({row: value for row, value in given.items() if value is not None}, origin)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("notify-send", "osascript", "git", "sh"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def tools(programs: Path, work: Path) -> Tools:
    return Tools({"PATH": str(programs)}, [work])


def install(monkeypatch: pytest.MonkeyPatch, *, is_there: bool) -> None:
    if not is_there:
        monkeypatch.setitem(sys.modules, "apprise", None)
    monkeypatch.setattr(
        delivery, "unusable", lambda urls: ["1"] if urls[0].startswith("discrod") else []
    )


def test_messages_are_off_until_the_user_sets_addresses_or_moments() -> None:
    assert moments_of(built_values({})) == ()
    assert moments_of(values(SERVICES)) == ("end",)
    assert moments_of(values(on=("failure",))) == ("failure",)
    assert moments_of(values(SERVICES, ())) == ()


@pytest.mark.parametrize(
    "platform,environ,expected",
    [
        ("linux", DESKTOP, ("notify-send", "--app-name=rooda", "--")),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, ("notify-send", "--app-name=rooda", "--")),
        ("linux", {"DISPLAY": ""}, None),
        ("darwin", {}, ("osascript", "-e", "on run argv", "-e", "...", "-e", "end run")),
    ],
)
def test_the_desktop_shows_messages_where_there_is_one(
    programs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    environ: Mapping[str, str],
    expected: tuple[str, ...] | None,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    found = targets_of(values(on=("end",)), tools(programs, tmp_path / "work"), environ)
    if expected is None:
        assert found == []
        return
    [target] = found
    assert target.shown == expected[0]
    assert target.argv[0] == str(programs / expected[0])
    for word, wanted in zip(target.argv[1:], expected[1:], strict=True):
        assert wanted in ("...", word)


def test_services_get_messages_instead_of_the_desktop(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, is_there=True)
    found = targets_of(values(SERVICES), tools(programs, tmp_path / "work"), DESKTOP)
    assert found == [
        Target("discord://...", SERVICES[0]),
        Target("jsons://hooks.example.org/...", SERVICES[1]),
    ]


def findings(programs: Path, given: Values, environ: Mapping[str, str]) -> list[Finding]:
    return list(check_notifications(given, tools(programs, programs.parent / "work"), environ))


@pytest.mark.parametrize(
    "given,environ,is_installed,expected",
    [
        (built_values({}), DESKTOP, True, []),
        (values(SERVICES), {}, True, [(Mark.OK, "go to 2 services: discord://..., jsons://h")]),
        (values(on=("end",)), DESKTOP, True, [(Mark.OK, "are shown by notify-send")]),
        (values(on=("end",)), {}, True, [(Mark.WARNING, "only ring the bell")]),
        (
            values(SERVICES, ("end", "failure")),
            DESKTOP,
            False,
            [(Mark.WARNING, "apprise"), (Mark.OK, "(end, failure) are shown by notify-send")],
        ),
        (values((f"discrod://{SECRET}/x",)), {}, True, [(Mark.PROBLEM, "address 1 (discrod")]),
    ],
    ids=["off", "services", "desktop", "bell", "without the extra", "unknown service"],
)
def test_doctor_says_where_messages_go(
    programs: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: Values,
    environ: Mapping[str, str],
    is_installed: bool,  # noqa: FBT001 - one column of the table
    expected: list[tuple[Mark, str]],
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    install(monkeypatch, is_there=is_installed)
    found = findings(programs, given, environ)
    assert [one.mark for one in found] == [mark for mark, _ in expected]
    for one, (_, words) in zip(found, expected, strict=True):
        assert words in one.text
        assert SECRET not in one.text + one.advice


def test_a_run_without_the_extra_is_warned_and_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, is_there=False)
    [problem] = check_notify(values(SERVICES))
    assert problem.severity == "warning"
    assert problem.suggestion == "Install it: pip install 'rooda[notify]'"
    assert list(check_notify(values(SERVICES, ()))) == []
    assert list(check_notify(values(on=("end",)))) == []
