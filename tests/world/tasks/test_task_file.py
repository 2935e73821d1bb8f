"""Whatever an agent puts in place of the task file, rooda reads it or says why it can't."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.world.files.sight import Sight
from rooda.world.tasks.task_file import (
    Task,
    TaskFile,
    TaskFileError,
    TaskStatus,
    became_complete,
    current_task,
    first_heading,
    tasks_in,
)
from support.properties import examples

# The tasks of implementation_plan.md, in the forms that agents and people write.


OPEN, WIP, DONE = TaskStatus.OPEN, TaskStatus.IN_PROGRESS, TaskStatus.COMPLETE
BLOCKED = TaskStatus.BLOCKED


def names(text: str) -> list[str]:
    return [task.name for task in tasks_in(text)]


def status(value: str) -> TaskStatus:
    (task,) = tasks_in(f"## A task\n{value}\n")
    return task.status


PLAN = """\
# Implementation Plan

**Status:** In Progress

## Phase 1: Foundations

### Task 1: Read the config
**Status:** Complete ✅
**Spec:** [config](specs/config.md)

- [x] lines
- [x] quotes

### Task 2 - Write `ralph init`
- **Status**: in progress
- **Spec**: `specs/init.md`

```markdown
### Task 99: No task
Status: open
- [ ] no task either
```

## Phase 2

### Task 3. Say **how** it [ended](docs/end.md) ###

Some words.

Status: Not started
"""


def test_headings_with_status_lines_are_tasks() -> None:
    assert tasks_in(PLAN) == (
        Task("Read the config", "specs/config.md", DONE, "1"),
        Task("Write ralph init", "specs/init.md", WIP, "2"),
        Task("Say how it ended", None, OPEN, "3"),
    )


def test_check_boxes_are_tasks() -> None:
    text = """\
# Tasks

- [x] First thing
- [ ] **Second** thing, with `code`
  - [ ] a nested one
    * [X] deeper
+ [ ] plus
1. [ ] numbered
2) [x] numbered otherwise
- [ ] Task 7: with a number
- [~] under way
- [-] put off
- [>] moved to next week
- [?] is it needed
- [x ] done by hand
- [  ] open by hand
"""
    assert [(task.name, task.status) for task in tasks_in(text)] == [
        ("First thing", DONE),
        ("Second thing, with code", OPEN),
        ("a nested one", OPEN),
        ("deeper", DONE),
        ("plus", OPEN),
        ("numbered", OPEN),
        ("numbered otherwise", DONE),
        ("with a number", OPEN),
        ("under way", WIP),
        ("put off", OPEN),
        ("moved to next week", OPEN),
        ("is it needed", OPEN),
        ("done by hand", DONE),
        ("open by hand", OPEN),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "Status: done",
        "status: Done.",
        "STATUS: DONE",
        "**Status**: done",
        "**Status:** done",
        "__Status:__ done",
        "*Status:* done",
        "**Status: done**",
        "*Status: Complete*",
        "__Status: done__  ",
        "- **Status: done, see a_test.py**",
        "- Status: done",
        "* **Status**: Completed",
        "1. Status: complete",
        "  Status: done",
        "Status:done",
        "Status: **Complete**",
        "Status: `complete`",
        "Status: ✅",
        "Status: ✅ Done",
        "Status: ✔️ shipped",
        "Status: [x]",
        "Status: ~~in progress~~ done",
        "Status: Complete (2026-01-02)",
        "**Priority:** high | **Status:** done",
        "### Status: done",
    ],
)
def test_status_words_and_signs_for_complete(line: str) -> None:
    assert status(line) is DONE


@pytest.mark.parametrize(
    "words",
    [
        "in progress",
        "In-Progress",
        "IN_PROGRESS",
        "wip",
        "WIP",
        "🚧",
        "🚧 In progress",
        "🔄 in progress",
        "*in progress*",
        "work in progress",
        "In progress (half done)",
        "🚧 nearly done",
    ],
)
def test_status_words_and_signs_for_in_progress(words: str) -> None:
    assert status(f"**Status:** {words}") is WIP


@pytest.mark.parametrize(
    "words",
    [
        "blocked",
        "**Blocked**",
        "Blocked: needs a key",
        "blocked (by task 2)",
        "⛔",
        "🚫 no",
        "on hold",
        "In progress, blocked by the API",
        "open (blocked: needs a key)",
        "Not started — blocked",
    ],
)
def test_status_words_and_signs_for_blocked(words: str) -> None:
    assert status(f"Status: {words}") is BLOCKED


@pytest.mark.parametrize(
    "box",
    [
        "- [!] Call the API",
        "- [ ] Call the API (blocked)",
        "- [ ] ⛔ Call the API [BLOCKED: needs a key]",
        "- [ ] Call the API\n  Status: blocked, needs a key",
        "- [~] Call the API\n  - **Status:** blocked",
    ],
)
def test_check_box_of_a_blocked_task(box: str) -> None:
    assert tasks_in(box) == (Task("Call the API", None, BLOCKED),)


@pytest.mark.parametrize(
    "words",
    [
        "open",
        "todo",
        "not started",
        "Not complete",
        "incomplete",
        "unblocked",
        "no longer blocked",
        "open (was blocked)",
        "",
        "❌ Not done",
        "90% done",
        "completely unclear",
        "[ ] done?",
        "pending",
        "~~done~~",
        "almost complete",
        "to be done",
    ],
)
def test_any_other_status_is_open(words: str) -> None:
    assert status(f"Status: {words}") is OPEN


@pytest.mark.parametrize(
    "heading,name",
    [
        ("## Task 1: Add login", "Add login"),
        ("## Task 12 - Add login", "Add login"),
        ("## Task 3. Add login", "Add login"),
        ("## Task 3) Add login", "Add login"),
        ("## Task 1.2: Add login", "Add login"),
        ("## Task #4 — Add login", "Add login"),
        ("## TASK 4: Add login", "Add login"),
        ("## **Task 4:** Add login", "Add login"),
        ("## ✅ Task 4: Add login", "Add login"),
        ("## Task 4: Add login ✅", "Add login"),
        ("## Task 4: Add login (DONE)", "Add login"),
        ("## Task 4", "Task 4"),
        ("## Task 4:", "Task 4:"),
        ("## Task 10 things", "Task 10 things"),
        ("## Tasks 1: x", "Tasks 1: x"),
        ("## 1. Add login", "1. Add login"),
        ("## Add login ##", "Add login"),
        ("## Use C#", "Use C#"),
        ("   ## Add login", "Add login"),
        ("##\tAdd login", "Add login"),
        ("## Add `log*in*` and __more__", "Add log*in* and more"),
        ("## Keep snake_case_names and 2 * 3 * 4", "Keep snake_case_names and 2 * 3 * 4"),
        ("## See [the ![img](a.png) docs](b.md) now", "See the img docs now"),
        ("## Escaped \\*stars\\*", "Escaped *stars*"),
        ("## ***Bold*** ~~old~~ new", "Bold old new"),
        ("## A\x1b[31mB\x07\u2028C", "AB C"),
        ("## Add login <!-- id: 7 -->", "Add login"),
        ("Add login\n=========", "Add login"),
        ("Add login\n---", "Add login"),
    ],
)
def test_task_name_is_plain_text_without_its_number(heading: str, name: str) -> None:
    assert names(f"{heading}\n\nStatus: open\n") == [name]


def test_long_name_is_shortened_between_words() -> None:
    (name,) = names(f"## {'many words ' * 50}\nStatus: open\n")
    assert len(name) <= 100
    assert name.endswith(" words…")


@pytest.mark.parametrize(
    "text,found",
    [
        ("## A\n\n## B\nStatus: open\n", ["B"]),
        ("## A\nText\n### Notes\nmore\n", []),
        ("Status: open\n", []),
        ("## A\n### Details\nStatus: open\n", ["Details"]),
        ("## Task 1: A\n### Details\nStatus: open\n### More\nStatus: done\n", ["A"]),
        ("## A\nStatus: open\n### B\nStatus: open\n### C\nStatus: done\n", ["B", "C"]),
        ("### Task 1: A\nStatus: done\n### Task 2: B\nNot yet.\n", ["A", "B"]),
        ("## Task 1: A\nStatus: done\n## Task 2: B\n- [x] step\n", ["A", "step"]),
        ("## Task 1: A\n## Task 2: B\n", []),
        ("# A\nStatus: open\n# B\nStatus: open\n- [ ] step\n", ["A", "B"]),
        ("## A\nStatus: open\n- [ ] step\n### Criteria\n- [ ] step\n## B\n- [ ] c\n", ["A", "c"]),
        ("# Plan\nStatus: in progress\n- [ ] a\n", ["a"]),
        ("# My app\nStatus: in progress\n## Tasks\n- [ ] a\n", ["a"]),
        ("# Add login\nStatus: in progress\n- [ ] step\n", ["Add login"]),
        ("## A\n\nStatus: open\n---\n## B\nStatus: open\n", ["A", "B"]),
        ("---\n# no: heading\nstatus: draft\n---\n## A\nStatus: open\n", ["A"]),
        ("---\ntitle: x\n# no heading\n---\n## A\nStatus: open\n", ["A"]),
        ("---\ntitle: no end\n## A\nStatus: open\n", ["A"]),
        ("##\nStatus: open\n", []),
        ("- [ ]\n- [ ] \n- [](a)\n- [x](b) c\n- [1] note\n- [ab] c\n[ ] d\n-[ ] e\n", []),
        ("- [] loose\n", ["loose"]),
        ("## A\n- [ ] b\n  - Status: in progress\n", ["b"]),
        ("> - [ ] quoted\n> ## A\n> Status: open\n", []),
        ("\ufeff## A\r\nStatus: open\r\n- [ ] step\r\n", ["A"]),
        ("#hashtag\nStatus: open\n", []),
        ("####### seven\nStatus: open\n", []),
    ],
)
def test_tasks_and_parts_of_tasks(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "```\n- [ ] a\n```\n- [ ] b\n",
        "~~~\n- [ ] a\n```\n- [ ] a\n~~~\n- [ ] b\n",
        "````md\n```\n- [ ] a\n```\n- [ ] a\n````\n- [ ] b\n",
        "```\n- [ ] a\n``` no end\n- [ ] a\n`````\n- [ ] b\n",
        "1. text\n   ```\n   - [ ] a\n   ```\n- [ ] b\n",
        "- ```\n  - [ ] a\n  ```\n- [ ] b\n",
        "text\n\n    - [ ] a\n\n- [ ] b\n",
        "text\n\n\t- [ ] a\n\n- [ ] b\n",
        "<!-- - [ ] a -->\n- [ ] b\n",
        "<!--\n- [ ] a\n```\n-->\n- [ ] b\n",
        "```\n<!--\n```\n- [ ] b\n",
        "Write `<!--` in code.\n- [ ] b\n",
        "Text with <!-- no end\n\n- [ ] b\n",
        "``` not `a fence\n- [ ] b\n",
        "- [ ] b\n```\n- [ ] a\n## A\nStatus: open\n",
        "- [ ] b\n<!-- never closed\n- [ ] a\n",
    ],
)
def test_code_and_comments_contain_no_tasks(text: str) -> None:
    assert names(text) == ["b"]


@pytest.mark.parametrize(
    "text,spec",
    [
        ("## A\nStatus: open\nSpec: specs/a.md\n", "specs/a.md"),
        ("## A\n**Spec:** `specs/a.md`\n\n**Status:** open\n", "specs/a.md"),
        ("## A\n- **Spec**: [the spec](specs/a.md)\n- **Status**: open\n", "specs/a.md"),
        ("## A\nStatus: open | Spec: specs/a.md\n", "specs/a.md"),
        ("## A\nStatus: open\nSpecs: a.md, b.md\n", "a.md, b.md"),
        ("## A\nStatus: open\nSpec: none\n", None),
        ("## A\nStatus: open\nSpec:\n", None),
        ("## A\nStatus: open\n", None),
        ("## A\nStatus: open\nSpecial: x\n", None),
        ("## A\nSpec: specs/a.md\n\n- [ ] box\n", "specs/a.md"),
        ("## A\n- [ ] box\n  - Spec: specs/a.md\n", "specs/a.md"),
        ("## A\nSpec: specs/a.md\n### B\nStatus: open\n", "specs/a.md"),
        ("## Task 1: A\nStatus: open\n### Spec: specs/a.md\n", "specs/a.md"),
    ],
)
def test_spec_of_a_task(text: str, spec: str | None) -> None:
    assert [task.spec for task in tasks_in(text)] == [spec]


def test_current_task_is_the_one_in_progress_or_else_the_first_open_one() -> None:
    done, first, second, busy = Task("a", None, DONE), Task("b"), Task("c"), Task("d", None, WIP)
    assert current_task((done, first, busy)) is busy
    assert current_task((done, first, second)) is first
    assert current_task((Task("stuck", None, BLOCKED), done, second)) is second
    assert current_task((Task("stuck", None, BLOCKED), done)) is None
    assert current_task(()) is None


@pytest.mark.parametrize(
    "before,after,name",
    [
        ("- [ ] a\n- [ ] b", "- [ ] a\n- [x] b", "b"),
        ("- [ ] a\n- [ ] b", "- [x] a\n- [x] b", "a"),
        ("- [x] a\n- [ ] b", "- [x] a\n- [ ] b", None),
        ("- [x] a", "- [ ] a", None),
        ("- [ ] a", "", None),
        ("- [ ] a", "- [x] new\n- [x] a", "a"),
        ("- [ ] a", "- [ ] a\n- [x] new", "new"),
        ("- [x] same\n- [ ] same", "- [x] same\n- [x] same", "same"),
        ("- [x] same\n- [ ] same", "- [x] same\n- [ ] same", None),
        ("## Task 1: A\nStatus: wip", "## ✅ Task 2: *A* (done)\nStatus: Done", "A"),
        ("- [ ] Add login", "- [x] add login", "add login"),
    ],
)
def test_task_that_became_complete(before: str, after: str, name: str | None) -> None:
    task = became_complete(tasks_in(before), tasks_in(after))
    assert (task and task.name) == name


@pytest.mark.parametrize(
    "prompt,heading",
    [
        ("# Do **this**\n\n## Then that", "Do this"),
        ("Words first.\n\n### Late\n", "Late"),
        ("```\n# no\n```\n<!-- # no -->\n#\n## Yes ##\n", "Yes"),
        ("---\nmodel: x\n# no\n---\n# Yes\n", "Yes"),
        ("Title\n=====\n", "Title"),
        ("# Task 3: stays", "Task 3: stays"),
        ("no heading", None),
        ("", None),
    ],
)
def test_first_heading_of_a_prompt(prompt: str, heading: str | None) -> None:
    assert first_heading(prompt) == heading


@pytest.mark.parametrize(
    "unit",
    [
        "- [ ] a\n",
        "# a\nStatus: x\n",
        "`",
        "# `",
        "- [ ] [",
        "*",
        "# **a ",
        "<!--",
        "```\n",
        "\n",
        "- ",
        "Status: ",
        "a\n-\n",
        "[![",
        "~~",
        "- [ ] \\",
        "    x\n\n",
        "###### a\n##### b\n",
        "<!-- `",
    ],
    ids=repr,
)
def test_hostile_plan_is_parsed_in_linear_time(unit: str) -> None:
    text = unit * (25_000 // len(unit))
    started = time.process_time()
    tasks_in(text)
    tasks_in(text.replace("\n", ""))
    tasks_in("# a\nStatus: " + text)
    # Linear time is a tenth of this, quadratic time a multiple.
    assert time.process_time() - started < 2


MARKDOWN = st.lists(
    st.sampled_from(["# ", "## Task 1: ", "- [ ] ", "- [x] ", "\n", "Status: ", "**", "`", "```\n"])
    | st.sampled_from(["<!--", "-->", "    ", "---\n", "Spec: ", "[a](b)", "done", "_", "\r", "| "])
    | st.text(max_size=5)
).map("".join)


@examples(60)
@given(MARKDOWN)
def test_names_of_any_plan_are_short_single_lines(text: str) -> None:
    for task in tasks_in(text):
        assert 0 < len(task.name) <= 100
        assert len(task.name.splitlines()) == 1
    heading = first_heading(text)
    assert heading is None or 0 < len(heading) <= 100


def test_only_a_heading_below_another_one_is_its_label() -> None:
    assert [task.status for task in tasks_in("## A task\n### Status: done\n")] == [DONE]
    assert tasks_in("## A task\n## Status: done\n") == ()


def read(path: Path, *inside: Path) -> list[str]:
    return [task.name for task in TaskFile(path, path.name, Sight(inside)).read()]


def trouble(path: Path, *inside: Path) -> str:
    with pytest.raises(TaskFileError) as error:
        read(path, *inside)
    return str(error.value)


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "PLAN.md"
    file.write_bytes(b"- [ ] caf\xe9\n- [x] \xff\n")
    assert read(file) == ["caf\ufffd", "\ufffd"]


def test_missing_file_folder_pipe_and_huge_file_are_errors(tmp_path: Path) -> None:
    file = tmp_path / "PLAN.md"
    assert trouble(file) == "does not exist"
    file.mkdir()
    assert trouble(file).startswith("can't be read: ")
    file.rmdir()
    os.mkfifo(file)
    assert trouble(file) == "can't be read: is not a file"
    file.unlink()
    file.write_text("- [ ] a\n" * 200_000)
    assert trouble(file) == "is larger than 1,000,000 bytes"


def test_link_may_not_lead_out_of_the_tree(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside.md"
    tree.mkdir()
    outside.write_text("- [x] Elsewhere\n")
    (tree / "docs.md").write_text("- [ ] Here\n")
    (tree / "PLAN.md").symlink_to("docs.md")
    assert read(tree / "PLAN.md", tree) == ["Here"]
    (tree / "PLAN.md").unlink()
    (tree / "PLAN.md").symlink_to(outside)
    assert trouble(tree / "PLAN.md", tree).startswith("is a link that leads out of the work tree")


def test_tasks_that_were_moved_are_in_a_file_beside_it(tmp_path: Path) -> None:
    file = TaskFile(tmp_path / "PLAN.md", "PLAN.md")
    assert file.read_done() == ()
    (tmp_path / "PLAN-DONE.md").write_text("- [x] Parse\n")
    assert [task.name for task in file.read_done()] == ["Parse"]
