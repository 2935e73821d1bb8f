"""What the command line of a known CLI tells of how it will behave. Nothing is started."""

from collections.abc import Iterator

from rooda.agents.flags import flag_value, has_flag
from rooda.agents.launching import program_name
from rooda.doctor.findings import Finding, Mark
from rooda.doctor.habit import Habits, Situation, Words
from rooda.doctor.habits import HABITS


def look_at(at: Situation) -> Iterator[Finding]:
    """What the command line of a known CLI tells; of any other nothing can be said."""
    habits = HABITS.get(program_name(at.words))
    if habits is None:
        return
    wrong = [
        *_prompt(habits, at.words),
        *(Finding(r.topic, r.mark, r.text, r.advice) for r in habits.rules if r.goes_wrong(at)),
    ]
    fine = Finding("prompt", Mark.OK, "reads its prompt from standard input")
    for one in (fine, _permission(habits, at.words)):
        if one.mark is not Mark.OK or one.topic not in {other.topic for other in wrong}:
            yield one
    yield from wrong


def _prompt(habits: Habits, words: Words) -> Iterator[Finding]:
    for need in habits.needs:
        if not any(_has(words, word) for word in need.words):
            yield Finding("prompt", Mark.WARNING, need.otherwise, f"Write `{need.write}`")
    for spoiler in habits.spoilers:
        if found := [word for word in spoiler.words if has_flag(words, word)]:
            advice = f"Leave {found[0]} out: the prompt comes on standard input"
            yield Finding("prompt", Mark.WARNING, f"{found[0]} {spoiler.does}", advice)


def missing_grant(words: Words) -> str:
    """The flag that would let a CLI use its tools unasked, where it has none."""
    habits = HABITS.get(program_name(words))
    if habits is None or any(_has(words, grant) for grant in habits.grants):
        return ""
    return habits.grants[0]


def _permission(habits: Habits, words: Words) -> Finding:
    if any(_has(words, grant) for grant in habits.grants):
        return Finding("permissions", Mark.OK, "uses its tools without asking")
    if some := [flag for flag in habits.some if _has(words, flag)]:
        text = f"uses those tools without asking that {some[0].lstrip('*')} allows"
        return Finding("permissions", Mark.OK, text)
    return Finding("permissions", Mark.WARNING, habits.without, f"Add {habits.grants[0]}")


def _has(words: Words, wanted: str) -> bool:
    """Whether a flag is there, with the value that is wanted, or as a letter among others."""
    if wanted.startswith("*"):
        return any(wanted[1:] in word for word in words)
    name, equals, value = wanted.partition("=")
    if equals:
        return flag_value(words, name) == value
    if has_flag(words, name):
        return True
    is_letter = len(name) == 2 and name.startswith("-")  # noqa: PLR2004 - a dash and a letter
    return is_letter and any(_is_letters(word) and name[1] in word for word in words)


def _is_letters(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and word[1:].isalpha()
