"""The agent of the demo: a script in place of an AI coding agent. No model, no key, no network.

The script reads the prompt from standard input, reads the state from the files, does one task, and
signals when no task is left. Its work on the last task is wrong on purpose: the check of the demo
fails, and the next start of the script repairs it.
"""

import sys
import time
from pathlib import Path

PAUSE = 0.3

_TEST = """\
import unittest

from {module} import {function}


class Test{name}(unittest.TestCase):
    def test_{function}(self):
        self.assertEqual({function}({given}), {expected})
"""
_GREET_ALL = """\
from greet import greet


def greet_all(names):
    return " ".join(greet(name) for name in names{part})
"""
_WRONG, _RIGHT = _GREET_ALL.format(part="[1:]"), _GREET_ALL.format(part="")


def test_of(module: str, given: str, expected: str) -> str:
    """Return a test file for the function of a module; both have the same name."""
    name = "".join(map(str.capitalize, module.split("_")))
    return _TEST.format(
        module=module, function=module, name=name, given=given, expected=repr(expected)
    )


TASKS = {
    "Write farewell(name)": {
        "farewell.py": 'def farewell(name):\n    return f"Goodbye, {name}!"\n',
        "test_farewell.py": test_of("farewell", '"Ada"', "Goodbye, Ada!"),
    },
    "Explain it in README.md": {
        "README.md": "# greet\n\n`greet(name)` says hello, `farewell(name)` says goodbye.\n",
    },
    "Write greet_all(names)": {
        "greet_all.py": _WRONG,
        "test_greet_all.py": test_of("greet_all", '["Ada", "Alan"]', "Hello, Ada! Hello, Alan!"),
    },
}


def main() -> int:
    """Do the next open task in TASKS.md."""
    _say("[scripted agent: no model is asked]")
    prompt = sys.stdin.read()
    _say(f"OODA: OBSERVE   the prompt has {len(prompt.split())} words")
    tasks = Path("TASKS.md")
    plan = tasks.read_text(encoding="utf-8")
    todo = [name for name in TASKS if f"- [ ] {name}" in plan]
    if not todo:
        return _repair()
    _say(f"OODA: ORIENT    {len(todo)} of {len(TASKS)} tasks are open")
    _say(f"OODA: DECIDE    next: {todo[0]}")
    files = TASKS[todo[0]]
    _say(f"OODA: ACT       writing {' and '.join(files)}")
    for file, content in files.items():
        Path(file).write_text(content, encoding="utf-8")
    tasks.write_text(plan.replace(f"- [ ] {todo[0]}", f"- [x] {todo[0]}"), encoding="utf-8")
    _say(f"Summary: {_summary(todo[0])}")
    if len(todo) == 1:
        _say("<promise>SUCCESS</promise>")
    return 0


def _summary(task: str) -> str:
    """Return the task in the past tense."""
    return task.replace("Write ", "Wrote ").replace("Explain ", "Explained ") + "."


def _repair() -> int:
    """Repair the last task: the prompt has what the check printed."""
    _say("OODA: ORIENT    no task is open, but the check failed: greet_all leaves out a name")
    _say("OODA: DECIDE    next: repair greet_all(names)")
    _say("OODA: ACT       writing greet_all.py")
    Path("greet_all.py").write_text(_RIGHT, encoding="utf-8")
    _say("Summary: greet_all(names) greets the first name too.")
    _say("<promise>SUCCESS</promise>")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    time.sleep(PAUSE)


if __name__ == "__main__":
    sys.exit(main())
