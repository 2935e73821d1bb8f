"""What the user names becomes tasks: headings, files, entries of a list; mistakes have a place."""

import subprocess
from pathlib import Path

import pytest

from rooda.base.problems import InvalidInput
from rooda.fleet.run_model import FleetTask
from rooda.fleet.tasks.read_tasks import By, Wanted, read_tasks
from rooda.fleet.tasks.task_checks import is_run_name, run_name

TASKS = """\
# Tonight

Keep the style of the code.

## Add a `login` page ##

With a form.

```sh
## not a task
```

<!--
## neither is this
-->

### A detail

## Fix the API
"""


def tasks_of(
    folder: Path, *names: str, known: tuple[str, ...] = (), **more: object
) -> list[FleetTask]:
    texts = dict.fromkeys(known, "another text")
    return read_tasks(Wanted(names, folder, **more), texts)  # type: ignore[arg-type]


def problems_of(folder: Path, *names: str, known: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        tasks_of(folder, *names, known=known)
    return [f"{one.place}: {one.message}" for one in caught.value.problems]


def test_each_heading_is_a_task_and_what_is_above_the_first_is_in_each(tmp_path: Path) -> None:
    (tmp_path / "TASKS.md").write_text(TASKS)
    first, second = tasks_of(tmp_path, "TASKS.md")
    assert (first.name, first.title) == ("add-a-login-page", "Add a login page")
    assert first.text.startswith("# Tonight\n\nKeep the style of the code.\n\n## Add a `login`")
    assert first.text.endswith("### A detail")
    assert second.name == "fix-the-api"
    assert second.text == "# Tonight\n\nKeep the style of the code.\n\n## Fix the API"


def test_a_file_without_such_headings_is_one_task(tmp_path: Path) -> None:
    (tmp_path / "Clean Up.md").write_text("# Clean up\n\nEverything.\n")
    (task,) = tasks_of(tmp_path, "Clean Up.md")
    assert (task.name, task.text) == ("clean-up", "# Clean up\n\nEverything.")


def test_each_of_several_files_is_a_task_with_all_its_headings(tmp_path: Path) -> None:
    for name in ("b.md", "a.md"):
        (tmp_path / name).write_text("## One\n\n## Two\n")
    assert [one.name for one in tasks_of(tmp_path, "b.md", "a.md")] == ["b", "a"]
    assert [one.name for one in tasks_of(tmp_path, ".")] == ["a", "b"]
    assert [one.name for one in tasks_of(tmp_path, "a.md", by=By.FILE)] == ["a"]
    by_heading = tasks_of(tmp_path, "a.md", by=By.HEADING)
    assert [one.name for one in by_heading] == ["one", "two"]


def test_a_list_of_tasks_has_order_limits_and_labels(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/auth.md").write_text("Write auth.\n")
    (tmp_path / "fleet.yml").write_text(
        "- {name: Auth, context: specs/auth.md, priority: 2, max_cost: 5, labels: [gpu, big]}\n"
        "- name: api\n"
        "  procedure: build\n"
        "  context: [specs/auth.md, and mind the tests]\n"
        "  after: Auth\n"
        "  base: main\n"
        "  max_iterations: 7\n"
        "  account: night\n"
    )
    auth, api = tasks_of(tmp_path, "fleet.yml")
    assert auth == FleetTask(
        "auth", "Auth", "Write auth.", priority=2, max_cost=5.0, labels=("gpu", "big")
    )
    assert api == FleetTask(
        "api",
        "api",
        "Write auth.\n\nand mind the tests",
        procedure="build",
        base="main",
        after=("auth",),
        max_iterations=7,
        account="night",
    )


def test_the_procedure_of_the_settings_is_for_tasks_that_name_none(tmp_path: Path) -> None:
    (tmp_path / "fleet.yml").write_text("- {name: a}\n- {name: b, procedure: audit}\n")
    found = tasks_of(tmp_path, "fleet.yml", procedure="build")
    assert [one.procedure for one in found] == ["build", "audit"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", ["fleet.yml is empty"]),
        ("# nothing\n", ["fleet.yml: has no task"]),
        ("[]\n", ["fleet.yml:1: the list is empty"]),
        ("tasks: 1\n", ["fleet.yml:1: must be a list of tasks"]),
        ("- auth\n", ["fleet.yml:1: must be a task, not 'auth'"]),
        ("- {context: a b}\n", ["fleet.yml:1: the task has no name"]),
        ("- {name: a}\n", ["fleet.yml:1: the task has neither a context nor a procedure"]),
        ("- {name: ~, context: a b}\n", ["fleet.yml:1: the task has no name"]),
        (
            "- {name: a, context: ~}\n- {name: b, procedure: }\n- {name: c, context: []}\n",
            [
                f"fleet.yml:{line}: the task has neither a context nor a procedure"
                for line in (1, 2, 3)
            ],
        ),
        (
            "- name: a\n  contxt: b\n  max_cost: lots\n  priority: high\n",
            [
                "fleet.yml:2: unknown key 'contxt'",
                "fleet.yml:3: max_cost: must be an amount of US dollars, not 'lots'",
                "fleet.yml:4: priority: must be a whole number, not 'high'",
                "fleet.yml:1: the task has neither a context nor a procedure",
            ],
        ),
        (
            "- name: a\n  context: gone.md\n",
            ["fleet.yml:2: context: 'gone.md' looks like a file, and there is no such file"],
        ),
        (
            "- {name: a, context: x y}\n- name: b\n  context: x y\n  after: [c, old]\n",
            ["fleet.yml:4: after: waits for 'c', and there is no such task"],
        ),
        (
            (
                "- {name: a, context: x y, after: c}\n- {name: b, context: x y, after: a}\n"
                "- {name: c, context: x y, after: [b, old]}\n"
            ),
            ["fleet.yml:1: after: no task can start first: a waits for c waits for b waits for a"],
        ),
        (
            "- {name: A b, context: x y}\n- {name: a-B, context: x y}\n- {name: old, context: x y}",
            [
                "fleet.yml:2: a second task has the name 'a-b' (the first: fleet.yml:1)",
                "fleet.yml:3: the project has a run 'old' already, with another text",
            ],
        ),
        ("- {name: [\n", ["fleet.yml:2: not valid YAML"]),
    ],
)
def test_a_mistake_in_a_list_has_its_file_and_line(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    (tmp_path / "fleet.yml").write_text(text)
    found = problems_of(tmp_path, "fleet.yml", known=("old",))
    assert len(found) == len(expected), found
    for words in expected:
        assert any(one.removeprefix(": ").startswith(words) for one in found), found


def test_files_that_are_no_texts_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("\n \n")
    (tmp_path / "binary.md").write_bytes(b"a\0b")
    (tmp_path / "huge.md").write_text("a" * 1_000_001)
    (tmp_path / "latin.md").write_bytes(b"\xe4")
    (tmp_path / "folder").mkdir()
    names = ("empty.md", "binary.md", "huge.md", "latin.md", "gone.md", "folder")
    found = "\n".join(problems_of(tmp_path, *names))
    for words in (
        "empty.md is empty",
        "binary.md is not text",
        "huge.md is larger than",
        "latin.md is not UTF-8",
        "gone.md does not exist",
        "folder: the folder has no *.md file",
    ):
        assert words in found


def test_headings_with_one_name_or_without_words_are_mistakes(tmp_path: Path) -> None:
    (tmp_path / "TASKS.md").write_text("## One\n\n##\n\n## one!\n")
    assert problems_of(tmp_path, "TASKS.md") == [
        "TASKS.md:3: the heading is empty",
        "TASKS.md:5: a second task has the name 'one' (the first: TASKS.md:1)",
    ]


@pytest.mark.git
@pytest.mark.parametrize(
    "title, name",
    [
        ("Add a login page", "add-a-login-page"),
        ("01-auth", "01-auth"),
        ("v1.2_final", "v1.2_final"),
        ("Größe ändern", "grosse-andern"),
        ("a..b", "a.b"),
        ("../../etc/passwd", "etc-passwd"),
        ("x.lock", "x-lock"),
        ("-rf /", "rf"),
        ("@{u}~1^:?*[\\", "u-1"),
        ("word " * 40, "word-word-word-word-word-word-word-word-word"),
        ("x" * 200, "x" * 48),
        ("HEAD", "head"),
        ("Last", "task-last"),  # `rooda show last` means another run
        ("2", "task-2"),
        ("fleet", "task-fleet"),
    ],
)
def test_a_name_is_a_safe_part_of_a_branch(title: str, name: str) -> None:
    assert run_name(title) == name
    assert is_run_name(name)
    checked = ["git", "check-ref-format", "--branch", f"rooda/{name}"]
    assert subprocess.run(checked, capture_output=True, check=False).returncode == 0


def test_words_without_latin_letters_get_a_name_of_their_own() -> None:
    first, second = run_name("ログイン"), run_name("設定")
    assert is_run_name(first)
    assert first.startswith("task-")
    assert first != second


def test_link_in_the_work_tree_gives_an_agent_no_file_of_the_user(tmp_path: Path) -> None:
    """An agent may have made the link, and the text of a task is its prompt."""
    folder, key = tmp_path / "work", tmp_path / "key"
    (folder / "specs").mkdir(parents=True)
    key.write_text("a private key")
    (folder / "real.md").write_text("# Real\n")
    (folder / "link.md").symlink_to("real.md")
    (folder / "specs/key.md").symlink_to(key)
    (folder / "list.yml").write_text("- {name: a, context: specs/key.md}\n")
    for name, place in (
        ("specs/key.md", ": "),
        ("specs", ": "),
        ("list.yml", "list.yml:1: context: "),
    ):
        assert problems_of(folder, name) == [
            f"{place}specs/key.md leads to {key}, out of the work tree"
        ]
    assert [one.text for one in tasks_of(folder, "link.md")] == ["# Real"]
