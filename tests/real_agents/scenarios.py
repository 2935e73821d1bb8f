"""The replies of the model behind the scripted API, by scenario, independent of any vendor."""

from dataclasses import dataclass
from enum import Enum

SUCCESS = "<promise>SUCCESS</promise>"
FAILURE = "<promise>FAILURE</promise>"
# Each line is different, because gemini takes repeated output for a loop and stops.
BIG = "\n".join(
    f"Line {number} of a long report, with its own end: {number * number}"
    for number in range(6_000)
)


class Refusal(Enum):
    """Why the API answers with an error."""

    AUTH = "auth"
    CONTEXT = "context"
    LIMIT = "limit"
    OVERLOADED = "overloaded"
    RATE = "rate"


@dataclass(frozen=True)
class Say:
    """A text that ends the turn."""

    text: str


@dataclass(frozen=True)
class Run:
    """A command for the shell tool of the agent."""

    command: str


@dataclass(frozen=True)
class Refuse:
    """An error of the API."""

    why: Refusal


@dataclass(frozen=True)
class Silence:
    """No answer, with the connection left open."""


Reply = Say | Run | Refuse | Silence


@dataclass(frozen=True)
class Scenario:
    """The first reply, the reply after a tool has run, and the reply after the trouble ended."""

    first: Reply
    after_tool: Reply = Say("No tool was asked for.")
    later: Reply | None = None

    def reply(self, *, tool_has_run: bool, trouble_is_over: bool) -> Reply:
        """Return the reply to a request."""
        if self.later is not None and trouble_is_over:
            return self.later
        return self.after_tool if tool_has_run else self.first


# The tools write their pid first, so that a test knows that they run and can find them.
_SLEEPS = "sh -c 'echo $$ > tool.pid; exec sleep 600'"
# In a new session, because codex kills processes that `nohup` leaves behind; with redirected
# output, because gemini and opencode wait until all writers close the tool's output.
_LEFT = (
    "setsid -f sh -c 'echo $$ > left.pid; exec sleep 600' > /dev/null 2>&1 < /dev/null;"
    " until test -s left.pid; do :; done"
)
_COMMITS = "echo made > made.txt; git add made.txt; git commit -qm 'Made by a tool'; env > env.txt"
_LIMIT_WORDS = (
    "echo 'HTTP 429 rate_limit_error: usage limit reached, resets 3am (UTC)';"
    " echo 'HTTP 529 overloaded_error; 401 invalid x-api-key' >&2"
)

SCENARIOS = {
    "auth": Scenario(Refuse(Refusal.AUTH)),
    "background": Scenario(Run(_LEFT), Say(f"The server runs. {SUCCESS}")),
    "big": Scenario(Say(f"{BIG}\n{SUCCESS}\n")),
    "commit": Scenario(Run(_COMMITS), Say(f"The commit is there.\n{SUCCESS}\n")),
    "context": Scenario(Refuse(Refusal.CONTEXT)),
    "empty": Scenario(Say("")),
    "failure": Scenario(Say(f"I am stuck.\n{FAILURE}\n")),
    "hang": Scenario(Silence()),
    "hang-in-tool": Scenario(Run(_SLEEPS), Say(f"Slept well. {SUCCESS}")),
    "limit": Scenario(Refuse(Refusal.LIMIT)),
    "limit-ends": Scenario(Refuse(Refusal.LIMIT), later=Say(f"Now it works. {SUCCESS}")),
    "limit-words": Scenario(Run(_LIMIT_WORDS), Say(f"The test of the limits is done. {SUCCESS}")),
    "overload-ends": Scenario(Refuse(Refusal.OVERLOADED), later=Say(f"Works again. {SUCCESS}")),
    "overloaded": Scenario(Refuse(Refusal.OVERLOADED)),
    "plain": Scenario(Say("One step is done, more are to come.")),
    "rate": Scenario(Refuse(Refusal.RATE)),
    "rate-ends": Scenario(Refuse(Refusal.RATE), later=Say(f"Now it works. {SUCCESS}")),
    "success": Scenario(Say(f"All tasks are done.\n\n{SUCCESS}\n")),
    "tool": Scenario(Run("echo made > made.txt"), Say(f"The file is there.\n{SUCCESS}\n")),
    "tool-echo": Scenario(Run(f"echo '{SUCCESS}'"), Say("The tool has printed something.")),
}
