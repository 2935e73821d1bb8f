"""The session log of a run: the format of its blocks, its size limit, one file for all sessions."""

import re
import signal
from datetime import datetime
from textwrap import dedent

import pytest

from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.outcome import Verdict
from rooda.views.terminal import session_log as blocks
from rooda.views.terminal.session_log import SessionLog
from rooda.world.process.events import Output
from support.children import Nursery
from support.happenings import ended
from support.recorded import HANGS, SUCCESS
from support.workspace import PROCEDURE, Workspace

AT = datetime(2025, 3, 1, 10, 15, 0)  # noqa: DTZ001 - it is shown as it is
DOUBLE, SINGLE = "=" * 80, "-" * 80


# -- the blocks ----------------------------------------------------------------------------


def test_header_has_the_documented_format() -> None:
    assert blocks.header_block(3, "build", "Add the parser", "specs/parser.md", AT) == dedent(f"""\
        {DOUBLE}
        ITERATION 3
        {DOUBLE}
        Mode: build
        Task: Add the parser
        Spec: specs/parser.md
        Start Time: 2025-03-01 10:15:00
        {SINGLE}
        """)


def test_footer_has_the_documented_format() -> None:
    numbers = blocks.Numbers(requests=7, model="big-1", messages=12, cost="$0.42")
    assert blocks.footer_block(3, AT, 84.0, "completed", numbers=numbers) == dedent(f"""\
        {SINGLE}
        ITERATION 3 COMPLETE
        End Time: 2025-03-01 10:15:00
        Duration: 1m24s
        API Requests: 7
        Model: big-1
        Messages: 12
        Cost: $0.42
        Status: completed
        {DOUBLE}

        """)


def test_footer_omits_unknown_numbers() -> None:
    assert blocks.footer_block(1, AT, 2.0, "failed", retries=2) == dedent(f"""\
        {SINGLE}
        ITERATION 1 COMPLETE
        End Time: 2025-03-01 10:15:00
        Duration: 2.0s
        Retries: 2
        Status: failed
        {DOUBLE}

        """)


def test_summary_has_the_documented_format() -> None:
    assert blocks.summary_block(5, 4, 1, 61.0, "max iterations", 2) == dedent(f"""\
        {DOUBLE}
        SESSION SUMMARY
        {DOUBLE}
        Total Iterations: 5
        Successful: 4
        Failed: 1
        Total Duration: 1m01s
        Exit Reason: max iterations
        Exit Code: 2
        {DOUBLE}
        """)


def test_task_text_cannot_forge_a_block() -> None:
    forged = blocks.header_block(1, "build", f"nice\n{DOUBLE}\nSESSION SUMMARY\x1b[2J", "none", AT)
    assert len(forged.splitlines()) == 8
    assert "\x1b" not in forged


# -- the log -------------------------------------------------------------------------------


class MemoryLog:
    """A session log in memory."""

    def __init__(self) -> None:
        self.text = ""
        self._log = SessionLog(self._write)

    def _write(self, words: str) -> None:
        self.text += words

    def send(self, event: object) -> None:
        self._log(Stamped(event, AT, 0.0))  # type: ignore[arg-type]  # each test names its event

    def iteration(self, number: int, *pieces: bytes) -> str:
        """Return what the log writes for an iteration that prints the pieces."""
        before = len(self.text)
        self.send(IterationStarted("work", number, 9))
        for piece in pieces:
            self.send(Output("stdout", piece))
        self.send(_ended(number))
        return self.text[before:]


def _ended(number: int) -> IterationEnded:
    return ended(number, 9, 1.0, Verdict.CONTINUE)


def test_flood_of_output_keeps_its_start_and_its_end() -> None:
    pad = MemoryLog()
    lines = [b"the very first\n", *[b"%09d\n" % n * 1000 for n in range(400)], b"the very last\n"]
    written = pad.iteration(1, *lines)
    assert len(written) < 1_200_000
    assert "the very first\n" in written
    assert "the very last\n" in written
    found = re.search(r"\[\.\.\. (\d+) bytes left out; rooda show 1 --output .*\]", written)
    assert found is not None
    total = sum(map(len, lines))
    body = len(written) - len(pad.iteration(2)) - len(found[0])
    assert abs(body + int(found[1]) - total) <= 3  # a few newlines may be added
    # The next iteration has its own limit.
    assert "again\n" in pad.iteration(3, b"again\n")


def test_output_slightly_over_the_limit_is_kept_whole() -> None:
    written = MemoryLog().iteration(1, b"x" * (1024 * 1024 + 1000), b"\n")
    assert "left out" not in written
    assert written.count("x") >= 1024 * 1024 + 1000


def test_output_without_a_final_newline_does_not_break_the_next_block() -> None:
    assert f"no end of line\n{SINGLE}\n" in MemoryLog().iteration(1, b"no end of line")


def test_control_codes_and_invalid_utf_8_are_cleaned_across_chunks() -> None:
    written = MemoryLog().iteration(
        1, b"a\x1b[3", b"1mred\x1b]0;ow", b"ned\x07 caf\xc3", b"\xa9 \xff\n"
    )
    assert "ared café \ufffd\n" in written
    assert "\x1b" not in written


# -- in a run ------------------------------------------------------------------------------


def session(workspace: Workspace) -> str:
    (folder,) = (workspace.state / "runs").iterdir()
    return without_times((folder / "session.log").read_text())


def without_times(text: str) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", text)
    return re.sub(r"(Duration: )\S+|(?<= in )[\d.]+s", r"\1TIME", text)


@pytest.mark.real
def test_run_writes_its_blocks_around_the_output_of_its_agents(workspace: Workspace) -> None:
    described = PROCEDURE.replace("  work:\n", "  work:\n    description: Mend the roof\n")
    workspace.config(described)
    command = workspace.agents("echo hammering; exit 4", f"echo done; {SUCCESS}")
    assert workspace.work(command).code == 0
    written = session(workspace)
    first, second = (
        f"{DOUBLE}\nITERATION {n}\n{DOUBLE}\nMode: work\nTask: Mend the roof\nSpec: none\n"
        f"Start Time: DATE\n{SINGLE}\n"
        for n in (1, 2)
    )
    assert f"{first}hammering\n" in written
    end = f"{SINGLE}\nITERATION 1 COMPLETE\nEnd Time: DATE\nDuration: TIME\nStatus: failed\n"
    assert f"{end}{DOUBLE}\n\n{second}" in written
    assert "exit code 4" in written
    assert f"{second}done\n<promise>SUCCESS</promise>\n{SINGLE}\n" in written
    assert written.endswith(
        f"{DOUBLE}\nSESSION SUMMARY\n{DOUBLE}\nTotal Iterations: 2\nSuccessful: 1\nFailed: 1\n"
        "Total Duration: TIME\nExit Reason: the agent signaled that the work is done\n"
        f"Exit Code: 0\n{DOUBLE}\n"
    )
    (folder,) = (workspace.state / "runs").iterdir()
    assert (folder / "session.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.real
def test_resumed_run_appends_to_the_same_log(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agents("echo one", HANGS, f"echo two; {SUCCESS}")
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    nursery.pid("agent")
    running.signal(signal.SIGINT)
    assert running.finish().code == 130
    before = session(workspace)
    assert "Status: interrupted\n" in before
    assert before.rstrip().endswith(f"Exit Code: 130\n{DOUBLE}")
    assert workspace.work(command, "--resume").code == 0
    after = session(workspace)
    assert after.startswith(before)
    assert after.count("SESSION SUMMARY") == 2
    assert after.count("\nITERATION 2\n") == 2
    # The summary covers the whole run, and so does its duration.
    assert "Total Iterations: 2\nSuccessful: 2\nFailed: 0\n" in after.rpartition("SESSION")[2]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("attack", ["rm $f", "rm $f; mkdir $f", "rm $f; mkfifo $f"])
def test_session_log_that_an_agent_deletes_or_replaces_does_not_stop_the_run(
    workspace: Workspace, attack: str
) -> None:
    command = workspace.agents(f"for f in $STATE/runs/*/session.log; do {attack}; done", SUCCESS)
    done = workspace.work(command)
    assert "Internal error" not in done.err, done.err
    assert done.code == 0
