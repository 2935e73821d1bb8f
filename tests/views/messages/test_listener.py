"""Which events lead to a message, how often, and what rooda says if a message is not sent."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from rooda.base.event import Event
from rooda.loop.events.emitter import Emitter, Stamped
from rooda.loop.events.messages import MessageNotSent
from rooda.loop.events.run import RunStarted
from rooda.loop.wait_kinds import WaitKind
from rooda.views.messages.listener import Notifications
from rooda.views.messages.message import Message, Named
from rooda.views.messages.notifier_client import Failure, NotifierClient
from rooda.world.agents.failure_kinds import FailureKind
from support.happenings import (
    ABORTED,
    BLOCKED,
    FAILURE,
    WAIT,
    completed,
    failed,
    stamped,
    with_facts,
)

FAILED = with_facts(failed(1, 9, 5.0, 1, 3, FAILURE), kind=FailureKind.EXIT)
SIGNALED = with_facts(failed(2, 9, 5.0, 2, 3, BLOCKED), kind=FailureKind.SIGNAL)


class Client(NotifierClient):
    """Keeps what is sent; no process is started."""

    def __init__(self) -> None:
        self.trouble = ""
        self.sent: list[tuple[str, Message]] = []
        self.left: list[Message | None] = []
        self.failures: list[Failure] = []

    def send(self, moment: str, message: Message) -> None:
        self.sent.append((moment, message))

    def leave(self, message: Message | None) -> None:
        self.left.append(message)

    def news(self) -> list[Failure]:
        found, self.failures = self.failures, []
        return found


@pytest.fixture
def client() -> Client:
    return Client()


def view(
    client: NotifierClient | None,
    *moments: str,
    tell: Callable[[MessageNotSent], None] = lambda _: None,
    bell: Callable[[], None] = lambda: None,
) -> Notifications:
    return Notifications(
        Named("shop", "build", "r"), moments, client, summary=lambda: None, tell=tell, bell=bell
    )


def moments_told(client: Client, *moments: str, events: tuple[Event, ...]) -> list[str]:
    listener = view(client, *moments)
    for event in events:
        listener(stamped("10:00:00", event))
    return [moment for moment, _ in client.sent]


EVERY = (RunStarted("build", 9, "x"), completed(1, 9, 1.0, truncated=False), FAILED, SIGNALED, WAIT)


@pytest.mark.parametrize(
    "moments,told",
    [
        (("end",), ["end"]),
        (("failure",), ["failure"]),  # the agent's FAILURE is one too, and comes a moment later
        (("blocked",), ["blocked"]),
        (("waiting",), ["waiting"]),
        (("end", "failure", "waiting", "blocked"), ["failure", "blocked", "waiting", "end"]),
    ],
)
def test_each_moment_has_one_message(
    client: Client, moments: tuple[str, ...], told: list[str]
) -> None:
    assert moments_told(client, *moments, events=(*EVERY, ABORTED)) == told


def test_a_short_wait_before_a_retry_is_no_moment(client: Client) -> None:
    assert moments_told(client, "waiting", events=(replace(WAIT, kind=WaitKind.BACKOFF),)) == []


def test_messages_of_one_kind_come_five_minutes_apart_and_count_those_between(
    client: Client,
) -> None:
    listener = view(client, "failure", "waiting")
    for clock in ("10:00:00", "10:01:00", "10:04:59", "10:05:00", "10:09:00"):
        listener(stamped(clock, FAILED))
    listener(stamped("10:09:01", WAIT))
    assert [moment for moment, _ in client.sent] == ["failure", "failure", "waiting"]
    assert "Since the last message of this kind: 2 more" in client.sent[1][1].body


def test_the_last_message_waits_from_the_start_of_a_run_to_its_end(client: Client) -> None:
    listener = view(client, "end")
    listener(stamped("10:00:00", RunStarted("build", 9, "x")))
    [left] = client.left
    assert left is not None
    assert "ended without a result" in left.title
    listener(stamped("10:00:01", ABORTED))
    assert client.left[1:] == [None]


def test_the_bell_rings_with_each_message_also_where_nothing_can_be_sent() -> None:
    rung: list[int] = []
    listener = view(None, "end", bell=lambda: rung.append(1))
    for event in (*EVERY, ABORTED):
        listener(stamped("10:00:00", event))
    assert rung == [1]


def test_what_was_not_sent_is_told_once_at_the_next_event(client: Client) -> None:
    seen: list[Event] = []
    emitter = Emitter([lambda one: seen.append(one.event)])
    listener = view(client, "failure", tell=emitter)
    client.failures = [Failure("failure", "json://h/...", "no answer within 20 seconds")]
    client.trouble = "the process that sends them does not answer"
    emitter.add_view(listener)
    emitter(completed(1, 9, 1.0, truncated=False))
    emitter(completed(2, 9, 1.0, truncated=False))
    assert [one for one in seen if isinstance(one, MessageNotSent)] == [
        MessageNotSent("failure", "json://h/...", "no answer within 20 seconds"),
        MessageNotSent("", "", "the process that sends them does not answer"),
    ]


def test_a_view_gets_events_without_secrets(client: Client) -> None:
    emitter = Emitter(mask=lambda _: with_facts(FAILED, reason="masked"))
    emitter.add_view(view(client, "failure"))
    emitter(with_facts(FAILED, reason="t0ken"))
    assert "masked" in client.sent[0][1].body
    assert isinstance(stamped("10:00:00", FAILED), Stamped)
