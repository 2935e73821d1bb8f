"""The agent of the demo: a script in place of an AI coding agent. No model, no key, no network.

The script reads the prompt from standard input, reads the state from the files, does one task,
commits, and signals when no task is left. Its second start fails on purpose.
"""

import subprocess
import sys
import time
from pathlib import Path

PAUSE = 0.35

TASKS = {
    "Write greet.py": ("greet.py", 'def greet(name):\n    return f"Hello, {name}!"\n'),
    "Test it": (
        "test_greet.py",
        'from greet import greet\n\ndef test_greet():\n    assert greet("you") == "Hello, you!"\n',
    ),
    "Explain it in README.md": ("README.md", "# greet\n\n`greet(name)` says hello.\n"),
}


def main() -> int:
    """Do the next open task in TASKS.md."""
    _say("[scripted agent: no model is asked]")
    prompt = sys.stdin.read()
    _say(f"OODA: OBSERVE   the prompt has {len(prompt.split())} words")
    tasks = Path("TASKS.md")
    plan = tasks.read_text(encoding="utf-8")
    todo = [name for name in TASKS if f"- [ ] {name}" in plan]
    _say(f"OODA: ORIENT    {len(todo)} of {len(TASKS)} tasks are open")
    if not todo:
        _say("<promise>SUCCESS</promise>")
        return 0
    _say(f"OODA: DECIDE    next: {todo[0]}")
    if _fails_on_purpose(todo):
        sys.stderr.write("lost the connection to the model (on purpose, once)\n")
        return 1
    file, content = TASKS[todo[0]]
    _say(f"OODA: ACT       writing {file}")
    Path(file).write_text(content, encoding="utf-8")
    tasks.write_text(plan.replace(f"- [ ] {todo[0]}", f"- [x] {todo[0]}"), encoding="utf-8")
    _git("add", "-A")
    _git("commit", "-q", "-m", todo[0])
    _say(f"committed: {todo[0]}")
    if len(todo) == 1:
        _say("<promise>SUCCESS</promise>")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    time.sleep(PAUSE)


def _fails_on_purpose(todo: list[str]) -> bool:
    """Return whether to fail, which happens on the first attempt at the second task."""
    mark = Path(".git/demo-stumbled")
    if len(todo) != len(TASKS) - 1 or mark.exists():
        return False
    mark.touch()
    return True


def _git(*words: str) -> None:
    subprocess.run(["git", *words], check=True)


if __name__ == "__main__":
    sys.exit(main())
