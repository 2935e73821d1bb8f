"""Put the parts together into the prompt of one iteration."""

from collections.abc import Mapping, Sequence

from rooda.prompts.context import Context
from rooda.prompts.parts import PHASES, BuiltinPart, Part
from rooda.text.tags import promise_tag

TITLE = "# OODA Loop Iteration"


def assemble(
    phases: Mapping[str, Sequence[Part]],
    contexts: Sequence[Context] = (),
    words: Mapping[str, str] | None = None,
    feedback: str = "",
) -> str:
    """The whole prompt; raises PromptError when a part can't be read.

    `feedback` is what the loop has to say of the iteration before. `words` are the policy's signal
    words for those in rooda's own texts: `{"SUCCESS": "DONE"}`.
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
