"""Trials of the work: what an agent says, prints, changes and deletes."""

import shlex
import shutil
from pathlib import Path

from msgspec.structs import replace

from rooda.front.selftest.process_trials import adapter
from rooda.front.selftest.scratch import Scratch
from rooda.front.selftest.trial import (
    NO_CRASH,
    NOTHING_LIVES,
    Evidence,
    Need,
    Trial,
    ends_with,
    fact,
    numbers,
)
from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.world.state.folder import StateFolder

_SUCCESS = "echo '<promise>SUCCESS</promise>'"
_LIMIT = (
    '{"type":"result","is_error":true,"api_error_status":429,'
    '"result":"Usage limit reached. Please try again in 1 second."}'
)
_RESULT = '{"type":"result","is_error":false,"result":"<promise>SUCCESS</promise>"}'
_PRINTED, _KEPT = 50 << 20, 10 << 20  # bytes
_FLOOD = f"""
import sys
line = b"x" * 65535 + b"\\n"
for _ in range({_PRINTED} // len(line)):
    sys.stdout.buffer.write(line)
sys.stdout.buffer.write(b"<promise>SUCCESS</promise>\\n")
"""


def _behaves(scratch: Scratch) -> Evidence:
    return scratch.finish(scratch.start(*scratch.shell_agent(f"echo done > done.txt; {_SUCCESS}")))


def _floods(scratch: Scratch) -> Evidence:
    flags = ("--max-transcript", str(_KEPT), "--capture", "pipe")
    found = scratch.finish(scratch.start(*scratch.python_agent(_FLOOD), *flags))
    files = scratch.state.rglob("stdout.log")
    size = sum(file.stat().st_blocks * 512 for file in files)
    is_bounded = 0 < size < _KEPT + (1 << 20)
    return replace(found, facts={"on disk": "bounded" if is_bounded else f"{size} bytes"})


def _lies(scratch: Scratch) -> Evidence:
    agent = scratch.shell_agent(_SUCCESS, f"touch good; {_SUCCESS}")
    flags = ("--verify", "test -e good", "--verify-baseline", "off")
    return scratch.finish(
        scratch.start(*agent, *flags, "-n", "3", "--failure-threshold", "3", "--backoff", "0")
    )


def _is_limited(scratch: Scratch) -> Evidence:
    bodies = [f"printf '%s\\n' {shlex.quote(event)}" for event in (_LIMIT, _RESULT)]
    _, command = scratch.shell_agent(*bodies)
    found = scratch.finish(scratch.start(*adapter(scratch, command)))
    return replace(found, facts={"starts": scratch.starts})


def _deletes_record(scratch: Scratch) -> Evidence:
    # rooda may write into the folder at the same moment, and then `rm` fails.
    delete = f"until rm -rf {shlex.quote(str(scratch.state))} 2> /dev/null; do :; done"
    agent = scratch.shell_agent(delete, _SUCCESS)
    found = scratch.finish(scratch.start(*agent, "-n", "2"))
    return replace(found, facts={"record": _recorded(scratch.state)})


def _recorded(state: StateFolder) -> str:
    """Return the status of the run and of its iterations, as the record has them."""
    try:
        reader = RecordReader(state)
        run = reader.run()
        rows = reader.iterations(run.run)
    except StoreError as error:
        return str(error)
    return f"{run.status}, {len(rows)} iterations"


# -- git -------------------------------------------------------------------------------------


def _deletes_git(scratch: Scratch) -> Evidence:
    """Delete `.git`, so that git would find the repository around the work tree."""
    around = scratch.folder / ".git"
    shutil.copytree(scratch.tree / ".git", around, symlinks=True)
    before = _branch(around)
    agent = scratch.shell_agent(f"echo work > work.txt; rm -rf .git; {_SUCCESS}")
    found = scratch.finish(scratch.start(*agent, "--commit"))
    work = "kept" if (scratch.tree / "work.txt").exists() else "lost"
    around_it = "untouched" if before == _branch(around) else "changed"
    return replace(found, facts={"work": work, "repository around it": around_it})


def _branch(git_folder: Path) -> str:
    """Return the commit of the branch that the template has."""
    return (git_folder / "refs" / "heads" / "main").read_text(encoding="utf-8")


def _destroys_work(scratch: Scratch) -> Evidence:
    agent = scratch.shell_agent("echo good > work.txt", f"echo bad > work.txt; {_SUCCESS}")
    run = scratch.finish(scratch.start(*agent, "-n", "2"))
    if run.code != 0:
        return run
    destroyed = _text(scratch.tree / "work.txt")
    restored = scratch.command("restore", "1")
    facts = {"destroyed": destroyed, "restored": _text(scratch.tree / "work.txt")}
    return replace(restored, facts=facts)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        return str(error)


def work_trials() -> list[Trial]:
    """Return the trials of what agents say and do to files, the record and git."""
    git = (Need.GIT,)
    only_good = numbers("no iteration is used up", iteration=1, good=1, failed=0)
    recorded = "the record has both iterations"
    kept = fact("work", "kept", "the work stays")
    untouched = fact("repository around it", "untouched", "rooda commits nowhere else")
    bounded = fact("on disk", "bounded", "the record keeps 10 MB of it at most")
    caught = numbers("the false SUCCESS is a failure", failed=1, good=1)
    destroyed = fact("destroyed", "bad", "the file is bad at the end of the run")
    restored = fact("restored", "good", "`rooda restore 1` brings the good one back")
    again = fact("starts", 2, "the same iteration is tried again after the limit")
    whole = fact("record", "success, 2 iterations", recorded)
    ok = ends_with(0)
    return [
        Trial("behaves", "does its work and says so", (ok, NOTHING_LIVES, NO_CRASH), _behaves),
        Trial("prints 50 MB", "prints 50 MB, then SUCCESS", (ok, bounded, NOTHING_LIVES), _floods),
        Trial("false SUCCESS", "says SUCCESS while the check fails", (ok, caught), _lies),
        Trial(
            "usage limit", "meets a usage limit of a second", (ok, only_good, again), _is_limited
        ),
        Trial(
            "deletes its record",
            "deletes its state folder",
            (ok, whole),
            _deletes_record,
        ),
        Trial(
            "deletes .git",
            "deletes .git within another repository (git.commit)",
            (ends_with(1, 2), kept, untouched, NO_CRASH),
            _deletes_git,
            git,
        ),
        Trial(
            "destroys work",
            "overwrites the good work of the iteration before",
            (ok, destroyed, restored),
            _destroys_work,
            git,
        ),
    ]
