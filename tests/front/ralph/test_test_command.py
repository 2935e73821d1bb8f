"""The test command in AGENTS.md: recognised in its usual forms, and not in prose."""

import time

from hypothesis import given
from hypothesis import strategies as st

from rooda.front.ralph.test_command import find_test_command
from support.properties import examples
from support.tables import each_row


@each_row(
    "text,command",
    [
        ('```bash\nTEST_COMMAND="pytest -q"\n```', "pytest -q"),
        ("```\nTEST_COMMAND=make test\n```", "make test"),
        ("~~~sh\nexport TEST_COMMAND='npm test'\n~~~", "npm test"),
        ("```sh\nBUILD_COMMAND=make\nTEST_COMMAND=make check # all\n```", "make check"),
        ('```bash\nTEST_COMMAND="pytest -k \\"a b\\""\n```', 'pytest -k "a b"'),
        ("```bash\nTEST_COMMAND=pytest -k 'a b'\n```", "pytest -k 'a b'"),
        ('```toml\nTEST_COMMAND = "cargo test"\n```', "cargo test"),
        ("```make\nTEST_COMMAND := go test ./...\n```", "go test ./..."),
        ("- item\n\n  ```bash\n  TEST_COMMAND=tox\n  ```", "tox"),
        ("Commands:\n\n    TEST_COMMAND=tox -q\n", "tox -q"),
        ("- `TEST_COMMAND=tox -q`", "tox -q"),
        ('TEST_COMMAND="tox -q"', "tox -q"),
        ('```\nTEST_COMMAND=""\n```', ""),
        ("```\nTEST_COMMAND=\n```\nTest: make", ""),
    ],
)
def test_assignment_is_found(text: str, command: str) -> None:
    assert find_test_command(text) == command


@each_row(
    "text,command",
    [
        ("Test: `npm test`", "npm test"),
        ("Test: npm test", "npm test"),
        ("test: npm test", "npm test"),
        ("**Test**: `npm test`", "npm test"),
        ("**Test:** npm test", "npm test"),
        ("**Test:** `npm test`", "npm test"),
        ("__Test__: npm test", "npm test"),
        ("*Test:* npm test", "npm test"),
        ("- Test: `npm test`", "npm test"),
        ("- **Test**: `npm test`", "npm test"),
        ("* **Test:** `npm test` (all packages)", "npm test"),
        ("1. Test: npm test", "npm test"),
        ("  - Tests: `npm test` or `yarn test`", "npm test"),
        ("Test command: `npm test`", "npm test"),
        ("**Test command**: make test", "make test"),
        ("- Run tests: `./gradlew test`", "./gradlew test"),
        ("- Run the tests: `mix test`", "mix test"),
        ("Test: run `npm test`", "npm test"),
        ("Test: Run `npm test` before you commit.", "npm test"),
        ("Test: run npm test", "npm test"),
        ("Test: npm test.", "npm test"),
        ("Test: go test ./...", "go test ./..."),
        ("Test: pytest .", "pytest ."),
        ("Test: CI=1 npm test", "CI=1 npm test"),
        ("Test: npm test (takes a minute)", "npm test"),
        ("Test: npm test — takes a minute", "npm test"),
        ("Test: (cd web && npm test)", "(cd web && npm test)"),
        ("Test: cargo test && (cd web && npm test)", "cargo test && (cd web && npm test)"),
        ("Test: pytest -k 'not slow and fast'", "pytest -k 'not slow and fast'"),
        ("Test: ``echo a``", "echo a"),
        ("### Test: `npm test`", "npm test"),
        ("TEST_COMMAND: `npm test`", "npm test"),
        ("```\nBuild: make\nTest: make test\n```", "make test"),
    ],
)
def test_label_is_found_in_bold_or_plain_text_and_in_lists(text: str, command: str) -> None:
    assert find_test_command(f"# Notes\n\nSome words.\n\n{text}\n\nMore.\n") == command


@each_row(
    "text,command",
    [
        ("Test:\n\n```bash\nnpm test\n```", "npm test"),
        ("**Test:**\n```\nnpm test\n```", "npm test"),
        ("- Test:\n  ```sh\n  npm test\n  ```", "npm test"),
        ("- **Test**:\n  - `npm test`\n  - `npm run e2e`", "npm test"),
        ("Test:\n\n    npm test\n", "npm test"),
        ("Tests:\n~~~~\nmake check\n~~~\n~~~~", "make check"),
        ("### Test\n\n```bash\nnpm test\n```", "npm test"),
        ("## Testing\n\nRun the tests with:\n\n```bash\npytest -q\n```", "pytest -q"),
        ("## 3. Running tests\n```\npytest -q\n```", "pytest -q"),
        ("## 🧪 Tests\n\n`pytest -q`", "pytest -q"),
        ("Tests\n-----\n\n```\npytest -q\n```", "pytest -q"),
        ("## Test\n\n- `npm test` — everything\n- `npm run e2e`", "npm test"),
        ("Test:\n```sh\n# everything\n\nnpm test  # slow\nnpm run one\n```", "npm test"),
        ("Test:\n```console\n$ npm test\n> 3 passed\n```", "npm test"),
        ("Test:\n```console\nWelcome\n$ npm test\n```", "npm test"),
        ("Test:\n```\npytest \\\n  -q \\\n  tests\n```", "pytest -q tests"),
        ("Test:\n```\nmake build &&\nmake test\n```", "make build && make test"),
        ("Test:\n```\ncd web\nnpm test\n```", "cd web && npm test"),
        (
            "Test:\n```bash\nsource .venv/bin/activate\nexport A=1\npytest\n```",
            ". .venv/bin/activate && export A=1 && pytest",
        ),
        ("Test:\n<!-- the fast ones -->\n```\nmake fast\n```", "make fast"),
    ],
)
def test_command_in_code_below_a_label_is_found(text: str, command: str) -> None:
    assert find_test_command(f"# Notes\n\n{text}\n") == command


@each_row(
    "text",
    [
        "",
        "# Project\n\nWe test a lot. Run `npm test` to test.",
        "The test: it must pass.",
        "Latest: npm test",
        "Test plan: `plan.md`",
        "Test coverage: 80%",
        "Testers: anna",
        "Test:",
        "- Build:\n- Test:\n- Lint: `ruff check`",
        "Test:\n\n## Lint\n\n```\nruff check\n```",
        "Test:\n\nSome prose.\n\n```\nrm -rf build\n```",
        "Test: TODO",
        "Test: none",
        "Test: None yet.",
        "Test: N/A",
        "Test: no tests yet",
        "Test: `<your test command>`",
        "Test: <command>",
        "Test: (none)",
        "Test: ...",
        "Test: -",
        "Tests: every change needs tests",
        "Tests: make sure that they pass",
        "Tests: covered by CI",
        "Tests: see docs/testing.md",
        "Tests: in `tests/`, one file a module",
        "Tests: `tests/`",
        "Tests: `tests/test_all.py`",
        "Tests: 42 passed",
        "Tests: unit, integration, e2e",
        "Testing: We use pytest with fixtures.",
        "Test://example.org",
        "## Testing\n\nTests live in `tests/`.\n\n```\nrm -rf build\n```",
        "## Tests\n\n```python\ndef test_it(): ...\n```",
        "## Tests\n\n```yaml\ntest: npm test\n```",
        "## Tests\n\n- `conftest.py` - fixtures",
        "Test:\n```\ncd web\n```",
        "Test:\n```\nfor d in */; do\n  make -C $d test\ndone\n```",
        "Test:\n```\n# nothing yet\n```",
        "Test:\n```\nmake build &&\n```",
        "Test:\n```\n```",
        "<!--\nTest: `npm test`\nTEST_COMMAND=x\n-->",
        "<!-- Test: `npm test` -->",
        "> Test: `npm test`",
        "```\n# TEST_COMMAND=x\n```",
        "```\nTEST_COMMAND='x\n```",
        '```\nTEST_COMMAND="<your command>"\n```',
        "```\nMY_TEST_COMMAND=x\n```",
        "Set `TEST_COMMAND=x` in the config.",
        "Test: `a\x00b`",
        "Test: `a\x1b[31mb`",
        "Test: " + "x" * 10_000,
    ],
)
def test_prose_placeholders_and_hostile_text_are_no_command(text: str) -> None:
    assert find_test_command(text) is None


def test_assignment_wins_over_a_label_and_the_first_of_each_wins() -> None:
    labels = "- Test: `first`\n- Test: `second`\n"
    assert find_test_command(labels) == "first"
    assignments = "```\nTEST_COMMAND=third\nTEST_COMMAND=fourth\n```\n"
    assert find_test_command(labels + assignments) == "third"


def test_label_without_a_command_is_skipped() -> None:
    assert find_test_command("Test: TODO\n\n## Commands\n\n- Test: `make test`\n") == "make test"


def test_line_endings_and_byte_order_mark_are_ignored() -> None:
    assert find_test_command("\ufeffTest:\r\n\r\n```\r\nnpm test\r\n```\r\n") == "npm test"


@each_row(
    "unit",
    [
        "Test:\n",
        "# Test\n",
        "Test: `",
        "`",
        "<!--",
        "<!-- --> ",
        "```\n",
        "- ",
        "**",
        "TEST_COMMAND=`",
        "Test: a (",
        "# Test\nx\n",
        "Test:\n```\na \\\n",
        "Test: ~~ ",
        "\n",
        " ",
        "a\n--\n",
    ],
)
def test_hostile_document_is_parsed_in_linear_time(unit: str) -> None:
    text = unit * (25_000 // len(unit))
    started = time.process_time()
    for prefix in ("", "```\n", "Test: "):
        find_test_command(prefix + text)
    # Linear time is a tenth of this, quadratic time a multiple.
    assert time.process_time() - started < 2


MARKDOWN = st.lists(
    st.sampled_from(
        [
            "Test:",
            "**Test**: ",
            "`",
            "```",
            "~~~",
            "\n",
            "\n\n",
            " ",
            "    ",
            "# ",
            "- ",
            "<!--",
            "-->",
        ]
    )
    | st.sampled_from(["TEST_COMMAND=", "'", '"', "\\", "npm test", "$ ", "---", "(", ")", "\r"])
    | st.text(max_size=5)
).map("".join)


@examples(60)
@given(MARKDOWN)
def test_command_in_any_document_is_one_line_without_nul(text: str) -> None:
    command = find_test_command(text)
    assert command is None or ("\n" not in command and "\x00" not in command)
    assert command is None or command == command.strip()
