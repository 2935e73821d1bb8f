"""The base class of the adapters. An adapter holds all that rooda knows about one agent CLI."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from msgspec import Struct

from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Fault, Form, Usage
from rooda.world.agents.facts import AgentFacts, FlagRule, SandboxNeeds, ToolPermissions, flag_value
from rooda.world.agents.faults import error_as_answer, known_error
from rooda.world.agents.json_events import Event

# The values of the output flag in several CLIs.
JSON_FORMS: Final[Mapping[str, Form]] = {"stream-json": Form.EVENTS, "json": Form.DOCUMENT}


class LastOutput(Struct, frozen=True):
    """The end of a CLI's output on each stream, as text without control codes.

    `beginning` is the start of standard error. `failed`: the exit code is not 0.
    """

    stdout: str
    stderr: str
    beginning: str
    failed: bool
    form: Form


class Adapter:
    """One agent CLI. A subclass overrides what differs; the defaults fit a CLI that prints text.

    `name` is the name of the adapter, of the program and of the built-in alias.
    `output_flags` are the flags that set the form of the output, `output_forms` are their values.
    `rooda doctor` checks command lines with `permissions` and `flag_rules`.
    `needs` are the files and variables that the CLI gets in the sandbox.
    """

    name: ClassVar[str]
    facts: ClassVar[AgentFacts]
    output_flags: ClassVar[tuple[str, ...]] = ()
    output_forms: ClassVar[Mapping[str, Form]] = {}
    permissions: ClassVar[ToolPermissions] = ToolPermissions()
    flag_rules: ClassVar[tuple[FlagRule, ...]] = ()
    needs: ClassVar[SandboxNeeds] = SandboxNeeds()

    def form(self, words: Sequence[str]) -> Form:
        """Return the form of the output that the flags of a command line select."""
        chosen = flag_value(words, *self.output_flags)
        return self.output_forms.get(chosen or "", Form.TEXT)

    def in_sandbox(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return a command line with the CLI's own sandbox switched off.

        A sandbox inside of rooda's sandbox often fails, and the CLI still exits with 0. The command
        line of a script that starts the CLI is unchanged: the flags of the script are unknown.
        """
        for place, word in enumerate(words, 1):
            if PurePath(word).name == self.name:
                return (*words[:place], *self.without_own_sandbox(words[place:]))
        return tuple(words)

    def without_own_sandbox(self, flags: Sequence[str], /) -> tuple[str, ...]:
        """Return the flags of the CLI that switch its own sandbox off."""
        return tuple(flags)

    def read(self, event: Event, notes: AgentNotes, /) -> None:
        """Record the content of an output event in the notes."""

    def text_usage(self, _printed: LastOutput, /) -> Usage:
        """Return the usage that the CLI prints as text next to the assistant's answer."""
        return Usage()

    def last_words(self, _printed: LastOutput, /) -> Fault | None:
        """Return the failure that the CLI reports outside of its events: on stderr, or as text."""
        return None

    def error_as_answer(self, printed: LastOutput, /) -> Fault | None:
        """Return the error that the CLI prints as text in place of an answer, with exit code 0."""
        if printed.stdout.strip():
            return error_as_answer(printed.stdout)
        on_stderr = self.facts.speaks_on_stderr
        return error_as_answer(printed.stderr) if on_stderr else known_error(printed.stderr)


class AnyCommand(Adapter):
    """A command that rooda does not know: only its exit code and its signals count."""

    name = "text"
    facts = AgentFacts(
        install="", otherwise="the account in its own settings", speaks_on_stderr=True
    )

    def error_as_answer(self, _printed: LastOutput) -> Fault | None:
        """Return None: the words of the command may mean anything."""
        return None


ADAPTER = AnyCommand()
