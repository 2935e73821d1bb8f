"""Every kind of failure as one row: its meaning, the reaction of the run, and advice.

A row has all that rooda says and does about a kind: the outcome of an iteration, the waits, the
exit code, every view and the docs read it. This module is below the loop, because the adapters use
the kinds too.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, Self

from msgspec import Struct


class Reaction(StrEnum):
    """What the run does after a failure."""

    COUNT = "it counts as a failure"
    BACKOFF = "it counts as a failure, and the run waits before the next attempt"
    FAST_BACKOFF = (
        "it counts as a failure; if a known CLI failed within 30 s, the run waits before the next "
        "attempt"
    )
    LIMIT = "no failure: the run waits until the limit ends"
    OUTAGE = "no failure: the run waits until the outage ends"
    ABORT = "the run ends at once"
    NEVER_RAN = "the run ends at once, and the iteration does not count: the agent never ran"


class FailureRow(Struct, frozen=True):
    """One kind of failure.

    `sentence` says what it means. `settings` are the keys that affect it. `advice` is what the user
    can try; if it is empty, the advice depends on whether the agent printed anything. `by_cli`: the
    agent's CLI reports this kind. `by_agent`: the agent itself failed, so its exit and its time say
    more. `has_output`: the agent's output can explain it. `exit_code` is the field of `ExitCodes`
    for a run that ends with this kind; "none" means exit code 1.

    `cause` says in the terminal why the iteration failed, with the facts of `FailureContext`, and
    `logged` are its fields in a log line. `told` is what the lines just above have told: nothing,
    the failure, or all. `stopped` is for an iteration that ended without a failure, with `{agent}`,
    `{kind}` and `{reason}`. `story` says what happened, for `rooda show` and the report, with the
    facts of `views/wording/sentences.py`; `hint` is what to do before the user resumes the run.
    `is_blocked`: the agent asks for help, and the reason has its own words.
    """

    name: str
    sentence: str
    reaction: Reaction = Reaction.COUNT
    settings: tuple[str, ...] = ()
    advice: str = ""
    by_cli: bool = False
    by_agent: bool = True
    has_output: bool = True
    exit_code: Literal["agent", "verify", "git", "none"] = "agent"
    cause: str = ""
    logged: tuple[str, ...] = ("exit_code",)
    told: Literal["nothing", "failure", "all"] = "nothing"
    stopped: str = "{agent} can't take over ({kind}): {reason}"
    story: str = ""
    hint: str = ""
    is_blocked: bool = False

    @property
    def cause_words(self) -> str:
        """Why the iteration failed, for the terminal."""
        if self.cause:
            return self.cause
        if self.by_cli:
            return "{kind} after {time}: {reason}"
        return "{reason} after {time}" if self.by_agent else "{reason}"


_COMMAND = ("ai_cmd", "ai_cmd_alias")
_LIMIT = ("wait_for_limits", "max_limit_wait", "limit_wait", "ai_cmd_fallbacks")
_BACKOFF = ("backoff", "max_backoff")
_OUTAGE = ("max_outage_wait", *_BACKOFF, "ai_cmd_fallbacks")
_OUTAGE_WORDS = "outage of {agent} ({kind}): {reason}"


class FailureKind(StrEnum):
    """Why an iteration failed, or why the agent could not work. The value is the row's name."""

    row: FailureRow

    def __new__(cls, row: FailureRow) -> Self:
        """Return the member for a row."""
        kind = str.__new__(cls, row.name)
        kind._value_ = row.name
        kind.row = row
        return kind

    EXIT = FailureRow(
        "exit",
        "its exit code is not 0",
        Reaction.FAST_BACKOFF,
        settings=("ignore_exit_status", *_BACKOFF),
    )
    CRASH = FailureRow(
        "crash",
        "a signal ended it, or it was lost",
        Reaction.FAST_BACKOFF,
        settings=("ignore_exit_status", *_BACKOFF),
        advice="Run the command by hand to see whether it crashes there too",
        cause="{reason}{exit} after {time}",
        logged=("signal", "exit_code"),
    )
    SIGNAL = FailureRow(
        "signal",
        "the agent says that it is blocked",
        settings=("signals.failure", "signals.streams", "signals.match"),
        advice="Read the end of the output: the agent says what it is blocked by",
        cause="the agent signaled {signal}{exit} after {time}",
        logged=("exit_code", "promise_signal", "signal"),
        story="The agent signaled {signal}.{unchecked}",
        hint="The agent signaled FAILURE: settle what it names before you resume, or the run will "
        "probably stop again.",
        is_blocked=True,
    )
    TIMEOUT = FailureRow(
        "timeout",
        "a time limit ran out",
        settings=(
            "iteration_timeout",
            "idle_timeout",
            "first_output_timeout",
            "max_duration",
            "result_grace",
        ),
        advice="Raise iteration_timeout if the work takes longer, or give the agent less to do",
        cause="timeout ({reason}: {timeout}){ignored}",
        logged=("reason", "timeout"),
        story="Stopped by {clock}{ended}.",
    )
    NOT_STARTED = FailureRow(
        "not-started",
        "the agent could not be started",
        Reaction.NEVER_RAN,
        advice="The OS refused: check its limits (ulimit -a), memory and processes",
    )
    PROMPT = FailureRow(
        "prompt", "the prompt could not be assembled", Reaction.NEVER_RAN, exit_code="none"
    )
    VERIFY = FailureRow(
        "verify",
        "the verify command failed",
        settings=("verify.command", "verify.when", "verify.timeout"),
        advice="Read what the check printed (here, or with rooda show N)",
        has_output=False,
        exit_code="verify",
        by_agent=False,
        told="failure",
        story="{failed_tests}",
    )
    FEWER_TESTS = FailureRow(
        "fewer-tests",
        "verify passed with fewer tests than before, or skipped more of them",
        settings=("verify.shrink",),
        advice="See what happened to the tests with rooda diff; if it is right, accept it with "
        "`rooda resume --verify-shrink warn`",
        has_output=False,
        exit_code="verify",
        by_agent=False,
    )
    CLEAN_CHECK = FailureRow(
        "clean-check",
        "the check in a clean copy of the work failed",
        settings=("verify.clean", "verify.timeout"),
        advice="Look for a file that the work needs and that is not committed: ignored, secret, or "
        "outside of the repository",
        has_output=False,
        exit_code="verify",
        by_agent=False,
    )
    NOT_DONE = FailureRow(
        "not-done",
        "the agent signaled that the work is done, but it is not",
        settings=("done_when", "tasks"),
        advice="See what is not done: mark tasks that are done and remove those that you do not "
        "want, or correct the command of done_when",
        by_agent=False,
    )
    NO_CHANGES = FailureRow(
        "no-changes",
        "no files changed",
        settings=("git.require_changes",),
        advice="Read its output: it may think that no work is left",
        by_agent=False,
    )
    NO_FILE = FailureRow(
        "no-file",
        "the run would end without the file that it has to leave behind",
        settings=("expected_file",),
        advice="Read its output: it may have stopped early, or written to another path",
        by_agent=False,
    )
    PROTECTED = FailureRow(
        "protected",
        "protected files were changed, or could not be restored",
        settings=("protect.paths", "protect.on_change"),
        advice="See what changed with `rooda diff N`; remove a file from protect.paths if the "
        "agent may change it",
        exit_code="none",
        by_agent=False,
    )
    COMMIT = FailureRow(
        "commit",
        "the work could not be committed",
        settings=("git.commit", "git.commit_timeout"),
        advice="Read the reason above; the work is still in the work tree",
        has_output=False,
        exit_code="git",
        by_agent=False,
        told="all",
    )
    UNSAFE_TREE = FailureRow(
        "unsafe-tree",
        "the work tree has something that would act outside of the sandbox, or commits are missing",
        settings=("sandbox.kind",),
        advice="Read the reason above; put back what was there at the start of the run",
        has_output=False,
        by_agent=False,
    )
    PUBLISH = FailureRow(
        "publish",
        "the command that publishes the work refused it",
        Reaction.ABORT,
        settings=("git.publish", "git.publish_timeout"),
        advice="Read what the command printed; the work is still in the work tree",
        has_output=False,
        exit_code="git",
        by_agent=False,
    )
    HOOK = FailureRow(
        "hook",
        "a hook failed",
        settings=("hooks.pre_iteration", "hooks.post_iteration", "hooks.on_failure"),
        advice="Run the hook's command by hand",
        has_output=False,
        exit_code="none",
        by_agent=False,
        told="failure",
    )
    BUDGET = FailureRow(
        "budget",
        "the run reached its budget",
        settings=("max_cost", "max_tokens"),
        advice="Raise max_cost or max_tokens to let the run spend more",
    )
    LIMIT = FailureRow(
        "limit",
        "the agent's usage limit is reached; this is not a failure",
        Reaction.LIMIT,
        settings=_LIMIT,
        by_cli=True,
        stopped="usage limit of {agent}",
    )
    OVERLOADED = FailureRow(
        "overloaded",
        "the agent's service is overloaded, broken, or rejects requests for a moment; "
        "this is not a failure",
        Reaction.OUTAGE,
        settings=_OUTAGE,
        advice="It may be over soon; a run waits for that (max_outage_wait)",
        by_cli=True,
        stopped=_OUTAGE_WORDS,
    )
    OFFLINE = FailureRow(
        "offline",
        "the agent could not reach its service; this is not a failure",
        Reaction.OUTAGE,
        settings=_OUTAGE,
        advice="Check the network, and the address of the agent's service",
        by_cli=True,
        stopped=_OUTAGE_WORDS,
    )
    AUTH = FailureRow(
        "auth",
        "the agent is not logged in, or its key is rejected",
        Reaction.ABORT,
        settings=_COMMAND,
        advice="Log in again, or correct the key",
        by_cli=True,
    )
    CONTEXT = FailureRow(
        "context",
        "the prompt or the conversation is too long for the model",
        advice="Give the agent less: a shorter prompt, fewer or smaller context files",
        by_cli=True,
    )
    USAGE = FailureRow(
        "usage",
        "the agent refuses a flag, a model, or the user it runs as",
        Reaction.ABORT,
        settings=_COMMAND,
        advice="Correct the command's flags or model, then try it with `rooda doctor`",
        by_cli=True,
    )
    STARTUP = FailureRow(
        "startup",
        "the agent ended before its first event",
        Reaction.BACKOFF,
        settings=_BACKOFF,
        advice="Run the command by hand, or `rooda doctor --canary` with its alias",
    )
    EMPTY = FailureRow(
        "empty",
        "it reports success, said nothing and changed nothing",
        Reaction.FAST_BACKOFF,
        settings=_BACKOFF,
        advice="Run the command by hand: it may not have received the prompt",
        by_cli=True,
    )

    @property
    def is_outage(self) -> bool:
        """Whether the agent's service recovers without action by the user."""
        return self.row.reaction is Reaction.OUTAGE


_BY_NAME: Mapping[str | None, FailureKind] = {kind.value: kind for kind in FailureKind}


def known_kind(name: str | None) -> FailureKind | None:
    """Return the kind with this name, or None if this version does not know it."""
    return _BY_NAME.get(name)


# The kinds that a CLI itself reports.
REPORTED_KINDS = tuple(kind for kind in FailureKind if kind.row.by_cli)
