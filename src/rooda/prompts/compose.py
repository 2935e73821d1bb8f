"""Put the parts together into the prompt of one iteration."""

from collections.abc import Mapping, Sequence

from rooda.prompts.context import Context
from rooda.prompts.parts import PHASES, Part

TITLE = "# OODA Loop Iteration"


def assemble(phases: Mapping[str, Sequence[Part]], contexts: Sequence[Context] = ()) -> str:
    """The whole prompt; raises PromptError when a part can't be read."""
    sections = [TITLE]
    if contexts:
        sections.append(_section("CONTEXT", [context.read() for context in contexts]))
    sections += [
        _section(phase.upper(), [part.read() for part in phases[phase]]) for phase in PHASES
    ]
    return "\n\n".join(sections) + "\n"


def _section(heading: str, texts: Sequence[str]) -> str:
    return f"## {heading}\n" + "\n\n".join(texts)
