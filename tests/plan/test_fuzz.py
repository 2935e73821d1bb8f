"""Any content of files, variables and flags gives problems or a plan, and never an exception."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.base.problems import Severity, errors, problems_text
from rooda.plan.layers import Layer
from rooda.plan.prompts.parts import PHASES
from rooda.plan.settings.settings import SECTIONS, SETTINGS
from rooda.views.terminal import config_view, dry_run
from support.config import dumped, inspected, planned, read
from support.properties import examples
from support.workspace import Workspace

FUZZ = examples(200)
WHOLE = examples(80)
LINE_BREAK = re.compile(rb"\r\n|\r|\n|\xc2\x85|\xe2\x80[\xa8\xa9]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def check_read(data: bytes) -> None:
    """Check that the loader returns a layer, and problems with a message and a place."""
    layer, problems = read(data)
    assert isinstance(layer, Layer)
    last = len(LINE_BREAK.findall(data)) + 2
    for problem in problems:
        assert problem.message
        assert problem.file == "rooda-config.yml"
        assert problem.line is None or 1 <= problem.line <= last
        assert problem.severity in Severity


def check_planned(folder: Path, data: bytes) -> None:
    """Check that a run can be prepared and shown, or has problems."""
    prepared = planned(folder, "build", "--ai-cmd", "true", workspace=data)
    assert prepared.valid == (not errors(prepared.all_problems()))
    assert dry_run.render(prepared, ["build"])
    assert problems_text(prepared.all_problems()) is not None
    found = inspected(folder, workspace=data)
    assert config_view.as_yaml(found)
    assert config_view.as_json(found)


VALID = [
    b"loop:\n  ai_cmd: 'true'\n  failure_threshold: 3\n  iteration_timeout: 1h30m\n",
    b"loop: {env: {A: 1, B: null}, signals: {success: X, failure: null}, preset: v1}\n",
    b"loop: {verify: make test, git: {message: '{task}'}, history: {max_age: 30d}}\n",
    b"loop:\n  hooks:\n    loop_end: sync\n    on_wait: [a, {command: b, on_error: fail}]\n",
    b"procedures:\n  p:\n    observe: a.md\n    orient: [b.md, {content: c}]\n    act: [d, e]\n",
    b"procedures:\n  p:\n    decide:\n      - path: d\n        parameters: {x: y}\n",
    b"ai_cmd_aliases:\n  x: cmd --flag 'a b'\n  y: {command: c, adapter: d}\n  z: null\n",
    b"a: &a [1, 2]\nloop: &l {kill_grace: 1.5}\nb: *a\nc: *l\n",
    b"%YAML 1.2\n---\n? loop\n: !!map\n  ? log_level\n  : !!str debug\n...\n",
    b"loop:\n  ai_cmd: |\n    several\n    lines\n  log_file: >-\n    folded\n    lines\n",
]
TOKENS = [
    *(token.encode() for token in "{}[]:,-?&*!|>%@`'\"#~=\\"),
    b"\n",
    b"\r",
    b"\t",
    b"  ",
    b"\0",
    b"\x1b[31m",
    b"\xff",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xef\xbb\xbf",
    b"---\n",
    b"...\n",
    b"<<: ",
    b"*a",
    b"&a ",
    b"!!int ",
    b"!!python/object:os.system ",
    b"null",
    b"true",
    b".inf",
    b".nan",
    b"-1",
    b"1e400",
    b"9" * 50,
    b"0x" + b"f" * 40,
    b"loop:",
    b"procedures:",
    b"ai_cmd_aliases:",
    b"builtin:",
    b"x" * 300,
    b"/" * 5000,
    b'"\\ud800"',
    b'"\\0"',
    *(row.key.encode() + b": " for row in SETTINGS),
    *(phase.encode() + b": " for phase in PHASES),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Return a valid file with a few random changes."""
    data = draw(st.sampled_from(VALID)) + draw(st.sampled_from([b"", *VALID]))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        new = draw(st.sampled_from(TOKENS) | st.binary(max_size=4) | st.just(data[start:end] * 2))
        data = data[:start] + new + data[end:]
    return data


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["1h", "10MB", "none", "", "x" * 300, "/dev/zero", "~nobody/x", "builtin:x"])
    | st.sampled_from(["{task}", "{", "}}{{", "{nope}", "fail", "make test"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=6)
            | st.sampled_from(["path", "content", "parameters", "command", "timeout", "on_error"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
KEYS = st.sampled_from([key for row in SETTINGS for key in row.key.split(".")])
LOOP = (
    ANYTHING
    | st.dictionaries(KEYS, ANYTHING, max_size=4)
    | st.dictionaries(
        st.sampled_from(sorted(SECTIONS)), st.dictionaries(KEYS, ANYTHING, max_size=3), max_size=2
    )
)
OWN = st.dictionaries(KEYS | st.sampled_from([*PHASES, "description"]), ANYTHING, max_size=5)
NAMES = st.sampled_from(["build", "list", "mine", "", "-x", "a b", "ü"])
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "loop": LOOP,
        "procedures": ANYTHING | st.dictionaries(NAMES, ANYTHING | OWN, max_size=3),
        "ai_cmd_aliases": ANYTHING | st.dictionaries(NAMES, ANYTHING, max_size=3),
    },
)


@FUZZ
@given(st.binary(max_size=400))
def test_any_bytes_can_be_read(data: bytes) -> None:
    check_read(data)


@FUZZ
@given(st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
def test_any_text_can_be_read(data: bytes) -> None:
    check_read(data)


@FUZZ
@given(mutated())
def test_damaged_file_can_be_read(data: bytes) -> None:
    check_read(data)


@pytest.mark.real
@FUZZ
@given(SHAPED)
def test_valid_keys_with_any_values_can_be_read(values: object) -> None:
    check_read(dumped(values))


@pytest.mark.long
@WHOLE
@given(st.binary(max_size=200) | mutated())
def test_any_file_gives_a_plan_or_problems(folder: Path, data: bytes) -> None:
    check_planned(folder, data)


@pytest.mark.long
@WHOLE
@given(SHAPED)
def test_any_values_give_a_plan_or_problems(folder: Path, values: object) -> None:
    check_planned(folder, dumped(values))


# Text that the OS can pass: any characters, and bytes that are not UTF-8 as surrogates.
CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"]) | st.characters(
    min_codepoint=0xDC80, max_codepoint=0xDCFF
)
WORDS = st.text(CHARACTERS, max_size=20) | st.sampled_from(
    [
        "none",
        "1e10",
        "5m",
        "10MB",
        "A=b",
        "'",
        "x" * 300,
        "./" + "x" * 300,
        "/",
        "~",
        "~nobody",
        "\udcff",
        "\udcff/x.md",
    ]
)


@pytest.mark.real
@WHOLE
@given(st.dictionaries(st.sampled_from([row.variable for row in SETTINGS]), WORDS, max_size=4))
def test_any_variables_give_a_plan_or_problems(folder: Path, env: dict[str, str]) -> None:
    prepared = planned(folder, "build", env=env)
    assert dry_run.render(prepared, ["build"])


@WHOLE
@given(st.dictionaries(st.sampled_from(["--context", *(f"--{p}" for p in PHASES)]), WORDS))
def test_any_prompts_give_a_plan_or_problems(folder: Path, flags: dict[str, str]) -> None:
    words = [f"{name}={value}" for name, value in flags.items()]
    assert dry_run.render(planned(folder, "build", "--ai-cmd", "true", *words), ["build"])


# -- through the command -------------------------------------------------------------------


def _nested_aliases() -> bytes:
    lines = [b"t0: &t0 " + b"[" * 45 + b"]" * 45]
    lines += [
        b"t%d: &t%d " % (n, n) + b"[" * 45 + b"*t%d" % (n - 1) + b"]" * 45 for n in range(1, 60)
    ]
    return b"\n".join([*lines, b"loop: *t59\n"])


def _multiplying_aliases() -> bytes:
    lines = [b"l0: &l0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [
        b"l%d: &l%d [%s]" % (n, n, b", ".join([b"*l%d" % (n - 1)] * 10)) for n in range(1, 30)
    ]
    return b"\n".join([*lines, b"loop: *l29\n"])


HOSTILE = {
    "empty": b"",
    "nul": b"loop:\n  ai_cmd: a\0b\n",
    "random": bytes(range(256)),
    "not utf-8": b"loop: {ai_cmd: \xff\xfe}",
    "utf-16": "loop: {}".encode("utf-16"),
    "brackets": b"[" * 100_000,
    "aliases deep": _nested_aliases(),
    "aliases wide": _multiplying_aliases(),
    "self reference": b"loop: &a {env: *a}",
    "huge": b"#" * 2_000_000,
    "numbers": b"loop: {failure_threshold: 1e300, kill_grace: .inf, max_output_buffer: "
    + b"9" * 300
    + b"}",
    "enormous buffer": b"loop: {max_output_buffer: 99999999999999999999999999}",
    "long names": b"loop: {working_dir: " + b"x" * 300 + b", log_file: " + b"y" * 300 + b"}",
    "devices": b"procedures: {build: {observe: /dev/zero, orient: /dev/stdin, act: /dev/null}}",
    "control codes": b'"\\e[2J": {}\nloop: {log_level: "\\x9b31m"}',
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_causes_no_traceback_in_the_command(workspace: Workspace, name: str) -> None:
    workspace.write("rooda-config.yml", HOSTILE[name])
    check = workspace.rooda("config", "check")
    assert check.code in (0, 1)
    run = workspace.rooda("build", "--ai-cmd", "true", "-n", "1")
    assert run.code in (1, 2)  # `true` never prints SUCCESS
    for done in (check, run):
        assert not re.search("Traceback|Internal error", done.out + done.err)
        assert done.code != 1 or "Error: " in done.err
    assert not (check.code == 1 and run.code == 2)


@pytest.mark.parametrize("seconds", ["1e300", "9999999999", "200000d"])
def test_huge_timeout_means_no_timeout_or_is_a_problem(workspace: Workspace, seconds: str) -> None:
    workspace.config(f"loop: {{iteration_timeout: {seconds}, kill_grace: {seconds}}}")
    done = workspace.rooda("build", "--ai-cmd", "sleep 0.3", "-n", "1")
    assert done.code in (1, 2)
    assert not re.search("Traceback|Internal error", done.err)


def test_hostile_variables_cause_no_traceback_in_the_command(workspace: Workspace) -> None:
    value = os.fsdecode(b"\xff\xfe\x1b[2J")
    for row in SETTINGS[:6]:
        workspace.env[row.variable] = value
    done = workspace.rooda("build", "--env", f"{value}=1", "--act", value)
    assert done.code == 1
    assert not re.search("Traceback|Internal error|\x1b", done.out + done.err)
