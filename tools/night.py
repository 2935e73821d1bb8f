# ruff: noqa: PLR2004 - the numbers are those of the iterations
"""Make the record of a night, to look at the report: `python -m tools.night FOLDER [bad]`.

rooda runs with a scripted agent that plays Claude Code: 30 iterations, tests that grow from 4 to
26, a failed check, a time limit, a usage limit, an outage, a process that is left running. At the
end the seconds of the record become minutes.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rooda.record.reader import RecordReader
from rooda.record.rows import IterationRow, RunRow
from rooda.record.store import Store
from rooda.world.state.home import VARIABLE
from rooda.world.state.record_place import place_at

STRETCH = 300  # a second of the run is so many seconds of the night
STEPS = (
    "Wrote the plan for the query engine and split it into 26 steps",
    "Added a tokenizer for WHERE with string, number and NULL literals",
    "Parse WHERE into an expression tree, with AND before OR",
    "Moved error positions into one class so that every message has line and column",
    "Evaluate WHERE on rows; comparisons with NULL are unknown, not false",
    "Added ORDER BY with several keys, stable, NULLs last",
    "Added LIMIT and OFFSET, with streaming when there is no ORDER BY",
    "Introduced a row batch type to cut memory by about half",
    "Implemented INNER JOIN with a hash table on the smaller side",
    "Fixed the join of NULL keys: NULL never equals NULL, also in the hash table",
    "Added LEFT JOIN on top of the same hash table",
    "Resolve column names across joined tables and report ambiguous ones",
    "Checked RIGHT and FULL JOIN against the plan and found that both are out of scope",
    "Added GROUP BY with COUNT, SUM, MIN and MAX",
    "Added AVG and COUNT(DISTINCT ...)",
    "Added HAVING, evaluated after aggregation",
    "Detect dates in ISO form and compare them as dates",
    "Merged two sort tests that checked the same thing",
    "Read gzip and zstd files directly",
    "Added --output json and --output markdown",
    "",
    "Sort files larger than memory by spilling sorted runs to disk",
    "Show a progress line on a terminal for inputs over 100 MB",
    "Guess the delimiter and the header from the first 64 kB",
    "Accept UTF-8 with a BOM, UTF-16 and Latin-1 with a warning",
    "Added a config file for default output and delimiter",
    "<script>document.title='x'</script><img src=x onerror=alert(1)> Added an HTML table writer",
    "Cut the start-up time from 310 ms to 92 ms with late imports",
    "Wrote the manual page and an example for each clause",
    "Finished the plan: all 26 steps are done and the suite passes from a clean clone",
)
MODULES = ("parser", "lexer", "reader", "join", "group", "sort", "output", "evaluate")
CHECK = """\
import pathlib, sys, time
time.sleep(0.06)
count = int(pathlib.Path("tests/count").read_text())
broken = pathlib.Path("tests/broken").exists()
print("python -m pytest -q")
print("." * (count - 3 * broken) + "F" * (3 * broken) + "  [100%]")
if broken:
    print("=================================== FAILURES ===================================")
    print("____________________________ test_join_null_keys _______________________________")
    print("    def test_join_null_keys():")
    print('>       assert join(left, right) == [("1", "Ada", "London")]')
    print("E       AssertionError: Left contains one more item: (None, 'Grace', 'Arlington')")
    print("tests/test_join.py:48: AssertionError")
    print("=========================== short test summary info ============================")
    for name in ("test_join_null_keys", "test_join_two_keys_one_null", "test_null_never_equal"):
        print(f"FAILED tests/test_join.py::{name} - AssertionError: assert 3 == 2")
    print(f"3 failed, {count - 3} passed in 4.12s")
    sys.exit(1)
print(f"{count} passed in 3.80s")
"""


# -- the agent ----------------------------------------------------------------------------------


def say(event: Mapping[str, Any]) -> None:
    """Print an event."""
    print(json.dumps(event), flush=True)  # noqa: T201


def assistant(*blocks: Mapping[str, Any]) -> None:
    """Print a message of the assistant."""
    usage = {"input_tokens": 900, "output_tokens": 120, "cache_read_input_tokens": 20_000}
    message = {"role": "assistant", "content": list(blocks), "usage": usage}
    say({"type": "assistant", "message": message, "session_id": "s"})


def uses(tool: str, **about: str) -> None:
    """Print that the assistant uses a tool, and that the tool has ended."""
    assistant({"type": "tool_use", "id": "t", "name": tool, "input": about})
    block = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    say({"type": "user", "message": {"role": "user", "content": [block]}})


def result(words: str, tokens: int, *, is_error: bool = False, status: int | None = None) -> None:
    """Print the result."""
    say(
        {
            "type": "result",
            "subtype": "success",
            "is_error": is_error,
            "result": words,
            "num_turns": 12,
            "api_error_status": status,
            "total_cost_usd": round(tokens * 0.0000008, 4),
            "usage": {
                "input_tokens": tokens // 20,
                "output_tokens": tokens // 60,
                "cache_read_input_tokens": tokens,
            },
        }
    )


def agent(kind: str) -> None:
    """Work on the next step, as the script of the night says."""
    counter = Path(".git/night")
    number = int(counter.read_text()) if counter.exists() else 1
    once = Path(f".git/night-{number}")
    say({"type": "system", "subtype": "init", "model": "claude-sonnet-4-5", "session_id": "s"})
    is_first_try = not once.exists()
    once.touch()
    time.sleep(0.3 + (number * 7 % 10) / 20)
    if kind == "good" and is_first_try and number == 12:
        say_limit()
    if kind == "good" and is_first_try and number == 24:
        result("API Error: 529 Overloaded", 9_000, is_error=True, status=529)
        sys.exit(1)
    counter.write_text(str(number + 1))
    if kind == "bad":
        work_badly(number)
    else:
        work(number)


def say_limit() -> None:
    """Report a usage limit that ends in a few seconds, and end."""
    say(
        {
            "type": "rate_limit_event",
            "rate_limit_info": {"status": "rejected", "resetsAt": int(time.time()) + 9},
        }
    )
    result("Claude AI usage limit reached", 5_000, is_error=True, status=429)
    sys.exit(1)


def change(number: int, tests: int) -> None:
    """Change a few files, as an iteration of the night does."""
    module = Path(f"src/tabq/{MODULES[number % len(MODULES)]}.py")
    lines = module.read_text().splitlines() if module.exists() else []
    kept = lines[: max(0, len(lines) - number % 9)]
    new = [f"def step_{number}_{line}(row):" for line in range(20 + number * 37 % 160)]
    module.write_text("\n".join(kept + new) + "\n")
    Path(f"tests/test_{module.stem}.py").write_text(
        "".join(f"def test_{one}(): assert step(row) == {one}\n" for one in range(number * 3))
    )
    Path("tests/count").write_text(f"{tests}\n")
    uses("Read", file_path=f"{Path.cwd()}/{module}")
    uses("Grep", pattern="def step_", path="src")
    uses("Edit", file_path=f"{Path.cwd()}/{module}")
    uses("Bash", command=f"pytest -q tests/test_{module.stem}.py")


def work(number: int) -> None:
    """Do one step of the good night."""
    headline, broken = STEPS[number - 1], Path("tests/broken")
    assistant({"type": "text", "text": "I read the plan and look at the code of this step first."})
    if number != 13:
        lost = 2 * (number >= 18)
        change(number, min(26, 3 + number - lost))
    if number == 9:
        broken.touch()
    elif broken.exists():
        broken.unlink()
    if number == 21:
        subprocess.Popen(["sleep", "600"])
        time.sleep(60)
    if number == 6:
        subprocess.Popen(["sleep", "601"], start_new_session=True)
    end = "\n\n<promise>SUCCESS</promise>" if number == len(STEPS) else ""
    words = (
        f"{headline}.\n\nThe tests of this step are in `tests/`. The **next step** is in PLAN.md."
    )
    if number == 26:
        Path(".env.local").write_text("TOKEN=1\n")
    assistant({"type": "text", "text": words + end})
    result(words + end, 300_000 + number * 91_000 % 700_000)


def work_badly(number: int) -> None:
    """Do one step of the night that ends blocked."""
    if number <= 5:
        change(number, 3 + number)
    if number == 5:
        Path("tests/broken").touch()
    if number < 6:
        words = f"{STEPS[number - 1]}.\n\nThe four new tests need a bucket."
    else:
        uses("Bash", command="printenv TABQ_S3_KEY")
        uses("Grep", pattern="S3 in PLAN.md")
        words = (
            "I cannot go on without TABQ_S3_KEY. The remaining steps read from a real bucket, and "
            "PLAN.md forbids a mock. The variable is not in the environment, in .env or in the "
            "documentation.\n\n<promise>FAILURE</promise>"
        )
    assistant({"type": "text", "text": words})
    result(words, 200_000 + number * 40_000)


# -- the run ------------------------------------------------------------------------------------


def _states(folder: Path) -> dict[str, str]:
    return {VARIABLE: str(folder / "state")}


def create(folder: Path, kind: str) -> None:
    """Create the project and run rooda in it."""
    project, programs = folder / "tabq", folder / "bin"
    for one in (project / "src/tabq", project / "tests", programs):
        one.mkdir(parents=True)
    (project / "check.py").write_text(CHECK)
    (project / "tests/count").write_text("4\n")
    (project / ".gitignore").write_text("tests/broken\n.env.local\n")
    claude = programs / "claude"
    words = shlex.join([sys.executable, "-m", "tools.night", "--agent", kind])
    claude.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(Path.cwd()))} exec {words}\n")
    claude.chmod(0o755)
    (project / "rooda-config.yml").write_text(
        "procedures:\n  build:\n"
        + "".join(f"    {name}: [{{content: x}}]\n" for name in ("observe", "orient", "decide"))
        + "    act: [{content: 'do it'}]\n"
    )
    for command in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.org"],
        ["add", "-A"],
        ["commit", "-qm", "Begin"],
    ):
        subprocess.run(["git", *command], cwd=project, check=True)
    rooda = Path(sys.executable).with_name("rooda")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        [
            *(rooda, "build", "--ai-cmd-alias", "claude", "--max-iterations", "40"),
            *("--verify", f"{sys.executable} check.py", "--commit", "--backoff", "1.5"),
            *("--iteration-timeout", "3", "--kill-grace", "0.5"),
        ],
        cwd=project,
        env={**os.environ, "PATH": path, "HOME": str(folder), "IS_SANDBOX": "1", **_states(folder)},
        check=False,
    )


def stretch(project: Path) -> None:
    """Make the seconds of the record longer, as if the run had taken a night."""
    state = place_at(project, project.parent / "state").state
    reader = RecordReader(state)
    run = reader.run()
    start = datetime.fromisoformat(run.started_at)
    night = start.replace(hour=23, minute=2, second=11)

    def moved(text: str | None) -> str | None:
        if text is None:
            return None
        seconds = (datetime.fromisoformat(text) - start).total_seconds()
        return (night + timedelta(seconds=seconds * STRETCH)).isoformat(timespec="milliseconds")

    store = Store(state, print)
    for row in reader.iterations(run.run):
        store.save(iteration=_stretched_iteration(row, moved))
    store.save(run=_stretched_run(run, moved))
    store.close()


def _stretched_iteration(row: IterationRow, moved: Any) -> IterationRow:
    verify = row.verify and replace(row.verify, duration=row.verify.duration * STRETCH)
    segments = tuple(
        replace(one, start=one.start * STRETCH, seconds=one.seconds * STRETCH)
        for one in row.segments
    )
    return replace(
        row,
        started_at=moved(row.started_at),
        ended_at=moved(row.ended_at),
        duration=(row.duration or 0) * STRETCH,
        segments=segments,
        verify=verify,
    )


def _stretched_run(run: RunRow, moved: Any) -> RunRow:
    waits = tuple(
        replace(
            one,
            started_at=moved(one.started_at),
            until=moved(one.until),
            seconds=one.seconds * STRETCH,
            waited=(one.waited or 0) * STRETCH,
        )
        for one in run.waits or ()
    )
    return replace(run, started_at=moved(run.started_at), ended_at=moved(run.ended_at), waits=waits)


if __name__ == "__main__":
    if sys.argv[1] == "--agent":
        agent(sys.argv[2])
    else:
        where = Path(sys.argv[1]).absolute()
        create(where, sys.argv[2] if sys.argv[2:] else "good")
        stretch(where / "tabq")
