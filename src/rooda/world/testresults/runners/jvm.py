"""Java, Kotlin and Scala: Maven, Gradle, JUnit on the console, sbt."""

import re
from collections import Counter

from rooda.world.testresults.output_lines import OutputLine
from rooda.world.testresults.parser import RuleParser, on
from rooda.world.testresults.results import (
    FAILED,
    PASSED,
    SKIPPED,
    TOTAL,
    Counts,
    Suite,
    TestStatus,
    number,
    rest_passed,
    tally,
)

# -- maven -------------------------------------------------------------------------------------

_MAVEN_LEVEL = r"(?:\[(?:INFO|WARNING|ERROR)\] *)?"
_MAVEN_COUNTS = r"Tests run: (\d{1,9}), Failures: (\d{1,9}), Errors: (\d{1,9}), Skipped: (\d{1,9})"
_MAVEN_LISTED = re.compile(r"(?P<name>[\w$]+[.(>-][^\s:]+):(?P<rest>.*)")
_MAVEN_LISTS = {
    "Failures": TestStatus.FAILED,
    "Failed tests": TestStatus.FAILED,
    "Errors": TestStatus.ERROR,
    "Tests in error": TestStatus.ERROR,
}


class Maven(RuleParser):
    """Surefire and Failsafe of Maven: `Tests run: 7, Failures: 1, Errors: 1, Skipped: 1`.

    The totals of the modules of one build add up. Classes count only if no total was printed.
    """

    runner = "maven"
    marks = ("Tests run: ", "No tests to run.")

    def _reset(self) -> None:
        self._status: TestStatus | None = None
        self._classes: dict[str, tuple[OutputLine, Counts]] = {}

    @on(_MAVEN_LEVEL + r"Scanning for projects\.\.\.")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)
        self.next_run()

    @on(_MAVEN_LEVEL + r"T E S T S")
    def _tests_start(self, line: OutputLine, _: re.Match[str]) -> None:
        self.ensure_begun(line)
        self._classes.clear()

    @on(_MAVEN_LEVEL + _MAVEN_COUNTS + r", Time elapsed: .*?(?: (?:--|-) in (?P<name>\S+))?")
    def _class(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self._classes[match["name"] or f"line {line.number}"] = line, _maven_counts(match)

    @on(
        _MAVEN_LEVEL
        + r"(?P<kind>Failures|Errors|Failed tests|Tests in error|Flakes): *(?P<first>.*)"
    )
    def _list_follows(self, line: OutputLine, match: re.Match[str]) -> None:
        self._status = _MAVEN_LISTS.get(match["kind"])
        listed = _MAVEN_LISTED.fullmatch(match["first"])
        if listed is not None:
            self._failed(line, listed)

    @on(_MAVEN_LEVEL + _MAVEN_LISTED.pattern)
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        self._failed(line, match)

    def _failed(self, line: OutputLine, listed: re.Match[str]) -> None:
        if self._status is not None:
            message = listed["rest"].lstrip("0123456789").strip()
            self.fail(line, listed["name"], message, self._status)
            self.end_message()

    @on(_MAVEN_LEVEL + _MAVEN_COUNTS + r"(?:, Flakes: \d+)?")
    def _total(self, line: OutputLine, match: re.Match[str]) -> None:
        self._status = None
        self._classes.clear()
        self.close(line, _maven_counts(match), part=f"line {line.number}")

    @on(_MAVEN_LEVEL + r"(?:There are )?[Nn]o tests to run\.")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self.close(line, Counts(), part=f"line {line.number}")

    @on(_MAVEN_LEVEL + r"BUILD (?:SUCCESS|FAILURE)")
    def _ends(self, _: OutputLine, __: re.Match[str]) -> None:
        self.next_run()

    def finish(self) -> list[Suite]:
        """Return the totals, or the classes if the output was truncated before a total."""
        if not self._suites:
            for name, (line, counts) in self._classes.items():
                self.close(line, counts, part=name)
        return super().finish()


def _maven_counts(match: re.Match[str]) -> Counts:
    run, failures, errors, skipped = (number(match[group]) for group in range(1, 5))
    return Counts.out_of(run, failures + errors, skipped)


# -- gradle ------------------------------------------------------------------------------------

_GRADLE_WORDS = {"test": TOTAL, "tests": TOTAL, "failed": FAILED, "skipped": SKIPPED}
_GRADLE_NOT_RUN = " UP-TO-DATE| NO-SOURCE| SKIPPED| FROM-CACHE"
_GRADLE_MOST_GROUPS = 10_000
_GRADLE_TASK = (
    r"(?:[\w.-]+:)*(?!(?:compile|javaPreCompile|process|generate|kapt|ksp)[A-Z])(?:test|\w*Test)"
)


class Gradle(RuleParser):
    """`gradle test`: `5 tests completed, 2 failed, 1 skipped`.

    The test tasks of one build add up. A failed task prints its counts. A passed task prints none,
    so the tests that it names (with `testLogging`) count; a test that failed and then passed was
    tried again, and counts once. If a build names no test, each of its passed tasks counts as one
    test.
    """

    runner = "gradle"
    marks = (" completed", ": Executed ", "BUILD SUCCESSFUL", "BUILD FAILED", "No tests found for")

    def __init__(self) -> None:
        super().__init__()
        self._tasks: dict[str, Counts] = {}
        self._task = ""
        self._counted: set[str] = set()  # tasks of this build whose counts were printed
        self._groups: set[str] = set()  # classes and other groups of the named tests
        self._bad: Counter[tuple[str, str]] = Counter()  # failures by task and test
        self._mended: Counter[tuple[str, str]] = Counter()  # those that passed later

    @on(rf"(?:Task )?:{_GRADLE_TASK}(?:{_GRADLE_NOT_RUN})")
    def _runs_not(self, _: OutputLine, __: re.Match[str]) -> None:
        self._task = ""

    @on(rf"(?:Task )?:(?P<task>{_GRADLE_TASK})(?: FAILED|WARNING: .*)?")
    def _runs(self, line: OutputLine, match: re.Match[str]) -> None:
        self.ensure_begun(line)
        self._task = match["task"]
        if self._task not in self._counted:
            self._tasks.setdefault(self._task, Counts())

    @on(r"(?P<name>\S.*) (?P<status>PASSED|FAILED|SKIPPED)(?: \([\d.,]+ ?m?s\))?")
    def _names(self, line: OutputLine, match: re.Match[str]) -> None:
        group, nested, _ = match["name"].rpartition(" > ")
        if not nested or match["name"] in self._groups:
            return  # a task, or a group of tests that were named before it
        while group not in self._groups and len(self._groups) < _GRADLE_MOST_GROUPS:
            self._groups.add(group)
            group = group.rpartition(" > ")[0]
        self.end_message()
        field, key = match["status"].lower(), (self._task, match["name"])
        self._add(Counts(**{field: 1}))
        if field == FAILED:
            self._bad[key] += len(self._bad) < _GRADLE_MOST_GROUPS
            self.fail(line, match["name"])
        elif field == PASSED and key in self._bad:
            self._mended[key] += self._bad.pop(key)

    @on(r"Finished (?P<tests>\d{1,9}) tests? on \S.*")
    def _device_ended(self, _: OutputLine, match: re.Match[str]) -> None:
        """Count the tests on a device of Android, which names failed tests alone."""
        named = self._tasks.get(self._task, Counts())
        self._add(Counts(passed=max(0, number(match["tests"]) - named.total)))

    def _add(self, counts: Counts) -> None:
        self._tasks[self._task] = self._tasks.get(self._task, Counts()) + counts

    @on(r"(?P<counts>\d+ tests?) completed(?P<more>, \d+ failed)(?P<rest>, \d+ skipped)?")
    def _counts(self, line: OutputLine, match: re.Match[str]) -> None:
        pieces = (match["counts"], *(match[more][2:] for more in ("more", "rest") if match[more]))
        sums = tally(pieces, _GRADLE_WORDS)
        if sums is not None:
            self._task_ended(line, rest_passed(sums))

    @on(
        r"(?:SUCCESS|FAILURE): Executed (?P<tests>\d+ tests?) in \d[^()]*"
        r"(?:\((?P<more>.*)\))?"
    )
    def _test_logger(self, line: OutputLine, match: re.Match[str]) -> None:
        more = match["more"].split(", ") if match["more"] else []
        sums = tally([match["tests"], *more], _GRADLE_WORDS)
        if sums is not None:
            self._task_ended(line, rest_passed(sums))

    @on(r"No tests found for given includes: .*")
    def _nothing(self, line: OutputLine, _: re.Match[str]) -> None:
        self._tasks = {}
        self.close(line, Counts(), part=self._task or f"line {line.number}")

    @on(r"BUILD (?P<verdict>SUCCESSFUL|FAILED).*")
    def _builds(self, line: OutputLine, match: re.Match[str]) -> None:
        if match["verdict"] == "SUCCESSFUL":
            self._forgive_retried()
        named = {task: counts for task, counts in self._tasks.items() if counts.total}
        if not named and not self._counted and match["verdict"] == "SUCCESSFUL":
            named = dict.fromkeys(self._tasks, Counts(passed=1))
        for task, counts in named.items():
            self.close(line, counts, part=task)
        self._tasks, self._task = {}, ""
        self._counted.clear()
        self._groups.clear()
        self._bad.clear()
        self._mended.clear()
        self.next_run()

    def _forgive_retried(self) -> None:
        """Take back the failures of tests that passed when they were tried again."""
        for (task, name), amount in self._mended.items():
            if task in self._tasks:
                self._tasks[task] += Counts(failed=-amount)
                self.retract_failure(name)

    def _task_ended(self, line: OutputLine, counts: Counts) -> None:
        named = self._tasks.pop(self._task, None)
        if named is None or not named.total:
            self._tasks.pop("", None)  # names above the header of their task
        self._counted.add(self._task)
        self.close(line, counts, part=self._task or f"line {line.number}")


# -- junit console -----------------------------------------------------------------------------

_JUNIT_NEAR = 2  # the maximum distance in lines from the time to the result


class JUnitConsole(RuleParser):
    """The console runners of JUnit: `OK (3 tests)` of version 4, and the launcher of version 5.

    The launcher prints a table of counts in brackets, from containers down to failed tests.
    """

    runner = "junit"
    marks = ("OK (", "Tests run: ", " tests failed ")

    def _reset(self) -> None:
        self._sums: dict[str, int] = {}
        self._time_at = -_JUNIT_NEAR - 1

    @on(r"JUnit version \d.*")
    def _starts(self, line: OutputLine, _: re.Match[str]) -> None:
        self.begin(line)

    @on(r"\d{1,9}\) (?P<name>\w+\([\w.$]+\))")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(r"Time: [\d.,]+")
    def _timed(self, line: OutputLine, _: re.Match[str]) -> None:
        self._time_at = line.number

    @on(r"OK \((?P<tests>\d{1,9}) tests?\)")
    def _passed(self, line: OutputLine, match: re.Match[str]) -> None:
        if line.number - self._time_at <= _JUNIT_NEAR or line.place <= _JUNIT_NEAR:
            self.close(line, Counts(passed=number(match["tests"])))

    @on(r"Tests run: (?P<tests>\d{1,9}),  Failures: (?P<failed>\d{1,9})")
    def _failed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.close(line, Counts.out_of(number(match["tests"]), number(match["failed"])))

    @on(r"JUnit (?:Jupiter|Vintage|Platform.*?):(?P<name>.+)")
    def _listed(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"].replace(":", " > "))

    @on(r"\[ +(?P<amount>\d{1,9}) tests (?P<what>skipped|aborted|successful|failed) +\]")
    def _row(self, line: OutputLine, match: re.Match[str]) -> None:
        self._sums[match["what"]] = number(match["amount"])
        if match["what"] == "failed":
            get = self._sums.get
            skipped = get("skipped", 0) + get("aborted", 0)
            self.close(line, Counts(get("successful", 0), get("failed", 0), skipped))


# -- scala -------------------------------------------------------------------------------------

_SCALA_LEVEL = r"(?:\[(?:info|warn|error|success)\] *)?"


class Scala(RuleParser):
    """ScalaTest, and sbt's sum for any framework: `Failed: Total 5, Failed 1, Errors 0, ...`.

    The projects of one command add up. sbt prints its sum below that of ScalaTest and replaces it.
    """

    runner = "scala"
    marks = (": Total ", "Tests: succeeded ")

    @on(_SCALA_LEVEL + r"- (?P<name>\S.*) \*\*\* FAILED \*\*\*.*")
    def _fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"])

    @on(_SCALA_LEVEL + r"==> X (?P<name>\S.*?)  [\d.]+s(?: (?P<message>.*))?")
    def _munit_fails(self, line: OutputLine, match: re.Match[str]) -> None:
        self.fail(line, match["name"], match["message"] or "")

    @on(
        _SCALA_LEVEL + r"Tests: succeeded (\d+), failed (\d+), "
        r"canceled (\d+), ignored (\d+), pending (\d+)"
    )
    def _scalatest(self, line: OutputLine, match: re.Match[str]) -> None:
        passed, failed, *skipped = (number(amount) for amount in match.groups())
        self.hold(line, Counts(passed, failed, sum(skipped)), part=f"line {line.number}")

    @on(
        _SCALA_LEVEL + r"(?:Passed|Failed|Error|Canceled): Total \d+, "
        r"Failed (?P<failed>\d+), Errors (?P<errors>\d+), Passed (?P<passed>\d+)"
        r"(?P<more>(?:, [A-Z][a-z]+ \d+)*)"
    )
    def _sbt(self, line: OutputLine, match: re.Match[str]) -> None:
        self.drop_held()
        skipped = sum(number(piece.split(" ")[-1]) for piece in match["more"].split(","))
        failed = number(match["failed"]) + number(match["errors"])
        counts = Counts(number(match["passed"]), failed, skipped)
        self.close(line, counts, part=f"line {line.number}")

    @on(_SCALA_LEVEL + r"Total time: .*")
    def _ends(self, _: OutputLine, __: re.Match[str]) -> None:
        self.flush()
        self.next_run()
