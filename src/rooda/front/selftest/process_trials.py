"""Trials of processes: each misbehaviour of the kill matrix once, and attacks on rooda itself."""

import os
import signal
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from rooda.front.selftest import agent_scripts as scripts
from rooda.front.selftest.misbehaviour import (
    AT_MAXIMUM,
    ENDS,
    MISBEHAVIOURS,
    End,
    Kept,
    Misbehaviour,
)
from rooda.front.selftest.scratch import Rooda, Scratch, TrialFailed, is_alive, record
from rooda.front.selftest.trial import (
    NO_CRASH,
    NOTHING_LIVES,
    NOTHING_LOST,
    Claim,
    Evidence,
    Need,
    Trial,
    ends_with,
    fact,
    numbers,
)

_INTERRUPTED = 130
_LINUX = (Need.SUBREAPER,)
# For each misbehaviour: the end with which it is tried, what the machine must have, and in words
# what the agent does.
_TRIED: Mapping[str, tuple[str, tuple[Need, ...], str]] = {
    "ignores TERM": (
        "timeout",
        (),
        "ignores SIGTERM, with a child and a grandchild, until its time is over",
    ),
    "setsid": ("clean exit", (), "exits, and leaves a child and a grandchild in another session"),
    "daemon": (
        "clean exit",
        (),
        "exits, and leaves a daemon (two forks, own session, no descriptors) that writes to a file",
    ),
    "cleared environment": (
        "SIGTERM",
        _LINUX,
        "has a child in another session without environment, when rooda gets SIGTERM",
    ),
    "holds descriptors": (
        "clean exit",
        (),
        "exits, and leaves a background process that holds its output open",
    ),
    "bomb": ("timeout", _LINUX, "forks fifty processes again and again, until its time is over"),
    "comet": (
        "SIGINT",
        _LINUX,
        "forks and exits at once, always in a new session, when rooda gets SIGINT",
    ),
    "closes its streams": ("failing exit", (), "closes its output long before it fails"),
    "stops itself": (
        "SIGTERM",
        (),
        "halts itself and a child with SIGSTOP, when rooda gets SIGTERM",
    ),
    "non-blocking": ("clean exit", (), "prints 8 MB without waiting for a reader, and exits"),
    "reopens /dev/stdout": ("clean exit", (), "prints to /dev/stdout, as scripts do, and exits"),
    "terminal": (
        "SIGTERM",
        (),
        "runs a child on a terminal of its own that ignores signals, when rooda gets SIGTERM",
    ),
    "everything": ("SIGKILL", _LINUX, "does all of this at once, when rooda is killed"),
}
_ENDS = {end.name: end for end in ENDS}


def matrix_trials() -> list[Trial]:
    """Return a trial for each misbehaviour of the kill matrix."""
    return [_matrix_trial(one, *_TRIED[one.name]) for one in MISBEHAVIOURS]


def _matrix_trial(one: Misbehaviour, end_name: str, needs: tuple[Need, ...], does: str) -> Trial:
    end = _ENDS[end_name]
    claims: tuple[Claim, ...] = (NOTHING_LIVES, NO_CRASH)
    if not end.is_death:  # rooda can't say how it ended, and bytes in the pipe die with it
        # The last words do not count if they did not fit into the pipe.
        codes = {end.code, AT_MAXIMUM} if one.in_pipe.cut else {end.code}
        claims = (ends_with(*sorted(codes)), NOTHING_LIVES, NOTHING_LOST, NO_CRASH)
    return Trial(one.name, does, claims, partial(misbehave, one, end), needs)


def misbehave(one: Misbehaviour, end: End, scratch: Scratch, *more: str) -> Evidence:
    """Run an agent of the kill matrix to its end; return what is left of it."""
    flags = (*scratch.python_agent(one.script, end.word), "--capture", "pipe", *more)
    if end.is_timeout:
        evidence = scratch.within_limit("--iteration-timeout", partial(scratch.start, *flags))
    else:
        run = scratch.start(*flags)
        if end.sent is not None:
            scratch.until_ready(run)
            run.send(end.sent)
        evidence = scratch.finish(run)
    if end.is_death:
        return replace(evidence, survivors=scratch.until_empty())
    return replace(evidence, missing=_missing(scratch, one.kept("pipe", end)))


def _missing(scratch: Scratch, promised: Kept) -> int:
    try:
        return scratch.missing(promised.of(scratch.tree))
    except (OSError, ValueError) as error:
        raise TrialFailed(f"the agent of the trial was stopped too early: {error}") from None


# -- agents that hang ------------------------------------------------------------------------

_STAYS = Misbehaviour("stays", "an agent with a child", scripts.PLAIN)
_RESULT = '{"type":"result","is_error":false,"result":"<promise>SUCCESS</promise>"}'
_FINISHES = Misbehaviour("finishes", "", f"{scripts.PLAIN}say(b'{_RESULT}\\n')\n")
# rooda takes the form of the output from the first line of an unknown program.
_FIRST_LINE = """import os
os.write(1, b'{"type":"system","subtype":"init"}\\n')
"""


def adapter(scratch: Scratch, command: str) -> tuple[str, ...]:
    """Return the flags that make a command the agent, and read it as Claude Code."""
    config = f"ai_cmd_aliases:\n  trial:\n    command: {_quoted(command)}\n    adapter: claude\n"
    (scratch.tree / "rooda-config.yml").write_text(config, encoding="utf-8")
    return ("--ai-cmd-alias", "trial")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _never_exits(scratch: Scratch) -> Evidence:
    _, command = scratch.python_agent(_FIRST_LINE + _FINISHES.script, "stay")
    return scratch.finish(scratch.start(*adapter(scratch, command), "--result-grace", "0.5s"))


def _hangs(scratch: Scratch) -> Evidence:
    start = partial(scratch.start, *scratch.python_agent(_STAYS.script, "stay"))
    return scratch.within_limit("--idle-timeout", start)


# -- attacks on rooda ------------------------------------------------------------------------

# At its second start, the agent has nothing left to do.
_DONE = """
if os.path.exists(os.path.join(HERE, "ready")):
    say(b"<promise>SUCCESS</promise>\\n")
    os._exit(0)
"""
_TWICE = Misbehaviour("twice", "", _DONE + scripts.SETSID)
# The parent of the agent is the warden, and rooda is the parent of the warden.
_HALTS = Misbehaviour(
    "halts", "", scripts.PLAIN + "os.kill(int(stat(os.getppid())[1]), signal.SIGSTOP)\n"
)


def _started(scratch: Scratch, *flags: str) -> Rooda:
    run = scratch.start(*scratch.python_agent(_TWICE.script, "stay"), *flags)
    scratch.until_ready(run)
    return run


def _rooda_killed(scratch: Scratch) -> Evidence:
    run = _started(scratch)
    run.send(signal.SIGKILL)
    killed = scratch.finish(run)
    left = scratch.until_empty()
    if left or killed.code != -signal.SIGKILL:
        return replace(killed, survivors=left)
    return scratch.finish(scratch.resume())


def _warden_killed(scratch: Scratch) -> Evidence:
    run = _started(scratch, "-n", "2", "--failure-threshold", "2")
    warden = record(scratch.tree, "warden")
    if not is_alive(*warden):
        raise TrialFailed("the warden of the trial was gone before the trial killed it")
    os.kill(warden[0], signal.SIGKILL)
    return scratch.finish(run)


def _ctrl_c(scratch: Scratch) -> Evidence:
    run = _started(scratch)
    run.send(signal.SIGINT, to_group=True)
    found = scratch.finish(run)
    status = found.outcome.status if found.outcome else "unknown"
    return replace(found, facts={"status": status})


def _rooda_halted(scratch: Scratch) -> Evidence:
    start = partial(scratch.start, *scratch.python_agent(_HALTS.script, "stay"))
    return scratch.within_limit("--iteration-timeout", start)


def attack_trials() -> list[Trial]:
    """Return the trials of agents that hang, and of attacks on rooda's own processes."""
    rows: list[tuple[str, str, tuple[Claim, ...], Callable[[Scratch], Evidence]]] = [
        (
            "never exits",
            "reports its result, and then neither it nor its child ends",
            (ends_with(0), NOTHING_LIVES, numbers("its result counts", good=1)),
            _never_exits,
        ),
        (
            "hangs silently",
            "prints nothing and does nothing (idle_timeout)",
            (ends_with(1), NOTHING_LIVES, NO_CRASH),
            _hangs,
        ),
        (
            "Ctrl+C",
            "works, with a child in its own session, when the user presses Ctrl+C",
            (
                ends_with(_INTERRUPTED),
                NOTHING_LIVES,
                fact("status", "interrupted", "the run is recorded as interrupted"),
            ),
            _ctrl_c,
        ),
        (
            "kill -9 of rooda",
            "works, with a child in its own session, when rooda is killed",
            (
                NOTHING_LIVES,
                ends_with(0),
                numbers("`rooda resume` finishes the run", good=1),
            ),
            _rooda_killed,
        ),
        (
            "kill -9 of the warden",
            "works, with a child in its own session, when rooda's helper process is killed",
            (
                ends_with(0),
                NOTHING_LIVES,
                numbers("only that iteration fails", failed=1, good=1),
            ),
            _warden_killed,
        ),
    ]
    found = [Trial(*row) for row in rows]
    claims = (ends_with(1), NOTHING_LIVES, NO_CRASH)
    does = "halts rooda with SIGSTOP and goes on (iteration_timeout)"
    return [*found, Trial("halts rooda", does, claims, _rooda_halted, (Need.PROC,))]
