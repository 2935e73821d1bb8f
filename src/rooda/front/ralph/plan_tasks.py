"""The task of an iteration by ralph's implementation plan, and ralph's prompt."""

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.templates import SHELL, fill
from rooda.plan.plan import CurrentTask
from rooda.plan.prompts.parts import FilePart, PromptError, refuse_empty
from rooda.plan.settings.settings import MAX_PROMPT_SIZE
from rooda.world.files.sight import Sight
from rooda.world.tasks.markdown_tasks import Task, became_complete, current_task, first_heading
from rooda.world.tasks.task_file import TaskFile, TaskFileError

_NO_TASK = "none"


class PlanTasks(Struct):
    """Reads the plan before and after the agent, which may have changed it."""

    plan: TaskFile | None  # None if the agent does not work on a task of the plan
    prompt: FilePart
    _before: tuple[Task, ...] = ()

    def now(self) -> CurrentTask:
        """Return the task in progress, else the first open one, else the heading of the prompt."""
        self._before = self._tasks()
        task = current_task(self._before)
        if task is not None:
            return CurrentTask(task.name, task.spec or "none")
        return CurrentTask(self._heading(), "none")

    def done(self, before: CurrentTask) -> CurrentTask:
        """Return the task that became complete, else the one before."""
        task = became_complete(self._before, self._tasks())
        return CurrentTask(task.name, task.spec or "none") if task is not None else before

    def in_sight(self, sight: Sight, /) -> "PlanTasks":
        """Return the tasks for an agent that sees only this."""
        plan = None if self.plan is None else replace(self.plan, sight=sight)
        return PlanTasks(plan, replace(self.prompt, sight=sight))

    def _tasks(self) -> tuple[Task, ...]:
        return () if self.plan is None else tasks_of(self.plan)

    def _heading(self) -> str:
        try:
            return first_heading(self.prompt.read(MAX_PROMPT_SIZE.default)) or _NO_TASK
        except PromptError:
            return _NO_TASK


def tasks_of(plan: TaskFile) -> tuple[Task, ...]:
    """Return the tasks in the plan; none if it can't be read."""
    try:
        return plan.read()
    except TaskFileError:
        return ()


class RalphPrompt(Struct, frozen=True):
    """A prompt file with `${NAME}`s in it."""

    file: FilePart
    names: tuple[tuple[str, str], ...]

    def in_sight(self, sight: Sight, /) -> "RalphPrompt":
        """Return the prompt for an agent that sees only this."""
        return replace(self, file=replace(self.file, sight=sight))

    def read(self, iteration: int, most: int | None = None, /) -> str:
        """Return the prompt of an iteration. Raises PromptError, also beyond `most` bytes."""
        text = self.file.read(most)
        refuse_empty(text, self.file.name)
        return fill(text, {**dict(self.names), "ITERATION": iteration}, SHELL)
