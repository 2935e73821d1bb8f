"""Finds the command that tests a project."""

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from rooda.plan.first_config import Proposals, find_tests, line_of, template
from support.tables import each_row

SCRIPT = '{"scripts": {"test": "vitest run"}}'
DEEP = "[" * 100_000


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


@each_row(
    "files,commands",
    [
        ({}, []),
        ({"README.md": "test:"}, []),
        # make
        ({"Makefile": "test:\n\ttrue\n"}, ["make test"]),
        ({"Makefile": "all: build\nlint test : build ; true\n"}, ["make test"]),
        ({"Makefile": "test::\n"}, ["make test"]),
        ({"makefile": "test: # all tests\n"}, ["make test"]),
        ({"Makefile": "test:\r\n\ttrue\r\n"}, ["make test"]),
        ({"Makefile": ".PHONY: test\n"}, []),
        ({"Makefile": "test := true\ntest ::= x\ntest = y\ntest ?= z\ntest :::= w\n"}, []),
        ({"Makefile": "test: CFLAGS = -O2\ntest: FLAGS := x\ntest: A += b\n"}, []),
        ({"Makefile": "test: CFLAGS = -O2\ntest:: build\n"}, ["make test"]),
        ({"Makefile": "# test:\nall:\n\ttest: x\n"}, []),
        ({"Makefile": "test-all:\ntests:\ntest%:\n"}, []),
        ({"GNUmakefile": "all:\n", "Makefile": "test:\n"}, []),  # make reads the first
        # Python
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ["pytest"]),
        ({"pyproject.toml": "[dependency-groups]\ndev = ['pytest>=8']\n"}, ["pytest"]),
        ({"pyproject.toml": "[project]\n# pytest one day\n"}, []),
        ({"pyproject.toml": "[tool.pytest]\n", "uv.lock": ""}, ["uv run pytest"]),
        ({"pytest.ini": "", "poetry.lock": ""}, ["poetry run pytest"]),
        ({"tox.ini": "[pytest]\n"}, ["pytest"]),
        ({"setup.cfg": "[tool:pytest]\n"}, ["pytest"]),
        ({"tests/test_it.py": ""}, ["pytest"]),
        ({"test/it_test.py": ""}, ["pytest"]),
        ({"tests/it.rs": "", "tests/data.py": ""}, []),
        ({"tests": "a file"}, []),
        ({"uv.lock": ""}, []),
        # Node
        ({"package.json": SCRIPT}, ["npm test"]),
        ({"package.json": f"\ufeff{SCRIPT}", "package-lock.json": ""}, ["npm test"]),
        ({"package.json": SCRIPT, "pnpm-lock.yaml": ""}, ["pnpm test"]),
        ({"package.json": SCRIPT, "yarn.lock": ""}, ["yarn test"]),
        ({"package.json": SCRIPT, "bun.lock": ""}, ["bun run test"]),
        ({"package.json": SCRIPT, "bun.lockb": ""}, ["bun run test"]),
        (
            {
                "package.json": '{"scripts": {"test": '
                '"echo \\"Error: no test specified\\" && exit 1"}}'
            },
            [],
        ),
        ({"package.json": '{"scripts": {"test": " "}}'}, []),
        ({"package.json": '{"scripts": {"test": ["a"]}}'}, []),
        ({"package.json": '{"scripts": "test"}'}, []),
        ({"package.json": '{"scripts": {"build": "tsc"}}'}, []),
        ({"package.json": "[]"}, []),
        ({"package.json": "{"}, []),
        ({"package.json": DEEP}, []),
        # Rust, Go
        ({"Cargo.toml": ""}, ["cargo test"]),
        ({"go.mod": "module x\n"}, ["go test ./..."]),
        # several: make knows best
        (
            {"go.mod": "", "package.json": SCRIPT, "Makefile": "test:\n", "conftest.py": ""},
            ["make test", "pytest", "npm test", "go test ./..."],
        ),
    ],
)
def test_test_command_follows_from_the_files_and_the_config_is_valid(
    tmp_path: Path, files: Mapping[str, str], commands: list[str]
) -> None:
    found = find_tests(written(tmp_path, files))
    assert [one.command for one in found] == commands
    text = template(Proposals(agents=("claude",), tests=found))
    lines = text.splitlines()
    for key in ("verify", "command"):  # as `rooda init` tells the user to do
        number = line_of(text, key) - 1
        lines[number] = lines[number].replace("#", "", 1)
    first = commands[0] if commands else None
    values = yaml.safe_load("\n".join(lines))
    assert values == {"loop": {"ai_cmd_alias": "claude", "verify": {"command": first}}}


@each_row("name", ["Makefile", "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "tests"])
@each_row("kind", ["folder", "pipe", "link to itself", "zeros", "one long line"])
def test_hostile_file_does_no_harm(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "link to itself":
            path.symlink_to(path)
        case "zeros":
            with path.open("wb") as file:
                file.truncate(400 * 1024 * 1024)
        case _:
            path.write_bytes(b"test pytest\xff : " * 200_000)
    for one in find_tests(tmp_path):
        assert one.command in ("make test", "pytest", "cargo test", "go test ./...")
