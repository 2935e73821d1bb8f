"""Joins the parts into the prompt of one iteration."""

from collections.abc import Iterator, Mapping, Sequence

from rooda.plan.prompts import builtin
from rooda.plan.prompts.parts import (
    PHASES,
    BuiltinPart,
    Context,
    Part,
    PromptTooLargeError,
    size_of,
)

TITLE = "# OODA Loop Iteration"

# How a built-in prompt ends, and what replaces it if the run does not listen to some words.
_ALL_SIGNALS = "fragments/signals.md"
ENDINGS = {
    frozenset({"FAILURE"}): "fragments/signals_success.md",
    frozenset({"SUCCESS"}): "fragments/signals_failure.md",
    frozenset({"SUCCESS", "FAILURE"}): "fragments/signals_none.md",
}
# What rooda adds to a prompt file that does not name a signal itself.
FILE_ENDING = BuiltinPart("fragments/prompt_file.md")
_PROMISE = "<promise>"


def promise_tag(word: str) -> str:
    """Return the tag that the agent prints to signal this word."""
    return f"{_PROMISE}{word}</promise>"


def assemble(
    phases: Mapping[str, Sequence[Part]],
    contexts: Sequence[Context] = (),
    words: Mapping[str, str | None] | None = None,
    feedback: str = "",
    most: int | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return the whole prompt; raise PromptError if a part cannot be read.

    A prompt of more than `most` bytes is a PromptError too; rooda reads no part after that.

    `feedback` is the loop's report about the previous iteration. `words` maps the signal words of
    the built-in texts to the configured words: `{"SUCCESS": "DONE"}`. The built-in texts do not ask
    for a word that is None. `notes` are the user's notes for this iteration.
    """
    room = _Room(most)
    sections = [TITLE, *_additions(contexts, notes, feedback, room, most)]
    sections += [
        _section(
            phase.upper(), [room.take(_read(part, words or {}, most)) for part in phases[phase]]
        )
        for phase in PHASES
    ]
    return "\n\n".join(sections) + "\n"


def notes_section(notes: Sequence[str]) -> str:
    """Return the section of a prompt with the user's notes (`rooda tell`)."""
    return _section("NOTE FROM THE USER", [note.strip("\r\n") for note in notes])


def feedback_section(feedback: str) -> str:
    """Return the section of a prompt with the report about the previous iteration."""
    return _section("FEEDBACK", [feedback])


def assemble_file(
    file: Part,
    contexts: Sequence[Context] = (),
    words: Mapping[str, str | None] | None = None,
    feedback: str = "",
    most: int | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return the prompt of a run of one prompt file; raise PromptError as `assemble` does.

    The text of the file comes first and is not changed. Context, notes and feedback follow, then
    the explanation of the signals, unless the file names a signal itself.
    """
    room = _Room(most)
    text = room.take(file.read(most))
    sections = [text, *_additions(contexts, notes, feedback, room, most)]
    if _PROMISE not in text:
        sections.append(room.take(_read(Part(FILE_ENDING), words or {}, most)))
    return "\n\n".join(sections) + "\n"


def _additions(
    contexts: Sequence[Context],
    notes: Sequence[str],
    feedback: str,
    room: "_Room",
    most: int | None,
) -> Iterator[str]:
    """Yield the sections that rooda adds to every prompt."""
    if contexts:
        yield _section("CONTEXT", [room.take(context.read(most)) for context in contexts])
    if notes:
        yield room.take(notes_section(notes))
    if feedback:
        yield feedback_section(room.take(feedback))


class _Room:
    """The bytes that a prompt may still take; None means without a limit."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._taken = 0

    def take(self, text: str) -> str:
        """Return the text; raise PromptError if there is no room for it."""
        self._taken += size_of(text)
        check_size(self._taken, self._most)
        return text


def check_size(size: int, most: int | None) -> None:
    """Raise PromptTooLargeError if a whole prompt has more than `most` bytes."""
    if most is not None and size > most:
        raise PromptTooLargeError("the prompt, context included,", most)


def _read(part: Part, words: Mapping[str, str | None], most: int | None) -> str:
    text = part.read(most)
    if isinstance(part.source, BuiltinPart):
        unheard = frozenset(own for own, word in words.items() if word is None)
        if unheard in ENDINGS:
            text = text.replace(builtin.read(_ALL_SIGNALS), builtin.read(ENDINGS[unheard]))
        for own, word in words.items():
            if word is not None:
                text = text.replace(promise_tag(own), promise_tag(word))
    return text


def _section(heading: str, texts: Sequence[str]) -> str:
    return f"## {heading}\n" + "\n\n".join(texts)
