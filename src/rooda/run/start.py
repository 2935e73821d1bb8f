"""Start a prepared run: wire the views to the events, run the loop, return the exit code."""

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.base.colors import Painter, wants_color
from rooda.base.event import LogLevel
from rooda.base.problems import InvalidInput, Problem, Severity, problems_text, warnings
from rooda.base.secrets.masking import Masker
from rooda.base.secrets.sensitive import without_secret_values
from rooda.base.times import local_now
from rooda.loop.events.emitter import Emitter
from rooda.loop.events.run import ConfigResolved, ProblemFound
from rooda.loop.loop import run_loop
from rooda.loop.note_delivery import NoteBox
from rooda.loop.services import Services
from rooda.plan.configured_env import address_variable
from rooda.plan.own_files import trees_of_agents
from rooda.plan.plan import Plan
from rooda.plan.preflight.state import unwritable
from rooda.plan.prepare import Prepared
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import (
    AI_OUTPUT_STREAM,
    COLOR,
    LOG_FILE,
    LOG_FORMAT,
    LOG_LEVEL,
    LOG_TIMESTAMP_FORMAT,
    SEPARATORS,
    SHOW_AI_OUTPUT,
)
from rooda.plan.world import this_world
from rooda.run.lock import RunLock, hold_run_lock
from rooda.run.outcome import OutcomeKeeper, RunOutcome
from rooda.run.request import ForPrograms, Invocation, readable_again
from rooda.run.resume import resume
from rooda.run.services.keep_awake import keep_awake
from rooda.run.services.messages import notifying
from rooda.run.services.recording import AskedFor, Recording
from rooda.run.services.sandbox import check_tree_of, open_sandbox, take_over_left
from rooda.run.services.work_tree import (
    noted_for_resume,
    protected_files,
    switch_branch,
    user_files,
)
from rooda.views.terminal import live_line, log
from rooda.views.terminal.live_line import LiveLine
from rooda.views.terminal.log import EventMasker, Log, LogFile
from rooda.views.terminal.terminal import AgentOutput, Separators, Sink, Terminal
from rooda.world.git.pin import Pin
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.libc import return_large_blocks_to_system
from rooda.world.state.folder import make_state_folder
from rooda.world.state.record_place import note_tree

_COLLECT_AFTER = 700  # new objects between two searches for garbage, as is usual


class _Wiring(Struct):
    """The listeners of a run."""

    emitter: Emitter
    terminal: Terminal
    tick: float | None = None
    bell: Callable[[], None] | None = None
    closing: list[Callable[[], None]] = field(default_factory=list)


class RunResult(Struct, frozen=True):
    """The exit code of a run, and the errors of listeners that it survived."""

    exit_code: int
    outcome: RunOutcome
    failures: tuple[Exception, ...] = ()


def start_run(
    prepared: Prepared, interrupts: Interrupts, invocation: Invocation | None = None
) -> RunResult:
    """Run the plan to its end. Raises InvalidInput when it may not start.

    `invocation` says which earlier run goes on, and what the record keeps of the command line;
    a run without one is not meant to be continued.
    """
    plan = _startable(prepared)
    return_large_blocks_to_system()
    local_now()  # loads what it needs now: later there may be no descriptor left
    plan.tools.interrupts = interrupts
    # From here on, a signal ends the run cleanly.
    with interrupts.deferred(), ExitStack() as closing:
        programs = ForPrograms() if invocation is None else invocation.programs
        lock = closing.enter_context(hold_run_lock(plan, programs.run_id))
        recording = _open_recording(plan, lock, programs, closing)
        taken_up = None if invocation is None else invocation.taken_up
        resumed = None
        if invocation is not None and taken_up is not None:
            resumed = resume(plan, taken_up.run, invocation.commands)
            lock.run = resumed.row.run
        # Before `inherit`: it is no leftover of an agent.
        awake = closing.enter_context(keep_awake(plan, lock.run))
        messages = closing.enter_context(notifying(plan, lock.run, invocation))
        plan.tools.runner.inherit()
        runner = closing.enter_context(plan.tools.runner)
        runner.name, runner.token = lock.run, lock.token
        left, switched = (
            closing.enter_context(take_over_left(plan, resumed=resumed is not None)),
            switch_branch(plan),
        )
        sandbox, pin = open_sandbox(plan), Pin.of(plan.working_dir, plan.tools)
        for opened in (sandbox, pin):
            if opened is not None:
                closing.callback(opened.close)
        files, doubts = user_files(plan, lock.run, pin, is_new=resumed is None)
        masker = Masker({**plan.environ, **address_variable(plan.values)})
        wiring = _wire(plan, interrupts, masker)
        emitter = wiring.emitter
        for close in (*wiring.closing, wiring.terminal.close):
            closing.callback(close)
        asked = None if invocation is None else _asked(invocation, plan, lock.run)
        closing.callback(recording.listen(emitter, lock.run, resumed, asked, pin, masker))
        _introduce(prepared, emitter, doubts)
        if taken_up is not None and resumed is not None:
            emitter(taken_up.told(resumed.state))
        if switched is not None:
            emitter(switched)
        keeper = OutcomeKeeper(lock.run, plan.procedure, resumed)
        emitter.add(keeper)
        emitter.add(lock.note_agent)
        awake.listen(emitter)
        messages.listen(emitter, masker, wiring.bell)
        lock.clear_what_is_left(emitter)
        recording.prune(emitter, lock.run)
        notes = closing.enter_context(contextlib.closing(NoteBox(plan.state)))
        services = Services(
            emitter,
            interrupts,
            runner.run,
            interrupts.stopwatch.now,
            wiring.tick,
            lock.run,
            recording.tracker(lock.run),
            recording.history(resumed),
            tools=plan.tools,
            pin=pin,
            user_files=files,
            rest=interrupts.rest,
            notes=notes,
            sandbox=sandbox,
            tree_check=check_tree_of(plan, sandbox, pin, left),
            protected=protected_files(plan, lock.run, emitter, is_new=resumed is None),
            masker=masker,
        )
        if invocation is not None:
            services = _as_started(services, invocation, plan)
        # What is loaded by now stays until the end. The entry point has made collections rare.
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)
        with noted_for_resume(files, plan, lock.run):
            ended = run_loop(plan, services, resumed.state if resumed else None)
        return RunResult(
            ended.facts.exit_code or 0, masker.tree(keeper.outcome(ended)), tuple(emitter.failures)
        )


def _startable(prepared: Prepared) -> Plan:
    """Return the plan, if a run may start and its state folder is there. Raises InvalidInput."""
    plan = prepared.plan
    if plan is None or not prepared.valid:
        raise InvalidInput(prepared.all_problems())
    try:
        make_state_folder(plan.state)
        note_tree(plan.state, plan.workspace)
    except OSError as error:
        raise InvalidInput([_unwritable(plan.state, error)]) from None
    return plan


def _open_recording(
    plan: Plan, lock: RunLock, programs: ForPrograms, closing: ExitStack
) -> Recording:
    """Open the record for a run that holds the lock. Raises InvalidInput."""
    recording = Recording.open(plan, is_alone=lock.is_held)
    closing.callback(recording.close)
    if programs.run_id:
        recording.refuse_known(programs.run_id)
    return recording


def _as_started(services: Services, invocation: Invocation, plan: Plan) -> Services:
    """Return the services with what the start of the run says: commands, accounts, the pause."""
    programs = invocation.programs
    return replace(
        services,
        commands=invocation.commands.named(services.run),
        accounts=programs.accounts(plan.agents),
        pause_after=programs.pause_after,
    )


def _asked(invocation: Invocation, plan: Plan, run: str) -> AskedFor:
    """Return what the record keeps of the command line, and the folder where the user gave it."""
    folder = os.path.relpath(this_world().folder, plan.workspace)
    given = replace(readable_again(invocation.given, plan), folder=folder)
    return AskedFor(given, invocation.commands.named(run))


def _wire(plan: Plan, interrupts: Interrupts, masker: Masker) -> _Wiring:
    values = plan.values

    def hurried() -> bool:
        return bool(interrupts.received)

    out, err = Sink(_descriptor(sys.stdout, 1), hurried), Sink(_descriptor(sys.stderr, 2), hurried)
    terminal = Terminal(out, err)
    emitter = Emitter(monotonic=interrupts.stopwatch.now, mask=EventMasker(masker))
    wiring = _Wiring(emitter, terminal)
    if err.is_terminal:
        wiring.bell = partial(terminal.log, "\a")
    if values[SHOW_AI_OUTPUT]:  # before the log: the line about a program follows its output
        emitter.add_view(AgentOutput(terminal, values[AI_OUTPUT_STREAM] == "stderr", masker))
    emitter.add_view(_terminal_log(plan, terminal, is_terminal=err.is_terminal))
    if values[LOG_FILE] is not None:
        _add_log_file(values, wiring)
    if values[SEPARATORS]:
        emitter.add_view(Separators(terminal))
    if _wants_live_line(err, values, plan):
        emitter.add_view(LiveLine(terminal))
        wiring.tick = live_line.TICK
    return wiring


def _descriptor(stream: object, standard: int) -> int:
    try:
        return int(stream.fileno())  # type: ignore[attr-defined]  # any stream, or none at all
    except (AttributeError, OSError, ValueError):
        return standard


def _wants_live_line(err: Sink, values: Values, plan: Plan) -> bool:
    """Return whether to show the live line: on a terminal that can redraw, and not in CI."""
    return (
        err.is_terminal
        and values[LOG_FORMAT] == "text"
        and values[LOG_LEVEL] in ("debug", "info")
        and not plan.environ.get("CI")
        and plan.environ.get("TERM", "") not in ("", "dumb")
    )


def _log(values: Values, write: Callable[[str], None], default_time: str) -> Log:
    chosen = values[LOG_TIMESTAMP_FORMAT]
    time = log.TIME_FORMATS[default_time if chosen == log.AUTO_TIME else chosen]
    return Log(values[LOG_FORMAT], time, LogLevel[values[LOG_LEVEL].upper()], write)


def _terminal_log(plan: Plan, terminal: Terminal, *, is_terminal: bool) -> Log:
    """Return the log on standard error, with colors if it is text and they are wanted."""
    values = plan.values
    plain = _log(values, terminal.log, log.DEFAULT_TIMES[values[LOG_FORMAT]])
    if values[LOG_FORMAT] != "text":
        return plain
    paint = Painter(wants_color(values[COLOR], plan.environ, is_terminal=is_terminal))
    return replace(plain, paint=paint, width=(lambda: terminal.width) if is_terminal else None)


def _add_log_file(values: Values, wiring: _Wiring) -> None:
    try:
        file = LogFile(
            Path(str(values[LOG_FILE])), trees=trees_of_agents(values, this_world().folder)
        )
    except OSError as error:
        problem = Problem.at(
            values.origin(LOG_FILE),
            values.field(LOG_FILE),
            f"the log file {values[LOG_FILE]} can't be written: {error.strerror}",
            "Choose another with --log-file",
        )
        raise InvalidInput([problem]) from None
    wiring.closing.append(file.close)
    wiring.emitter.add_view(_log(values, file.write, log.LOG_FILE_TIME))


def _introduce(prepared: Prepared, emitter: Emitter, doubts: Sequence[Problem]) -> None:
    """Emit the settings of the run, and the warnings of the checks before its start."""
    values = prepared.values
    for setting in values:
        shown = without_secret_values(setting.show(values[setting]))
        emitter(ConfigResolved(setting.field, shown, values.origin(setting).exact))
    for problem in (*warnings(prepared.all_problems()), *prepared.at_start, *doubts):
        emitter(_found(problem))


def _unwritable(state: Path, error: OSError) -> Problem:
    found = unwritable(state, error)
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return replace(found, suggestion="Free some disk space") if is_full else found


def report(problems: Sequence[Problem], values: Values) -> None:
    """Print the problems in the format of the log, and write them to the log file too."""
    err = Sink(_descriptor(sys.stderr, 2))
    masker = Masker(this_world().environ)
    wiring = _Wiring(Emitter(mask=masker.tree), Terminal(err, err))
    if values[LOG_FORMAT] == "text":
        err.write(masker.text(problems_text(problems)))
    else:
        wiring.emitter.add_view(_log(values, err.write, log.DEFAULT_TIMES[values[LOG_FORMAT]]))
    if values[LOG_FILE] is not None:
        with contextlib.suppress(InvalidInput):  # `problems` has that error already
            _add_log_file(values, wiring)
    for problem in problems:
        wiring.emitter(_found(problem))
    for close in wiring.closing:
        close()


def _found(problem: Problem) -> ProblemFound:
    return ProblemFound(
        problem.severity,
        problem.title if problem.severity is Severity.ERROR else "Warning",
        problem.message,
        problem.suggestion,
        problem.file,
        problem.line,
        problem.field,
    )
