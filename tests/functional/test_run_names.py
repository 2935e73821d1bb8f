"""Names of runs and iterations on the command line: `last`, `-2`, and the beginning of a name."""

import pytest

from rooda.record.reader import RecordReader
from support.finished import Rooda
from support.recorded import asked, refused, versioned
from support.workspace import PROCEDURE, Workspace

pytestmark = pytest.mark.real

OTHER = PROCEDURE.replace("work:", "other:").replace("procedures:", "")


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a workspace with two runs of `work`, and then one of `other`."""
    folder = tmp_path_factory.mktemp("names")
    workspace = Workspace(folder / "work", folder / "home")
    workspace.path.mkdir()
    workspace.home.mkdir()
    versioned(workspace).config(PROCEDURE + OTHER)
    agent = workspace.agent('echo "a line" >> new.txt')
    for procedure in ("work", "work", "other"):
        assert workspace.rooda(procedure, "--ai-cmd", agent, "-n", "2").code == 2
    return workspace


@pytest.fixture
def rooda(three_runs: Workspace) -> Rooda:
    return three_runs.inside


def names(workspace: Workspace) -> list[str]:
    """Return the runs, the newest first."""
    return [row.run for row in RecordReader(workspace.state).runs()]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "words,place,number",
    [
        (["last"], 0, None),
        (["-1"], 0, None),
        (["-2"], 1, None),
        (["-3"], 2, None),
        (["2"], 0, 2),
        (["-2", "1"], 1, 1),
        (["last", "last"], 0, 2),
        (["-3", "-1"], 2, 2),
        (["-3", "-2"], 2, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["show", "why"])
def test_runs_and_iterations_count_from_the_end(
    three_runs: Workspace,
    rooda: Rooda,
    command: str,
    words: list[str],
    place: int,
    number: int | None,
) -> None:
    run = names(three_runs)[place]
    found = asked(rooda, command, *words)
    assert found.get("run", run) == run
    if command == "show":
        assert found.get("number") == number
    assert found == asked(rooda, command, run, *([] if number is None else [str(number)]))


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("flags", [[], ["--output"], ["--raw"]], ids=str)
def test_an_iteration_from_the_end_is_shown_as_text(
    three_runs: Workspace, rooda: Rooda, flags: list[str]
) -> None:
    run = names(three_runs)[1]
    counted = rooda("show", "-2", "last", *flags)
    named = rooda("show", run, "2", *flags)
    assert counted.code == 0, counted.err
    assert counted.out == named.out


def test_a_name_with_a_dash_stands_among_flags(three_runs: Workspace, rooda: Rooda) -> None:
    run = names(three_runs)[1]
    assert asked(rooda, "show", "-2")["run"] == run
    done = rooda("show", "--json", "-2")
    assert f'"run": "{run}"' in done.out
    done = rooda("report", "-f", "markdown", "-2", "-o", "-")
    assert run in done.out
    assert f"Run {run} (work), max-iters" in rooda("follow", "--from-start", "-2").err
    done = rooda("resume", "-2", "-n", "4", "--dry-run")
    assert done.code == 0, done.err
    assert run in done.out + done.err
    assert "Max Iterations: 4" in done.out


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "words,expected",
    [
        ("show -4", "there is no run -4: the record has 3 runs"),
        ("report -0", "there is no run '-0'"),
        ("follow Last", "there is no run 'Last'"),
        ("resume -9 --dry-run", "there is no run -9"),
        ("show last -3", "has no iteration -3; it has 1, 2"),
        ("why last first", "'first' is not the number of an iteration"),
        ("show -x", "No such option '-x'"),
        ("show -1x", "No such option '-1'"),
        ("history -1", "No such option '-1'"),
        ("work -1", "No such option '-1'"),
        ("report 2", "several runs begin with '2': "),
    ],
)
def test_a_name_that_fits_no_run_gives_one_clear_error(
    rooda: Rooda, words: str, expected: str
) -> None:
    refused(rooda(*words.split()), expected)


@pytest.mark.long
def test_resume_of_a_procedure_counts_its_own_runs(three_runs: Workspace, rooda: Rooda) -> None:
    _, second, first = names(three_runs)
    flags = ("-n", "4", "--dry-run")
    for name, run in (("last", second), ("-1", second), ("-2", first)):
        done = rooda("work", f"--resume={name}", *flags)
        assert done.code == 0, done.err
        assert f"Resuming run {run} " in done.out + done.err
    refused(rooda("other", "--resume=-2", *flags), "there is no run -2", "1 run of other")
