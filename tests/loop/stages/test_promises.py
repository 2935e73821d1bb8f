"""Scan for signals: the exact tag, on one stream, and never inside an echo of the prompt."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.loop.stages.promises import Promises, Prompt, Words, scan
from rooda.plan.prompts.compose import promise_tag
from support.tables import each_row

SUCCESS, FAILURE = b"<promise>SUCCESS</promise>", b"<promise>FAILURE</promise>"
WORDS = Words("SUCCESS", "FAILURE")
LAST_LINE = Words("SUCCESS", "FAILURE", last_line_only=True)
NOTHING = Prompt(b"")
MEGABYTES_10 = 10 * 1024 * 1024

SENTENCE = b"- Done, as said above: print `<promise>SUCCESS</promise>` as the last line."
PROMPT = Prompt(
    b"""\
# OODA Loop Iteration

## ACT
Do the first open task.

"""
    + SENTENCE
    + b"""
When nothing is left to do, print:

<promise>SUCCESS</promise>

and when you are blocked:
<promise>FAILURE</promise>
The tag stands alone on its line.
"""
)


def flags(found: Promises) -> tuple[bool, bool]:
    """Return whether the output gave the success signal and the failure signal."""
    return found.success, found.failure


def signals(
    output: bytes, prompt: Prompt = NOTHING, words: Words = WORDS, *, truncated: bool = False
) -> str:
    """The signals in the output: none, success, failure or both."""
    found = scan(output, words, prompt, truncated=truncated)
    return {
        (False, False): "none",
        (True, False): "success",
        (False, True): "failure",
        (True, True): "both",
    }[found.success, found.failure]


# -- the exact tag -----------------------------------------------------------------------------


@each_row(
    "output,expected",
    [
        (SUCCESS, "success"),
        (FAILURE, "failure"),
        (SUCCESS + b"\n" + FAILURE, "both"),
        (FAILURE + SUCCESS, "both"),
        (b"working\n" + SUCCESS + b"\nbye\n", "success"),
        (b"all done " + SUCCESS + b" at last", "success"),
        (b"\xff\xfe\x00 not text \x80" + SUCCESS + b"\xc3", "success"),
        (b"\x1b[1m" + SUCCESS + b"\x1b[0m\r\n", "success"),
        (b"", "none"),
        (b"SUCCESS", "none"),
    ],
)
def test_exact_tag_is_found_anywhere(output: bytes, expected: str) -> None:
    assert signals(output) == expected


@each_row(
    "output",
    [
        b"<promise>success</promise>",
        b"<promise> SUCCESS </promise>",
        b"<PROMISE>SUCCESS</PROMISE>",
        b"<promise>SUCCESS",
        b"<Promise>Success</Promise>",
        b"<promise>SUCCESS</promise",
        b"<promise>SUCCESS\n</promise>",
        b"<promise>SUC\nCESS</promise>",
        b"< promise>SUCCESS</promise>",
        b"<promise>SUCCESSFUL</promise>",
        b"&lt;promise&gt;SUCCESS&lt;/promise&gt;",
        "<promise>\uff33UCCESS</promise>".encode(),
    ],
)
def test_inexact_tag_is_no_signal(output: bytes) -> None:
    assert signals(output) == "none"
    assert signals(output, words=LAST_LINE) == "none"


def test_words_of_the_signals_are_configurable() -> None:
    ralph = Words("COMPLETE", None)
    assert signals(b"<promise>COMPLETE</promise>", words=ralph) == "success"
    assert signals(SUCCESS + FAILURE, words=ralph) == "none"
    assert signals(SUCCESS + FAILURE, words=Words(None, None)) == "none"


def test_signals_of_both_streams_are_combined() -> None:
    on_stdout = scan(SUCCESS, WORDS, NOTHING)
    on_stderr = scan(FAILURE, WORDS, NOTHING)
    assert flags(on_stdout | on_stderr) == (True, True)
    assert flags(on_stdout | Promises()) == (True, False)


def test_tag_split_over_both_streams_is_no_signal() -> None:
    both = scan(b"<promise>SUC", WORDS, NOTHING) | scan(b"CESS</promise>", WORDS, NOTHING)
    assert both == Promises()


@each_row("cut", range(1, len(SUCCESS)))
def test_tag_cut_by_the_truncation_is_no_signal(cut: int) -> None:
    assert signals(SUCCESS[cut:] + b"\nmore\n", truncated=True) == "none"


def test_tag_after_the_truncation_is_a_signal() -> None:
    assert signals(b"rest of a line\nmore\n" + SUCCESS, truncated=True) == "success"
    assert signals(b"rest of a line " + SUCCESS, PROMPT, truncated=True) == "success"


# -- echoes ------------------------------------------------------------------------------------

QUOTES = {
    "plain": b"%s",
    "indented": b"    %s",
    "mail": b"> %s",
    "mail twice": b">> %s",
    "bar": b"| %s",
    "box": "│ %s │".encode(),
    "thick box": "┃ %s".encode(),
    "number colon": b"12:%s",
    "number colon space": b"  7: %s",
    "number bar": b"7 | %s",
    "number box": "   7   │ %s".encode(),
    "number arrow": "     7→%s".encode(),
    "number tab": b"     7\t%s",
    "backticks": b"`%s`",
    "quotation marks": b'"%s"',
    "diff": b"+%s",
    "comment": b"# %s",
    "color": b"\x1b[2m%s\x1b[0m",
    "color in the middle of a number": b"\x1b[33m  7\x1b[0m: \x1b[2m%s\x1b[0m",
    "link": b"\x1b]8;;file:///tmp\x1b\\%s\x1b]8;;\x1b\\",
    "carriage return": b"%s\r",
}
QUOTED = each_row("form", QUOTES.values(), ids=QUOTES.keys())


@QUOTED
def test_prompt_line_with_tag_and_text_is_an_echo(form: bytes) -> None:
    assert signals(b"reading:\n" + form % SENTENCE + b"\ngot it\n", PROMPT) == "none"


@QUOTED
@pytest.mark.parametrize(
    "lines",
    [
        [b"When nothing is left to do, print:", b"", SUCCESS],
        [SUCCESS, b"", b"and when you are blocked:"],
        [b"and when you are blocked:", FAILURE],
        [FAILURE, b"The tag stands alone on its line."],
    ],
    ids=["line before", "line after", "failure, before", "failure, after"],
)
def test_consecutive_prompt_lines_are_an_echo(form: bytes, lines: list[bytes]) -> None:
    echo = b"\n".join(form % line for line in lines)
    assert signals(b"reading:\n" + echo + b"\ngot it\n", PROMPT) == "none"


def test_complete_prompt_in_the_output_is_an_echo() -> None:
    text = b"# Task\nSay\n\n" + SUCCESS + b"\n\nor\n" + FAILURE + b"\n"
    assert signals(text, Prompt(text)) == "none"
    assert signals(text + b"\nI did it.\n" + SUCCESS + b"\n", Prompt(text)) == "success"


def test_echo_does_not_hide_a_signal_of_the_agent() -> None:
    assert signals(SENTENCE + b"\nworking...\n" + SUCCESS + b"\n", PROMPT) == "success"
    assert signals(SUCCESS + b"\nworking...\n" + SENTENCE + b"\n", PROMPT) == "success"


@each_row(
    "output",
    [
        SUCCESS,
        SUCCESS + b"\n",
        b"\n\n" + SUCCESS + b"\n\n",
        b"All tasks are done.\n" + SUCCESS + b"\n",
        b"All tasks are done.\n\n" + SUCCESS + b"\nbye\n",
        b"\x1b[1m" + SUCCESS + b"\x1b[0m\n",
        b"  " + SUCCESS + b"\r\n",
        b"**" + SUCCESS + b"**\n",
    ],
)
def test_lone_bare_tag_is_a_signal_even_if_the_prompt_has_it(output: bytes) -> None:
    assert signals(output, PROMPT) == "success"


def test_bare_tag_next_to_a_distant_prompt_line_is_a_signal() -> None:
    assert signals(b"Do the first open task.\n" + SUCCESS, PROMPT) == "success"


@each_row(
    "output",
    [
        b"I am done: " + SUCCESS,
        b"Done, as said above: " + SUCCESS,
        b"- Done, as said above: print `<promise>SUCCESS</promise>` as the last line. And I do.",
        SUCCESS + b" is what I say",
        "Fertig ✓ ".encode() + SUCCESS,
    ],
)
def test_tag_next_to_words_of_the_agent_is_a_signal(output: bytes) -> None:
    assert signals(output + b"\n", PROMPT) == "success"


def test_truncated_echo_is_an_echo() -> None:
    assert signals(SENTENCE[20:] + b"\nmore\n", PROMPT, truncated=True) == "none"


def test_echo_of_one_tag_leaves_the_other() -> None:
    echo = b"and when you are blocked:\n" + FAILURE + b"\n"
    assert signals(echo + b"done:\n" + SUCCESS + b"\n", PROMPT) == "success"


# -- last-line ---------------------------------------------------------------------------------


@each_row(
    "output,expected",
    [
        (SUCCESS, "success"),
        (b"work\n" + SUCCESS + b"\n", "success"),
        (b"work\n" + FAILURE + b"\n\n  \n\t\n", "failure"),
        (b"work\n  \x1b[32m" + SUCCESS + b"\x1b[0m  \r\n", "success"),
        (FAILURE + b"\nchanged my mind\n" + SUCCESS, "success"),
        (SUCCESS + b"\nand more", "none"),
        (b"done: " + SUCCESS, "none"),
        (SUCCESS + b".", "none"),
        (SUCCESS + FAILURE, "none"),
        (b"", "none"),
        (b"\n\n\n", "none"),
    ],
)
def test_last_line_mode_needs_the_tag_alone_on_the_last_line(output: bytes, expected: str) -> None:
    assert signals(output, words=LAST_LINE) == expected


def test_last_line_mode_ignores_echoes() -> None:
    text = b"Do it. Last of all, print:\n\n" + SUCCESS + b"\n"
    assert signals(text, Prompt(text), LAST_LINE) == "none"
    assert signals(text + b"Did it.\n" + SUCCESS + b"\n", Prompt(text), LAST_LINE) == "success"


# -- arbitrary and hostile output --------------------------------------------------------------

# No `<`, so that no tag appears by chance.
NOISE = st.lists(st.text(st.characters(exclude_characters="<", codec="utf-8")), max_size=8)


@given(NOISE, st.data(), st.sampled_from(["SUCCESS", "FAILURE"]))
def test_tag_is_found_at_any_position(noise: list[str], data: st.DataObject, word: str) -> None:
    text = "\n".join(noise)
    place = data.draw(st.integers(0, len(text)))
    planted = f"{text[:place]}{promise_tag(word)}{text[place:]}".encode()
    assert signals(planted, PROMPT) == word.lower()
    assert signals(text.encode(), PROMPT) == "none"


@given(st.binary(), st.binary(), st.booleans())
def test_scan_accepts_any_bytes(before: bytes, after: bytes, cut: bool) -> None:  # noqa: FBT001
    for words in (WORDS, LAST_LINE):
        scan(before + SUCCESS + after, words, Prompt(after + SUCCESS), truncated=cut)


BEFORE_TAG = b"When nothing is left to do, print:"
HOSTILE = {
    "echoed sentences": SENTENCE + b"\n",
    "empty lines": b"\n",
    "empty lines around echoes": SENTENCE + b"\n" * 1000,
    "empty lines inside echoes": BEFORE_TAG + b"\n" * 1000 + SUCCESS + b"\n" * 1000,
    "quotes around echoes": SENTENCE + b"\n" + b">" * 4000 + b"\n",
    "spaces": b" ",
    "tag beginnings": b"<promise>",
    "unfinished tags": SUCCESS[:-1],
    "escapes": b"\x1b[",
    "digits": b"0",
    "unfinished titles": b"\x1b]0;",
}


@pytest.mark.long
@each_row("unit", HOSTILE.values(), ids=HOSTILE.keys())
@each_row("words", [WORDS, LAST_LINE], ids=["anywhere", "last-line"])
def test_ten_hostile_megabytes_are_scanned_in_time(unit: bytes, words: Words) -> None:
    output = unit * (MEGABYTES_10 // len(unit)) + SENTENCE + b"\n" + SUCCESS
    assert scan(output, words, PROMPT).success


def test_endless_color_code_is_scanned_in_time() -> None:
    scan(b"\x1b[" + b"0" * MEGABYTES_10 + SENTENCE, WORDS, PROMPT)


def test_empty_lines_after_the_last_line_are_scanned_in_time() -> None:
    assert signals(SUCCESS + b"\n" * MEGABYTES_10, words=LAST_LINE) == "success"


def test_huge_prompt_is_scanned_in_time() -> None:
    lines = [b"line %d says <promise>SUCCESS</promise>" % n for n in range(50_000)]
    assert signals(b"\n".join(lines), Prompt(b"\n".join(lines))) == "none"


# -- echoes with other text, and in JSON -------------------------------------------------------

INSTRUCTION = b"- Done: print <promise>SUCCESS</promise> as the last line"


@each_row(
    "line",
    [
        b"./.rooda/prompt.md:68:" + INSTRUCTION,
        "⏺ ".encode() + INSTRUCTION,
        b"assistant: " + INSTRUCTION,
        json.dumps(
            {"role": "user", "content": f"# Title\n\n{INSTRUCTION.decode()}\nmore"}
        ).encode(),
        json.dumps({"line": INSTRUCTION.decode()}).encode(),
        b"\x1b[2m" + INSTRUCTION.replace(b"promise>S", b"promise>\x1b[1mS") + b"\x1b[0m",
    ],
    ids=["grep", "bullet", "speaker", "json text", "json line", "color inside"],
)
def test_echo_is_recognized_by_its_end_and_inside_json(line: bytes) -> None:
    prompt = Prompt(b"# Title\n\n" + INSTRUCTION + b"\nmore\n")
    assert scan(line + b"\n", Words("SUCCESS", "FAILURE"), prompt) == Promises()


@each_row(
    "line",
    [
        json.dumps({"role": "assistant", "text": "All done.\n<promise>SUCCESS</promise>"}).encode(),
        json.dumps({"text": f"{INSTRUCTION.decode()}\n\n<promise>SUCCESS</promise>"}).encode(),
        b"<promise>\x1b[1mSUCCESS\x1b[0m</promise>",
        b"Done: <promise>SUCCESS</promise>",
    ],
    ids=["json answer", "json echo and answer", "color inside", "own words"],
)
def test_signal_next_to_echoes_and_inside_json_counts(line: bytes) -> None:
    prompt = Prompt(b"# Title\n\n" + INSTRUCTION + b"\nmore\n")
    assert flags(scan(line + b"\n", Words("SUCCESS", "FAILURE"), prompt)) == (True, False)


def test_echo_of_one_tag_in_json_leaves_the_other() -> None:
    blocked = b"- Blocked: print <promise>FAILURE</promise> as the last line"
    prompt = Prompt(b"# Title\n\n" + INSTRUCTION + b"\n" + blocked + b"\n")
    text = f"{INSTRUCTION.decode()}\n{blocked.decode()}\n\nready\n<promise>SUCCESS</promise>"
    line = json.dumps({"text": text}).encode()
    assert flags(scan(line, Words("SUCCESS", "FAILURE"), prompt)) == (True, False)


def test_evidence_of_a_long_line_is_what_stands_around_the_tag() -> None:
    line = b"a " * 2000 + b"near it " + SUCCESS + b" after it" + b" z" * 2000
    (shown,) = scan(line, WORDS, Prompt(b"")).lines
    assert SUCCESS.decode() in shown
    assert "near it" in shown
    assert len(shown) < 1000
    (short,) = scan(b"done: " + SUCCESS, WORDS, Prompt(b"")).lines
    assert short == f"done: {SUCCESS.decode()}"


def test_line_is_wrapped_only_if_the_next_word_had_no_room() -> None:
    """Programs break lines at 72 columns or more: the line, a space and the next word."""
    tag = b"<promise>SUCCESS</promise>"
    for width, is_wrapped in ((71, False), (72, True)):
        first = b"x " * 20 + b"y" * (width - 1 - len(tag) - 40)
        prompt = Prompt(first + b" " + tag + b" ends it\n")
        assert prompt.has_wrapped(first, tag + b" ends it") is is_wrapped, width
