"""The agent of one iteration: the prompt as a file, the output on disk, the clocks that are on."""

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.event import Event
from rooda.loop.context import IterationContext
from rooda.loop.events.agent import AgentSaid, NotesGiven, UsageSeen
from rooda.loop.events.run import StateUnwritable
from rooda.loop.failure import room_advice
from rooda.loop.result import Printed
from rooda.loop.session import Response, response_of
from rooda.loop.state import Limits, State
from rooda.plan.plan import Plan
from rooda.plan.prompts.parts import PromptError
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    FIRST_OUTPUT_TIMEOUT,
    IDLE_TIMEOUT,
    ITERATION_TIMEOUT,
    KEEP_PROCESSES,
    KILL_GRACE,
    MAX_DURATION,
    MAX_OUTPUT_BUFFER,
    MAX_TRANSCRIPT,
    RESULT_GRACE,
)
from rooda.world.agents.agent_report import Said, Usage
from rooda.world.agents.output_reader import OutputReader
from rooda.world.git.work_tree import changed_within, work_tree
from rooda.world.process.capture.buffers import Captured
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import Output, ProcessStarted
from rooda.world.process.exits import Canceled, NotStarted, Signalled, TimedOut
from rooda.world.process.request import ProcessRequest, ProcessResult, Transcript, Wrapped
from rooda.world.state.folder import (
    ORDER,
    keep_file,
    open_prompt,
    open_transcript,
    sealed_file,
)

_NOTE_START = 4000  # characters of a note in the record; the prompt is in the record too


def clocks(plan: Plan, limits: Limits, state: State) -> tuple[Clock, ...]:
    """The clocks that are on, by the names of their settings."""
    left = None if limits.max_duration is None else max(0.0, limits.max_duration - state.elapsed)
    values = plan.values
    every: tuple[tuple[Setting[Any], float | None, Since], ...] = (
        (FIRST_OUTPUT_TIMEOUT, values[FIRST_OUTPUT_TIMEOUT], Since.FIRST_OUTPUT),
        (IDLE_TIMEOUT, values[IDLE_TIMEOUT], Since.ACTIVITY),
        (ITERATION_TIMEOUT, values[ITERATION_TIMEOUT], Since.START),
        (RESULT_GRACE, values[RESULT_GRACE], Since.RESULT),
        (MAX_DURATION, left, Since.START),
    )
    return tuple(
        Clock(setting.key, limit, since, values[setting])
        for setting, limit, since in every
        if limit is not None
    )


class Budget(Struct, frozen=True):
    """The budget that is left."""

    cost: float | None = None
    tokens: int | None = None

    @classmethod
    def left(cls, limits: Limits, state: State) -> "Budget":
        """Return the budget that is left now."""
        return cls(
            None if limits.max_cost is None else limits.max_cost - state.cost,
            None if limits.max_tokens is None else limits.max_tokens - state.tokens,
        )

    def exceeded(self, usage: Usage) -> Canceled | None:
        """Return why this exceeds the budget that is left, if it does."""
        cost, tokens = usage.cost, usage.tokens.total if usage.tokens else None
        if self.cost is not None and cost is not None and cost >= self.cost:
            reason = f"${cost:.2f} spent, ${max(0.0, self.cost):.2f} were left (max_cost)"
            return Canceled("max_cost", reason)
        if self.tokens is not None and tokens is not None and tokens >= self.tokens:
            reason = f"{tokens:,} tokens used, {max(0, self.tokens):,} were left (max_tokens)"
            return Canceled("max_tokens", reason)
        return None


def run_agent(context: IterationContext) -> None:
    """Run the agent of an iteration to its end. Raises PromptError without room for the prompt."""
    _AgentRun(context).run()


class _AgentRun:
    """One start of an agent: rooda reads what a known CLI prints while it prints it."""

    def __init__(self, context: IterationContext) -> None:
        self._context = context
        self._plan = context.plan
        self._agent = context.agent
        self._number = context.number
        self._place = context.place
        self._services = context.services
        self._budget = Budget.left(context.limits, context.state)
        self._told_of_trouble = False
        self._reader = self._new_reader()
        self._seen: tuple[int | None, float | None] = (None, None)

    def run(self) -> None:
        """Run it, and put into the context how it ended and what it reported."""
        context, place = self._context, self._place
        try:
            stdin = open_prompt(self._plan.state, place, context.prompt, self._trouble)
        except OSError as error:
            raise PromptError(str(error), hint=room_advice(error)) from None
        if self._services.sandbox is not None:
            stdin = self._sealed(stdin)
        context.agent_started, began = time.time(), time.monotonic()
        with stdin, self._transcript() as transcript:
            result = self._execute(stdin, transcript)
        context.agent_ms = round(1000 * (time.monotonic() - began))
        if result.order is not None:
            keep_file(self._plan.state, f"{place}/{ORDER}", result.order.dump())
        context.process = result
        context.response = self._response(result)
        context.learn(
            truncated=result.stdout.truncated or result.stderr.truncated,
            cleaned_up=result.cleaned_up,
        )
        if context.report is not None:
            report = context.report
            context.learn(incomplete=not report.is_complete, **report.usage.session)

    def _sealed(self, kept: IO[bytes]) -> IO[bytes]:
        """Return the prompt as a file in memory, where the system has such files.

        A program can open its standard input again for writing (/proc/self/fd/0), and so change
        the prompt in the record, although it does not see the record.
        """
        try:
            sealed = sealed_file(self._context.prompt)
        except OSError:
            return kept
        kept.close()
        return sealed

    def _response(self, result: ProcessResult) -> Response:
        response = response_of(result.exit, Printed(result.stdout.tail, result.stderr.tail))
        if self._reader is None:
            return response
        self._tell(self._reader.finish())
        report = self._reader.report(
            None if isinstance(result.exit, TimedOut) else response.exit_code,
            # An agent that was killed said no last words: its tools printed what stands there.
            had_last_words=not isinstance(result.exit, Signalled),
        )
        self._context.report = report
        return replace(response, spoken=report.spoken) if report.speaks_events else response

    def _new_reader(self) -> OutputReader | None:
        """Return the reader of its output; None for a CLI that rooda does not know."""
        program = self._agent.program
        if not program.is_known:
            return None
        return OutputReader(
            program.adapter,
            program.form,
            folder=str(self._plan.working_dir),
            model=program.model,
            limit=self._plan.values[MAX_OUTPUT_BUFFER],
        )

    def _hear(self, event: Event) -> None:
        """Pass on what happens to the process; of its output also what a person can read."""
        self._services.emit(event)
        if isinstance(event, ProcessStarted):
            self._note_start()
        self._services.note_halt(event)
        if self._reader is None or not isinstance(event, Output):
            return
        self._tell(self._reader.feed(event.stream, event.data))
        usage = self._reader.usage
        seen = (usage.tokens.total if usage.tokens else None, usage.cost)
        if seen != self._seen:
            self._seen = seen
            self._services.emit(UsageSeen(self._number, usage.model, *seen))

    def _note_start(self) -> None:
        """Note that the agent has got its prompt, and the user's notes in it."""
        context, box = self._context, self._services.notes
        context.is_started = True
        if context.notes and box is not None:
            beginnings = tuple(note.text[:_NOTE_START] for note in context.notes)
            is_new = box.announce(context.notes)
            self._services.emit(NotesGiven(self._number, beginnings, is_new))

    def _tell(self, said: Iterable[Said]) -> None:
        for line in said:
            self._services.emit(AgentSaid(self._number, str(line.kind), line.text))

    def _look_around(self) -> Canceled | None:
        """Take the user's new notes into memory, and return why to stop the agent, if so.

        rooda calls this whenever something happens.
        """
        if self._services.notes is not None:
            self._services.notes.look()
        return self._over_budget()

    def _over_budget(self) -> Canceled | None:
        """Return why the agent is over budget, if it is; after its result that no longer counts."""
        if self._reader is None or self._reader.is_result_in:
            return None
        return self._budget.exceeded(self._reader.usage)

    def _trouble(self, error: OSError) -> None:
        """Tell once in an iteration that the state folder can't be written."""
        if not self._told_of_trouble:
            self._told_of_trouble = True
            self._services.emit(StateUnwritable(self._number, str(error)))

    @contextlib.contextmanager
    def _transcript(self) -> Iterator[Transcript | None]:
        """Return files for the agent's output; None if the disk is full: then rooda uses pipes."""
        plan = self._plan
        files = open_transcript(plan.state, self._place, self._trouble)
        if files is None:
            yield None
            return
        with files[0] as stdout, files[1] as stderr:
            direct = plan.writes_to_files(self._agent)
            yield Transcript(stdout, stderr, direct, plan.values[MAX_TRANSCRIPT])

    def _execute(self, stdin: IO[bytes], transcript: Transcript | None) -> ProcessResult:
        plan, values = self._plan, self._plan.values
        interrupts = self._services.interrupts
        hurried = len(interrupts.received)
        try:
            started = self._as_started()
        except OSError as error:  # the sandbox can't protect a path any more
            nothing = Captured(b"", b"", 0)
            end = NotStarted(error.strerror or str(error), error.errno or 0)
            return ProcessResult(end, nothing, nothing, 0.0)
        request = ProcessRequest(
            argv=started.program,
            cwd=plan.working_dir,
            environ=started.environ,
            stdin=stdin,
            output_limit=values[MAX_OUTPUT_BUFFER],
            transcript=transcript,
            clocks=clocks(plan, self._context.limits, self._context.state),
            kill_grace=values[KILL_GRACE],
            keep=values[KEEP_PROCESSES],
            tick=self._services.tick,
            result_is_in=lambda: self._reader is not None and self._reader.is_result_in,
            canceled=self._look_around,
            changed_within=lambda seconds: changed_within(
                work_tree(plan.working_dir), seconds, lambda: len(interrupts.received) > hurried
            ),
            jail=started.jail,
        )
        result = self._services.execute(request, interrupts, self._hear)
        if self._services.sandbox is not None:
            self._services.sandbox.settle(started.environ)
        return result

    def _as_started(self) -> Wrapped:
        """Return the command line of the agent, in the sandbox if the run has one."""
        agent, sandbox = self._agent, self._services.sandbox
        environ = self._plan.environ_of(agent)
        if sandbox is None:
            return Wrapped((), agent.argv, environ)
        adapter = agent.program.adapter
        argv = adapter.in_sandbox(agent.argv)
        return sandbox.wrap(argv, self._plan.working_dir, environ, adapter.needs)
