"""The agent of one iteration: the prompt as a file, the output on disk, the clocks that are on."""

import contextlib
from collections.abc import Iterator
from typing import IO, Any

from rooda.config.plan import Plan
from rooda.config.settings import (
    FIRST_OUTPUT_TIMEOUT,
    IDLE_TIMEOUT,
    ITERATION_TIMEOUT,
    KEEP_PROCESSES,
    KILL_GRACE,
    MAX_DURATION,
    MAX_OUTPUT_BUFFER,
    MAX_TRANSCRIPT,
    RESULT_GRACE,
    Setting,
)
from rooda.iteration.config import IterationConfig
from rooda.iteration.session import Response, response_of
from rooda.iteration.types import Printed
from rooda.loop import events
from rooda.loop.edge import Edge
from rooda.loop.failure import room_advice
from rooda.loop.state import Limits, State
from rooda.process.clocks import Clock, Since
from rooda.process.request import Request, Result, Transcript
from rooda.prompts.parts import PromptError
from rooda.workspace.state import ORDER, keep_file, open_prompt, open_transcript
from rooda.workspace.tree import changed_within, work_tree


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


class AgentSession:
    """Runs the plan's command once, with the prompt on its standard input."""

    def __init__(
        self, plan: Plan, number: int, place: str, clocks: tuple[Clock, ...], edge: Edge
    ) -> None:
        self.result: Result | None = None
        self._plan = plan
        self._number = number
        self._place = place
        self._clocks = clocks
        self._edge = edge
        self._told_of_trouble = False

    def execute_prompt(self, prompt: str, config: IterationConfig) -> Response:  # noqa: ARG002 - the plan knows more
        """See the agent through. Raises PromptError when there is no room for the prompt."""
        text = prompt.encode("utf-8", "surrogateescape")
        plan, place = self._plan, self._place
        try:
            stdin = open_prompt(plan.workspace, place, text, self._trouble)
        except OSError as error:
            raise PromptError(str(error), hint=room_advice(error)) from None
        with stdin, self._transcript() as transcript:
            result = self._execute(stdin, transcript)
        if result.order is not None:
            keep_file(plan.workspace, f"{place}/{ORDER}", result.order.dump())
        self.result = result
        return response_of(result.exit, Printed(result.stdout.tail, result.stderr.tail))

    def get_context_usage(self) -> int | None:
        """Nobody knows it yet."""
        return None

    def _trouble(self, error: OSError) -> None:
        """Tell once in an iteration that the state folder can't be written."""
        if not self._told_of_trouble:
            self._told_of_trouble = True
            self._edge.emit(events.StateUnwritable(self._number, str(error)))

    @contextlib.contextmanager
    def _transcript(self) -> Iterator[Transcript | None]:
        """Files for what the agent prints; none where the disk has no room: then pipes must do."""
        plan = self._plan
        files = open_transcript(plan.workspace, self._place, self._trouble)
        if files is None:
            yield None
            return
        with files[0] as stdout, files[1] as stderr:
            yield Transcript(stdout, stderr, plan.writes_to_files, plan.values[MAX_TRANSCRIPT])

    def _execute(self, stdin: IO[bytes], transcript: Transcript | None) -> Result:
        plan, values = self._plan, self._plan.values
        interrupts = self._edge.interrupts
        hurried = len(interrupts.received)
        request = Request(
            argv=plan.argv,
            cwd=plan.working_dir,
            environ=plan.environ,
            stdin=stdin,
            output_limit=values[MAX_OUTPUT_BUFFER],
            transcript=transcript,
            clocks=self._clocks,
            kill_grace=values[KILL_GRACE],
            keep=values[KEEP_PROCESSES] or (),
            tick=self._edge.tick,
            changed_within=lambda seconds: changed_within(
                work_tree(plan.working_dir), seconds, lambda: len(interrupts.received) > hurried
            ),
        )
        return self._edge.execute(request, interrupts, self._edge.emit)
