"""The process that sends messages, without a service: stand-ins play the deliveries."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rooda.views.messages import notifier, notifier_client
from rooda.views.messages.message import Message
from rooda.views.messages.notifier import Notifier, Reports, serve
from rooda.views.messages.notifier_client import Failure, NotifierClient, without_addresses
from rooda.views.messages.targets import Target
from support.children import until
from support.workspace import alive, wait_for

TARGET = {"shown": "json://h/...", "url": "json://h/x", "argv": []}
MESSAGE = {"title": "t", "body": "b", "kind": "info"}
Result = tuple[str, str, str]


def run(command: list[str], *orders: dict[str, Any]) -> list[Result]:
    """Follow the orders with a stand-in for deliveries; return the results."""
    found: list[Result] = []
    reading, writing = os.pipe()
    for order in orders:
        os.write(writing, json.dumps(order).encode() + b"\n")
    os.close(writing)
    serve(Notifier(command, lambda *result: found.append(result)), reading)
    os.close(reading)
    return found


def sends(*targets: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return {"targets": list(targets)}, {"moment": "end", "send": MESSAGE}


@pytest.mark.real
def test_each_target_gets_the_message_on_standard_input(tmp_path: Path) -> None:
    script = f"cat > {tmp_path}/got.$$"
    other = {**TARGET, "shown": "other"}
    found = run(["sh", "-c", script], *sends(TARGET, other))
    assert sorted(found) == [("end", "json://h/...", ""), ("end", "other", "")]
    got = [json.loads(path.read_text()) for path in tmp_path.iterdir()]
    assert sorted(one["shown"] for one in got) == ["json://h/...", "other"]
    assert all(one["title"] == "t" and one["url"] == "json://h/x" for one in got)


@pytest.mark.real
@pytest.mark.parametrize(
    "script,reason",
    [
        ("echo 'it said no'", "it said no"),
        ("exit 3", "the process that sends it ended with 3"),
        ("kill -s ALRM $$", "no answer within 20 seconds"),
    ],
)
def test_a_failed_delivery_says_why(script: str, reason: str) -> None:
    assert run(["sh", "-c", script], *sends(TARGET)) == [("end", "json://h/...", reason)]


@pytest.mark.real
def test_a_delivery_that_ignores_its_limit_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "LIMIT", -1.9)  # with the grace: a tenth of a second
    script = f"trap '' ALRM TERM; sleep 600 & echo $! > {tmp_path}/child; wait"
    delivery = notifier.start_delivery({**TARGET, **MESSAGE}, "end", ["sh", "-c", script])
    child = int(wait_for(tmp_path / "child"))
    until(lambda: delivery.result(time.monotonic()) is not None, "the limit is over")
    until(lambda: not alive(child), "the child ends")


@pytest.mark.real
def test_a_delivery_that_can_not_be_started_is_told() -> None:
    found = run(["/no/such/program"], *sends(TARGET))
    assert found == [("end", "json://h/...", "can't be sent: No such file or directory")]


@pytest.mark.real
def test_too_many_messages_at_once_are_dropped_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "_MOST_AT_ONCE", 1)
    found = run(["true"], *sends(TARGET, TARGET))
    assert ("end", "json://h/...", "too many messages are on their way") in found
    assert len(found) == 2


@pytest.mark.real
def test_addresses_that_can_not_be_used_are_told_at_the_start() -> None:
    targets = [TARGET, {**TARGET, "shown": "discrod://..."}]
    order = {"targets": targets, "check": True}
    [found] = run(["echo", "2"], order)
    assert found[:2] == ("start", "discrod://...")
    assert "does not know" in found[2]
    assert run(["echo", "some trouble"], order) == []  # the check itself failed
    assert run(["/no/such/program"], order) == []
    assert run(["echo", "1"], {"targets": [{**TARGET, "url": ""}], "check": True}) == []


@pytest.mark.real
def test_the_last_message_is_sent_only_if_rooda_did_not_take_it_back() -> None:
    start = {"targets": [TARGET]}
    left, taken_back = {"last": MESSAGE}, {"last": None}
    assert run(["true"], start, left) == [("killed", "json://h/...", "")]
    assert run(["true"], start, left, taken_back) == []


def test_a_line_that_was_cut_off_is_ignored() -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"moment": "end", "se\n{"half')
    os.close(writing)
    serve(Notifier(["true"], lambda *_: None), reading)
    os.close(reading)


def test_results_go_to_the_log_and_failures_to_rooda_which_may_be_gone(tmp_path: Path) -> None:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    reading, writing = os.pipe()
    reports = Reports(log, writing)
    reports("end", "a://...", "")
    reports("end", "b://...", "refused")
    assert json.loads(os.read(reading, 4096)) == {
        "moment": "end",
        "target": "b://...",
        "reason": "refused",
    }
    os.close(reading)
    reports("end", "c://...", "refused")
    os.close(writing)
    os.close(log)
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.partition(" ")[2] for line in lines] == [
        "end a://...: sent",
        "end b://...: failed: refused",
        "end c://...: failed: refused",
    ]


# -- rooda's end ---------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    yield fd
    os.close(fd)


def with_program(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let a script play the process."""
    monkeypatch.setattr(notifier_client, "program", lambda *_: ["sh", "-c", script])


@pytest.mark.real
def test_client_sends_orders_and_reads_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: int
) -> None:
    answer = json.dumps({"moment": "end", "target": "a", "reason": "r"})
    with_program(monkeypatch, f"cat > {tmp_path}/orders; echo x > {tmp_path}/done")
    client = NotifierClient([Target("a", "json://h/x")], log)
    assert client.pid > 0
    client.leave(Message("t", "b"))
    client.send("end", Message("t", "b"))
    assert client.news() == []
    client.close()
    assert client.pid == 0
    client.send("end", Message("too late", ""))
    wait_for(tmp_path / "done")
    text = (tmp_path / "orders").read_text()
    orders = [json.loads(line) for line in text.splitlines()]
    assert orders[0]["targets"] == [{"shown": "a", "url": "json://h/x", "argv": []}]
    assert orders[1] == {"last": {"title": "t", "body": "b", "kind": "info"}}
    assert orders[2]["moment"] == "end"
    with_program(monkeypatch, f"echo '{answer}'; echo broken; echo '{{}}'; cat > /dev/null")
    client = NotifierClient([], log)
    found: list[Failure] = []

    def is_told() -> bool:
        found.extend(client.news())
        return bool(found)

    until(is_told, "the failure is told")
    assert found == [Failure("end", "a", "r")]
    client.close()


@pytest.mark.real
def test_client_never_waits_for_a_process_that_reads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: int
) -> None:
    stop = tmp_path / "stop"
    with_program(monkeypatch, f"while ! test -e {stop}; do sleep 0.02; done; echo > {stop}.seen")
    client = NotifierClient([], log)
    for _ in range(200):
        client.send("end", Message("t", "x" * 2000))
    assert client.trouble == "the process that sends them does not answer"
    stop.write_text("")
    wait_for(Path(f"{stop}.seen"))


@pytest.mark.real
def test_client_without_a_process_says_why(monkeypatch: pytest.MonkeyPatch, log: int) -> None:
    monkeypatch.setattr(notifier_client, "program", lambda *_: ["/no/such/program"])
    client = NotifierClient([], log)
    assert "can't be started: No such file" in client.trouble
    assert client.news() == []
    client.close()


def test_environment_of_the_process_has_no_addresses() -> None:
    environ = {"ROODA_LOOP_NOTIFY_URLS": "json://h/x", "HOME": "/h", "ROODA_RUN": "r"}
    assert "ROODA_LOOP_NOTIFY_URLS" not in without_addresses(environ)
    assert without_addresses(environ)["HOME"] == "/h"


def test_main_follows_orders_on_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[tuple[object, int]] = []
    monkeypatch.setattr(notifier, "serve", lambda one, fd: served.append((one, fd)))
    monkeypatch.setattr(sys, "argv", ["x", str(tmp_path), "2"])
    monkeypatch.setattr(notifier, "Reports", lambda log, rooda: (log, rooda))
    notifier.main()
    assert isinstance(served[0][0], Notifier)
    assert served[0][1] == 0
