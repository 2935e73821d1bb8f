"""What happens to messages about a run (`notify`)."""

from rooda.base.event import Event, LogLevel, Message, say


class MessageNotSent(Event, frozen=True):
    """A message about the run was not delivered, or can't be; the run goes on."""

    level = LogLevel.WARN
    moment: str  # `end`, `failure`, `waiting`, `blocked`, or `start` if the address can't be used
    target: str  # the service, without its secrets, or empty
    reason: str  # why

    def describe(self) -> Message:
        words = "A notification was not sent"
        if self.moment in ("", "start"):
            words = "Notifications can't be sent"
        return say(
            words,
            to=self.target or None,
            about=self.moment or None,
            reason=self.reason,
            suggestion="Try it with `rooda notify --test`",
        )
