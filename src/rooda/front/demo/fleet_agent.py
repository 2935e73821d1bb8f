"""The agent of `rooda fleet demo`: a script that writes one small file in three iterations."""

import sys
import time
from pathlib import Path

STEPS = ("the function", "the test", "the documentation")
TASKS = ("greet", "farewell", "shout")
_PAUSE = 1.5  # seconds: so long that a person sees what happens


def main() -> int:
    """Do the next step of the task that the prompt names."""
    prompt = sys.stdin.read()
    task = next((name for name in TASKS if f"## {name}" in prompt), TASKS[0])
    file = Path(f"{task}.txt")
    done = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    step = STEPS[min(len(done), len(STEPS) - 1)]
    _say(f"[scripted agent: no model is asked] writing {step} of {task}")
    time.sleep(_PAUSE)
    file.write_text("".join(f"{line}\n" for line in [*done, step]), encoding="utf-8")
    _say(f"Summary: wrote {step} of {task}")
    if len(done) + 1 >= len(STEPS):
        _say("<promise>SUCCESS</promise>")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
