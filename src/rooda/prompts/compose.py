"""Joins the parts into the prompt of one iteration."""

from collections.abc import Mapping, Sequence

from rooda.prompts.parts import PHASES, BuiltinPart, Context, Part

TITLE = "# OODA Loop Iteration"


def promise_tag(word: str) -> str:
    """Return the tag that the agent prints to signal this word."""
    return f"<promise>{word}</promise>"


def assemble(
    phases: Mapping[str, Sequence[Part]],
    contexts: Sequence[Context] = (),
    words: Mapping[str, str] | None = None,
    feedback: str = "",
) -> str:
    """Return the whole prompt; raise PromptError if a part cannot be read.

    `feedback` is the loop's report about the previous iteration. `words` maps the signal words of
    the built-in texts to the configured words: `{"SUCCESS": "DONE"}`.
    """
    sections = [TITLE]
    if contexts:
        sections.append(_section("CONTEXT", [context.read() for context in contexts]))
    if feedback:
        sections.append(_section("FEEDBACK", [feedback]))
    sections += [
        _section(phase.upper(), [_read(part, words or {}) for part in phases[phase]])
        for phase in PHASES
    ]
    return "\n\n".join(sections) + "\n"


def _read(part: Part, words: Mapping[str, str]) -> str:
    text = part.read()
    if isinstance(part.source, BuiltinPart):
        for own, word in words.items():
            text = text.replace(promise_tag(own), promise_tag(word))
    return text


def _section(heading: str, texts: Sequence[str]) -> str:
    return f"## {heading}\n" + "\n\n".join(texts)
