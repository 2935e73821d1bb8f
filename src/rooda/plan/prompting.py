"""Chooses the texts of the prompt: the phases of a procedure, or of flags, and the context."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rooda.base.paths import anchored, is_folder
from rooda.base.problems import Origin, Problem, Severity, Tier
from rooda.plan.layers import Layers, PhaseValue
from rooda.plan.prompts import builtin
from rooda.plan.prompts.parts import (
    PHASES,
    BuiltinPart,
    Context,
    FilePart,
    Part,
    TextPart,
    looks_like_path,
    text_or_file,
)

_STANDARD_INPUT = "-"


def choose_phases(
    layers: Layers,
    procedure: str,
    replaced: Mapping[str, Sequence[str]],
    folder: Path,
    problems: list[Problem],
    most: int,
) -> dict[str, PhaseValue]:
    """Return the phases in their order; a flag replaces a whole phase.

    `most` is the size of the largest prompt, in bytes.
    """
    found = layers.phases(procedure)
    for phase, texts in replaced.items():
        flag = f"--{phase}"
        parts = [_phase_part(text, flag, folder, problems, most) for text in texts]
        kept = tuple(part for part in parts if part is not None)
        found[phase] = PhaseValue(kept, Origin(Tier.CLI, flag), flag)
    return {phase: found[phase] for phase in PHASES if phase in found}


def choose_file(text: str, folder: Path, problems: list[Problem]) -> PhaseValue | None:
    """Return the prompt file of `rooda loop`; None, and a problem, if `text` can't name one."""
    field = "FILE"
    if not text.strip() or text == _STANDARD_INPUT:
        what = "must not be empty" if text != _STANDARD_INPUT else "can't be standard input"
        advice = "Name a file, such as PROMPT.md: rooda reads it again for each iteration"
        problems.append(Problem(what, advice, field=field, title="Prompt file invalid"))
        return None
    part = Part(FilePart(anchored(folder, text), text))
    return PhaseValue((part,), Origin(Tier.CLI, field), field)


def choose_contexts(
    texts: Sequence[str], folder: Path, problems: list[Problem], most: int
) -> tuple[Context, ...]:
    """Return the pieces of context in their order."""
    flag = "--context"
    contexts = []
    for text in texts:
        source = _text_or_file(text, flag, folder, problems, most)
        if source is None:
            continue
        is_a_folder = isinstance(source, TextPart) and is_folder(anchored(folder, text))
        if is_a_folder or _means_a_missing_file(source, text):
            what = "is a folder" if is_a_folder else "looks like a file, and there is no such file"
            problems.append(
                Problem(
                    f"{text!r} {what}: rooda uses it as text",
                    "Correct the path if a file was meant",
                    field=flag,
                    severity=Severity.WARNING,
                )
            )
        contexts.append(Context(source))
    return tuple(contexts)


def _phase_part(
    text: str, flag: str, folder: Path, problems: list[Problem], most: int
) -> Part | None:
    if text.startswith(builtin.PREFIX):
        return Part(BuiltinPart(text.removeprefix(builtin.PREFIX)))
    source = _text_or_file(text, flag, folder, problems, most)
    if source is None:
        return None
    if isinstance(source, TextPart) and is_folder(anchored(folder, text)):
        problems.append(Problem(f"{text!r} is a folder", "Give text or a file", field=flag))
        return None
    if _means_a_missing_file(source, text):
        problems.append(
            Problem(
                f"{text!r} looks like a file, and there is no such file",
                "Correct the path; rooda reads a value with a space as text",
                field=flag,
            )
        )
        return None
    return Part(source)


def _text_or_file(
    text: str, flag: str, folder: Path, problems: list[Problem], most: int
) -> TextPart | FilePart | None:
    if not text.strip():
        problems.append(Problem("must not be empty", "Give text or a file", field=flag))
        return None
    try:
        return text_or_file(text, folder, most)
    except PermissionError as error:
        message = f"{text!r} can't be read: {error.strerror}"
        problems.append(Problem(message, "Check the modes of file and folders", field=flag))
        return None


def _means_a_missing_file(source: TextPart | FilePart, text: str) -> bool:
    return isinstance(source, TextPart) and source.text == text and looks_like_path(text)
