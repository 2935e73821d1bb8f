"""Secrets in views, through the installed command: masked everywhere, kept on disk as they are."""

import base64
import json
import stat
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from support.finished import Finished
from support.gitwork import GitWork, git_work
from support.planted import planted, text_with_secrets
from support.voices import VOICES, line
from support.workspace import Workspace

pytestmark = pytest.mark.real

CLAUDE = VOICES[0]
OWN, FLAG, CONFIGURED = "s3cret of/the shell&!", "given-by-a-fl4g", "given-by-the-c0nfig"
VALUES = (OWN, FLAG, CONFIGURED)
ENV = {"OWN_PASSWORD": OWN, "SHORT_TOKEN": "true", "TEST_SECRET": "test"}
TEXT = text_with_secrets() + "\n".join(
    ["values:", *VALUES, quote(OWN, safe=""), base64.b64encode(b"me:" + OWN.encode()).decode(), ""]
)
HIDDEN = (
    *planted(),
    *(("a value", value) for value in VALUES),
    ("in a URL", quote(OWN, safe="")),
    ("in base64", base64.b64encode(b"me:" + OWN.encode()).decode()[5:-3]),
)
VIEWS = (
    *("show", "show --json", "show 1", "show 1 --json", "show 1 --output", "show 1 --raw"),
    *("history", "history --json", "why", "why --json", "diff"),
    *("report -o -", "report -f markdown", "report -f json"),
)
# Those that show the agent's words or work: to the owner, every secret.
WHOLE = ("show 1 --output", "show 1 --raw", "diff", "report -o -")


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def shown_in(text: str) -> list[str]:
    """Return which secrets are in a text, also as JSON and HTML would write them."""
    plain = text.replace("&amp;", "&").replace("&#39;", "'").replace("&#x27;", "'")
    return [f"{name}: {one}" for name, one in HIDDEN if one in text or one in plain]


def claude(work: GitWork) -> str:
    """Return the command of an agent that tells all secrets: in words, a tool call and a file."""
    secret = work.write(str(work.tools / "secrets.txt"), TEXT)
    closing = f"## Summary\nUsed {VALUES[0]} and {VALUES[1]}, {VALUES[2]}.\n\n{TEXT}\nDone."
    events = [
        *CLAUDE.begins(),
        *CLAUDE.says(TEXT),
        *CLAUDE.uses("Bash", {"command": f"echo {TEXT}"}),
        *CLAUDE.tool_prints(TEXT),
        *CLAUDE.says(closing),
        *CLAUDE.ends(closing),
    ]
    said = work.write(str(work.tools / "said"), b"".join(map(line, events)))
    body = f"cat {secret} >> notes.txt\ncat {said}\ncat {secret} >&2"
    work.script("claude", body)
    return f"{work.tools}/claude -p --output-format stream-json --verbose"


def run(work: GitWork, command: str, *args: str) -> Finished:
    secret = work.tools / "secrets.txt"
    work.settings(
        verify=f"cat {secret}; exit 1",
        hooks={"post_iteration": f"cat {secret}; cat {secret} >&2; exit 1"},
        env={"CONFIGURED_API_KEY": CONFIGURED},
        git={"commit": True},
        report=str(work.tools / "report.html"),
    )
    flags = ("--env", f"FLAG_TOKEN={FLAG}", "--verbose", "--log-level", "debug", "-n", "1")
    return work.work(command, *flags, *args, env=ENV)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_no_log_shows_a_secret(work: GitWork) -> None:
    command = claude(work)
    logs = ("--log-file", str(work.tools / "log"), "--session-log", str(work.tools / "session"))
    for form, flags in (("text", logs), ("logfmt", ()), ("json", ())):
        done = run(work, command, "--log-format", form, *flags)
        assert done.code != 0
        assert shown_in(done.out + done.err) == [], f"the log as {form}"
        assert "(masked)" in done.out + done.err
        if form == "json":
            rows = [row for row in done.err.splitlines() if row.startswith("{")]
            assert any("(masked)" in str(json.loads(row)) for row in rows)
    for name in ("log", "session", "report.html"):
        assert shown_in((work.tools / name).read_text()) == [], name


@pytest.mark.long
@pytest.mark.timeout(180)
def test_no_view_shows_a_secret_unless_the_owner_asks(work: GitWork) -> None:
    run(work, claude(work))
    for view in (*VIEWS, "follow", "record export last"):
        done = work.rooda(*view.split(), env=ENV)
        assert (done.code, shown_in(done.out + done.err)) == (0, []), view
        if view.endswith("json"):
            json.loads(done.out)
    for view in WHOLE:
        owner = work.rooda(*view.split(), "--unmasked", env=ENV)
        assert [one for _, one in planted() if one not in owner.out] == [], view
    # The next day in another shell: what the run had from its first shell is not known any more.
    gone = {one for _, one in HIDDEN[-2:]} | {OWN}
    for view in ("show 1 --raw", "history --json", "diff"):
        done = work.rooda(*view.split())
        assert [one for one in shown_in(done.out) if one.partition(": ")[2] not in gone] == []


def test_transcripts_are_exact_and_private_and_a_commit_shows_no_secret(work: GitWork) -> None:
    command = claude(work)
    work.settings(git={"commit": True})
    done = work.work(command, "-n", "1", env=ENV | {"FLAG_TOKEN": FLAG, "X_SECRET": CONFIGURED})
    said, secret = (work.tools / "said").read_bytes(), (work.tools / "secrets.txt").read_bytes()
    assert (work.kept() / "stdout.log").read_bytes() == said, done.err
    assert (work.kept() / "stderr.log").read_bytes() == secret
    assert work.rooda("show", "1", "--raw", "--unmasked").out.encode() == said + secret
    assert shown_in(work.git("log", "-1", "--format=%B")) == []
    assert "(masked)" in work.git("log", "-1", "--format=%s")
    assert work.git("show", "HEAD:notes.txt").encode() == secret.rstrip(b"\n"), "the agent's work"
    state = work.state
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    files = [path for path in (state / "runs").rglob("*") if path.is_file()]
    assert {"stdout.log", "stderr.log", "prompt.md"} <= {path.name for path in files}
    for path in (*files, state / "rooda.db"):
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600, path
