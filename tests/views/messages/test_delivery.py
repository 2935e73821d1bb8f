"""One message to one target: what arrives there, and what rooda says if it does not arrive."""

import io
import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rooda.views.messages import delivery
from rooda.views.messages.delivery import UNKNOWN, outcome_of, unusable
from rooda.views.messages.notifier_client import delivery_command
from support.services import SECRET, Service
from support.tables import each_row

WORDS = {"title": "rooda: t", "body": "one\ntwo", "kind": "warning"}
NOTES = '#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/arguments\n'


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as found:
        yield found


def program(folder: Path, body: str) -> str:
    path = folder / "notify-send"
    path.write_text(body.format(folder=folder))
    path.chmod(0o755)
    return str(path)


@pytest.mark.real
def test_a_program_of_the_desktop_gets_title_and_text_as_arguments(tmp_path: Path) -> None:
    path = program(tmp_path, NOTES)
    hostile = {**WORDS, "body": "'; rm -rf / #\n$(id)"}
    assert outcome_of({"argv": [path, "--app-name=rooda", "--"], "url": "", **hostile}) == ""
    got = (tmp_path / "arguments").read_text()
    assert got == "--app-name=rooda\n--\nrooda: t\n'; rm -rf / #\n$(id)\n"


@pytest.mark.real
@pytest.mark.parametrize(
    "body,reason",
    [
        ("#!/bin/sh\necho first >&2; echo 'no bus' >&2; exit 1\n", "no bus"),
        ("#!/bin/sh\nexit 4\n", "exit code 4"),
        ("#!/no/such/shell\n", "can't be started: No such file or directory"),
    ],
)
def test_a_program_of_the_desktop_that_fails_says_why(
    tmp_path: Path, body: str, reason: str
) -> None:
    assert outcome_of({"argv": [program(tmp_path, body)], "url": "", **WORDS}) == reason


@pytest.mark.real
def test_a_program_of_the_desktop_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "LIMIT", 2.05)
    path = program(tmp_path, "#!/bin/sh\nexec sleep 600\n")
    assert outcome_of({"argv": [path], "url": "", **WORDS}) == "no answer within 2.05 seconds"


class Package(types.ModuleType):
    """A stand-in for apprise: its services do what a test says."""

    def __init__(self, answer: object, told: str = "") -> None:
        super().__init__("apprise")
        self.sent: dict[str, Any] = {}
        self._answer, self._told = answer, told
        self.AppriseAsset = lambda **_: None
        self.Apprise = self

    def __call__(self, asset: object) -> "Package":
        assert asset is None
        return self

    def add(self, url: str) -> bool:
        return not url.startswith("discrod:")

    def instantiate(self, url: str, *, suppress_exceptions: bool) -> object:
        assert suppress_exceptions
        return "a service" if self.add(url) else None

    def notify(self, **given: Any) -> object:
        import logging  # noqa: PLC0415 - as the package does it

        self.sent = given
        if self._told:
            logging.getLogger("apprise").warning(self._told)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def send(monkeypatch: pytest.MonkeyPatch, package: Package, url: str = f"json://h/{SECRET}") -> str:
    monkeypatch.setitem(sys.modules, "apprise", package)
    return outcome_of({"argv": [], "url": url, **WORDS})


def test_text_is_sent_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Package(answer=True)
    assert send(monkeypatch, package) == ""
    assert package.sent == {
        "title": "rooda: t",
        "body": "one\ntwo",
        "notify_type": "warning",
        "body_format": "text",
        "interpret_escapes": False,
    }


@each_row(
    "package,reason",
    [
        (Package(answer=False), "the service did not accept the message"),
        (
            Package(answer=False, told=f"error=500 at\n/hooks/{SECRET} of h"),
            "error=500 at /.../... of h",
        ),
        (Package(KeyError(SECRET)), "KeyError in the package that sends it"),
        (Package(answer=False, told="x" * 1000), "x" * 300),
    ],
    ids=["refused", "warned", "broken", "long"],
)
def test_a_message_that_is_not_delivered_has_a_reason_without_secrets(
    monkeypatch: pytest.MonkeyPatch, package: Package, reason: str
) -> None:
    assert send(monkeypatch, package, f"json://h/hooks/{SECRET}") == reason


def test_an_address_that_the_package_does_not_know_can_not_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert send(monkeypatch, Package(answer=True), "discrod://a/b") == UNKNOWN
    assert unusable(["json://h", "discrod://a", "discrod://b"]) == ["2", "3"]
    assert outcome_of({"check": ["discrod://a", "json://h"]}) == "1"


@pytest.mark.real
def test_main_prints_why_it_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = program(tmp_path, "#!/bin/sh\nexit 4\n")
    job: Mapping[str, object] = {"argv": [path], "url": "", **WORDS}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(job).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    alarms: list[int] = []
    monkeypatch.setattr("signal.alarm", alarms.append)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    delivery.main()
    assert capfd.readouterr().out == "exit code 4"
    assert alarms == [delivery.LIMIT]


@pytest.mark.real
def test_a_real_service_gets_the_message_from_a_process_without_secrets_in_view(
    service: Service,
) -> None:
    job = {"shown": service.shown, "url": service.url, "argv": [], **WORDS}
    done = subprocess.run(
        delivery_command(),
        input=json.dumps(job).encode(),
        capture_output=True,
        check=True,
        cwd="/",
        env=os.environ,
    )
    assert (done.stdout, done.stderr) == (b"", b"")
    [(path, message)] = service.got
    assert path == f"/hooks/{SECRET}"
    assert (message["title"], message["message"]) == ("rooda: t", "one\ntwo")
    assert message["type"] == "warning"
    assert not any(SECRET in word for word in delivery_command())


@pytest.mark.real
def test_the_kernel_ends_a_delivery_that_hangs_in_a_call(tmp_path: Path) -> None:
    # A stand-in for the package that never returns and blocks every other way to end it.
    (tmp_path / "apprise.py").write_text(
        "import signal, time\n"
        "signal.alarm(1)\n"  # the real limit is 20 seconds
        "while True:\n    time.sleep(600)\n"
    )
    command = delivery_command()
    command[-1] = f"{tmp_path}\x1f{command[-1]}"
    job = {"shown": "x", "url": "json://h", "argv": [], **WORDS}
    done = subprocess.run(command, input=json.dumps(job).encode(), check=False, timeout=60)
    assert done.returncode == -14  # SIGALRM, whose handler is the kernel's own
