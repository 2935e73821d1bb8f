import time

from rooda.loop.headline import LONGEST, headline_of
from rooda.world.agents.agent_notes import AgentNotes
from support.tables import each_row

DONE = "<promise>SUCCESS</promise>"
CASES = {
    "first sentence": ("Added a parser. All tests pass.", "Added a parser"),
    "no period": ("Added a parser\n\nAll tests pass.", "Added a parser"),
    "short first sentence": ("Done. Added a parser for dates.", "Done. Added a parser for dates"),
    "question": ("Which key should I use? I found two.", "Which key should I use?"),
    "file and version": ("Changed a.py to v1.2 for now. Then", "Changed a.py to v1.2 for now"),
    "abbreviation": ("Handles gzip, e.g. *.gz files. Next.", "Handles gzip, e.g. *.gz files"),
    "wrapped": ("Added a parser\nfor dates. And more.", "Added a parser for dates"),
    "bold and code": ("**Added** `a.py` and *b*.", "Added a.py and b"),
    "names with underscores": ("Renamed my_long_name here.", "Renamed my_long_name here"),
    "link": ("Added [the docs](javascript:alert(1)) now.", "Added the docs) now"),
    "summary section": ("Hm.\n\n## Summary\n\n- Fixed *it*.\n- More", "Fixed it"),
    "summary of": ("Hm.\n### Summary of changes\nFixed the join.", "Fixed the join"),
    "bold summary": ("Hm, well then.\n**Summary:** Fixed the join.", "Fixed the join"),
    "bold summary line": ("Hm, well.\n\n**Summary**\n\n1. Fixed the join", "Fixed the join"),
    "plain summary": ("Hm, well.\nSummary: Fixed the join.", "Fixed the join"),
    "empty summary section": ("I fixed the join.\n\n## Summary\n", "I fixed the join"),
    "introduction": ("I made these changes:\n\n- Added a parser\n- More", "Added a parser"),
    "only an introduction": ("I made these changes:", "I made these changes"),
    "heading first": ("# Report\n\nAdded a parser.", "Added a parser"),
    "only a heading": ("# Added a parser", "Added a parser"),
    "code block": ("```sh\nmake test\n```\nAll tests pass now.", "All tests pass now"),
    "table and rule": ("| a | b |\n|---|---|\n---\nAdded a table.", "Added a table"),
    "json": ('{"role": "user", "text": "x"}\nAdded a parser.', "Added a parser"),
    "quote": ("> Added a parser. Yes.", "Added a parser"),
    "signal alone": (DONE, ""),
    "signal and words": (f"{DONE}\nAdded a parser.", "Added a parser"),
    "ellipsis": ("Looking for the cause...", "Looking for the cause..."),
    "control codes": ("\x1b[31mAdded\x1b[0m \u202ea parser\x07. Then", "Added a parser"),
    "markup stays text": ("<script>alert(1)</script> Added it.", None),
    "nothing": (" \n\t\n---\n", ""),
}


@each_row("case", CASES)
def test_the_headline_is_the_first_sentence_without_markdown(case: str) -> None:
    text, expected = CASES[case]
    if expected is None:
        expected = text.removesuffix(".")
    assert headline_of(None, text) == expected


def test_a_recorded_summary_counts_more_than_the_closing_words() -> None:
    assert headline_of("- Fixed the join\n- More", "I am done now.") == "Fixed the join"


def test_a_section_of_the_closing_words_counts_more_than_an_earlier_summary() -> None:
    assert headline_of("An old one", "Hm.\n## Summary\nThe new one") == "The new one"


def test_later_texts_are_used_where_the_first_has_no_words() -> None:
    assert headline_of(None, DONE, "Added a parser.") == "Added a parser"


def test_a_long_sentence_is_cut_and_a_huge_text_is_read_in_bounded_time() -> None:
    found = headline_of(None, "many words " * 1_000_000)
    assert len(found) == LONGEST
    assert found.endswith("\u2026")
    assert len(headline_of(None, "x" * 1_000_000)) == LONGEST
    for hostile in ("*a " * 500_000, "[" * 1_000_000, "`" * 1_000_000, "- " * 500_000):
        assert len(headline_of(None, hostile)) <= LONGEST


@each_row(
    "text",
    ["# " + " " * 16_000, "# !\n" * 4000, "#\t \n" * 4000, "." * 16_000 + "x"],
    ids=["spaces", "headings", "tabs", "dots"],
)
def test_no_text_of_an_agent_takes_long(text: str) -> None:
    began = time.process_time()
    headline_of(None, text)
    assert time.process_time() - began < 0.5


def test_the_closing_words_are_the_last_message_of_the_assistant() -> None:
    notes = AgentNotes()
    notes.say("I will look at the code.")
    notes.uses_tool("Read", {"path": "a.py"})
    for piece in ("I added", " a parser.\n", "All tests pass."):
        notes.say_piece(piece)
    notes.end_message()
    notes.say_piece("\n")
    assert notes.closing == "I added a parser.\nAll tests pass."
    notes.say("x" * 100_000)
    assert len(notes.closing) == 16 * 1024
