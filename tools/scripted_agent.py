"""Play Claude Code in the examples of the docs: no model, no key, no network.

It does what the built-in prompts ask for, with real files and real commits, in the project that
`create_project` makes. The file `.git/agent-trouble` makes it misbehave: see `Trouble`.
"""

import json
import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

TASK = """\
Let greet() speak Spanish and German too. A parameter chooses the language;
without it, everything stays as it is.
"""
AGENTS = """\
# greet

A small Python library that greets people.

- Tasks are kept in `PLAN.md`.
- Test: `make test`
- Code: `greet.py`. Tests: `test_greet.py`.
"""
TASKS = ("Choose the language by a parameter", "Speak Spanish", "Speak German")
GREETINGS = {"en": "Hello, {}!", "es": "¡Hola, {}!", "de": "Hallo, {}!"}


class Trouble(StrEnum):
    """What the agent does wrong."""

    WRONG_TEXT = "wrong text"  # it breaks a test in the second task, until it gets feedback
    ALWAYS_WRONG = "always wrong"  # it breaks a test in the second task, and repeats that
    LOGGED_OUT = "logged out"


def create_project(folder: Path) -> None:
    """Write the files of the project and commit them."""
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text("test:\n\t@python3 test_greet.py\n")
    (folder / ".gitignore").write_text("__pycache__/\n")
    _write_code(folder, ["en"], has_parameter=False)
    git("init", "-q", "-b", "main", folder=folder)
    commit("Greet people", folder=folder)


def _write_code(folder: Path, languages: list[str], *, has_parameter: bool) -> None:
    if has_parameter:
        table = "".join(f'    "{name}": "{GREETINGS[name]}",\n' for name in languages)
        code = f"GREETINGS = {{\n{table}}}\n\n\n"
        code += 'def greet(name, language="en"):\n    return GREETINGS[language].format(name)\n'
    else:
        code = 'def greet(name):\n    return f"Hello, {name}!"\n'
    (folder / "greet.py").write_text(code)
    tests = "from greet import greet\n\nfailed = 0\n\n\n"
    tests += "def check(number, result, expected):\n    global failed\n"
    tests += "    failed += result != expected\n    words = f'greet() returns {result}'\n"
    tests += "    print('ok' if result == expected else 'not ok', number, '-', words)\n\n\n"
    tests += f"print('1..{len(languages)}')\n"
    for number, language in enumerate(languages, 1):
        argument = f', "{language}"' if has_parameter else ""
        expected = GREETINGS[language].format("Ada")
        tests += f'check({number}, greet("Ada"{argument}), "{expected}")\n'
    tests += "raise SystemExit(failed > 0)\n"
    (folder / "test_greet.py").write_text(tests)


def git(*words: str, folder: Path = Path()) -> None:
    """Run git."""
    subprocess.run(["git", *words], cwd=folder, check=True)


def commit(message: str, folder: Path = Path()) -> None:
    """Commit everything."""
    git("add", "-A", folder=folder)
    git("commit", "-q", "-m", message, folder=folder)


def main() -> int:
    """Read a prompt, do one step, and report it in Claude Code's stream-json format."""
    prompt = sys.stdin.read()
    _print({"type": "system", "subtype": "init", "model": "claude-scripted", "session_id": "s"})
    if _trouble() == Trouble.LOGGED_OUT:
        _print_result("Not logged in · Please run /login", is_error=True)
        return 1
    answer = _work(prompt)
    _print({"type": "assistant", "message": {"content": [{"type": "text", "text": answer}]}})
    _print_result(answer)
    return 0


def _print_result(text: str, *, is_error: bool = False) -> None:
    usage = {"input_tokens": 0 if is_error else 41000, "output_tokens": 0 if is_error else 2500}
    cost = 0 if is_error else 0.31
    result = {"type": "result", "subtype": "success", "is_error": is_error, "result": text}
    _print(result | {"num_turns": 9, "session_id": "s", "total_cost_usd": cost, "usage": usage})


def _print(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")


def _trouble() -> str:
    file = Path(".git/agent-trouble")
    return file.read_text().strip() if file.exists() else ""


def _work(prompt: str) -> str:
    """Do what the prompt asks for, and return the answer."""
    if "Write `AGENTS.md` at the project's root" in prompt:
        Path("AGENTS.md").write_text(AGENTS)
        commit("Describe the project for agents")
        return _done("wrote AGENTS.md; every command in it ran", "SUCCESS")
    if "Write the draft or the improvements to `PLAN.md`" in prompt:
        return _draft(Path("PLAN.md"), "### ", "SUCCESS")
    if "# Refresh the implementation plan" in prompt:
        return _draft(Path(".ralph/implementation_plan.md"), "## ", "COMPLETE")
    if "# Implement the next task of the plan" in prompt:
        return _build(Path(".ralph/implementation_plan.md"), "complete", "COMPLETE", prompt)
    if "Choose ONE task for this iteration" in prompt:
        return _build(Path("PLAN.md"), "done", "SUCCESS", prompt)
    if page := re.search(r"^Write (\S+\.md): (.+)\.$", prompt, re.MULTILINE):
        return _write_page(Path(page[1]), page[2])
    return _document()


def _done(summary: str, signal: str = "") -> str:
    return f"Summary: {summary}" + (f"\n\n<promise>{signal}</promise>" if signal else "")


def _draft(plan: Path, heading: str, signal: str) -> str:
    if plan.exists():
        return _done("read the plan again and found nothing to change", signal)
    tasks = [f"{heading}Task {n}: {task}\nStatus: open\n" for n, task in enumerate(TASKS, 1)]
    plan.write_text("# Plan: greet() in three languages\n\n" + "\n".join(tasks))
    return _done(f"wrote {plan.name} with {len(tasks)} tasks")


def _build(plan: Path, done: str, signal: str, prompt: str) -> str:
    text = plan.read_text()
    number = len(re.findall(f"Status: {done}", text))
    if number < len(TASKS):
        trouble = _trouble()
        _write_code(Path(), list(GREETINGS)[: number + 1], has_parameter=True)
        is_wrong = trouble == Trouble.ALWAYS_WRONG or (
            trouble == Trouble.WRONG_TEXT and "## FEEDBACK" not in prompt
        )
        if number == 1 and is_wrong:
            code = Path("greet.py")
            code.write_text(code.read_text().replace("¡Hola", "Hola"))
            return _done("Spanish works", signal)
        plan.write_text(text.replace("Status: open", f"Status: {done}", 1))
        if signal == "SUCCESS":  # ralph commits, so its agent must not
            commit(TASKS[number])
    is_last = number >= len(TASKS) - 1
    return _done(f"{TASKS[min(number, 2)]}: done, tests pass", signal if is_last else "")


def _document() -> str:
    page = Path("README.md")
    if page.exists():
        return _done("every sentence in README.md is true", "SUCCESS")
    page.write_text("# greet\n\n`greet(name)` returns a greeting.\n")
    commit("Explain greet()")
    return _done("wrote README.md")


def _write_page(page: Path, about: str) -> str:
    if page.exists():
        return _done(f"every sentence in {page} is true", "SUCCESS")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(f"# {about.capitalize()}\n")
    commit(f"Explain {about}")
    return _done(f"wrote {page}")


if __name__ == "__main__":
    sys.exit(main())
