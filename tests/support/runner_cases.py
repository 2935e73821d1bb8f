"""Small outputs of the runners in various versions and with various flags."""

from collections.abc import Callable
from typing import NamedTuple

from rooda.world.testresults.parser import Parser
from rooda.world.testresults.runners.browsers import Cypress, Karma, Playwright
from rooda.world.testresults.runners.c_family import (
    Automake,
    Boost,
    Catch2,
    CTest,
    Doctest,
    GoogleTest,
    Meson,
)
from rooda.world.testresults.runners.go import Go
from rooda.world.testresults.runners.javascript import Ava, Jasmine, Jest, Mocha, Uvu, Vitest
from rooda.world.testresults.runners.javascript_runtimes import Bun, Deno, Node
from rooda.world.testresults.runners.jvm import Gradle, JUnitConsole, Maven, Scala
from rooda.world.testresults.runners.other_languages import (
    Dart,
    DotNet,
    ExUnit,
    Forge,
    PhpUnit,
    SwiftTesting,
    XCTest,
)
from rooda.world.testresults.runners.printed_reports import JsonReports, XmlReports
from rooda.world.testresults.runners.python import PyDoctest, Pytest, Unittest
from rooda.world.testresults.runners.ruby import Minitest, RSpec
from rooda.world.testresults.runners.rust import Cargo, Nextest
from rooda.world.testresults.runners.scenarios import Behave, Cucumber, Robot
from rooda.world.testresults.runners.tap import Bats, Prove, Tap
from support.outputs import Counts


class Case(NamedTuple):
    """An output, its expected counts, and the names of its failed tests."""

    parser: Callable[[], Parser]
    about: str
    text: str
    counts: Counts | None
    failed: tuple[str, ...] = ()


RULE70, DASHES70 = "=" * 70, "-" * 70

CASES = [
    # -- pytest
    Case(Pytest, "one of each", "1 failed, 2 passed, 3 skipped, 1 error in 0.50s", (7, 2, 2, 3)),
    Case(Pytest, "a minute", "===== 3 passed in 75.32s (0:01:15) =====", (3, 3, 0, 0)),
    Case(Pytest, "a day", "== 3 passed in 90000.32s (1 day, 1:00:00) ==", (3, 3, 0, 0)),
    Case(Pytest, "old version", "=== 3 passed, 1 warnings in 0.12 seconds ===", (3, 3, 0, 0)),
    Case(Pytest, "no tests", "==== no tests ran in 0.00s ====", (0, 0, 0, 0)),
    Case(Pytest, "all deselected", "==== 5 deselected in 0.01s ====", (0, 0, 0, 0)),
    Case(Pytest, "only collected", "===== 5 tests collected in 0.01s =====", None),
    Case(Pytest, "some collected", "== 5/6 tests collected (1 deselected) in 0.01s ==", None),
    Case(Pytest, "subtests", "1 passed, 4 subtests passed in 0.02s", (1, 1, 0, 0)),
    Case(Pytest, "reruns", "=== 1 failed, 2 passed, 2 rerun in 0.02s ===", (3, 2, 1, 0)),
    Case(
        Pytest,
        "parameters with dashes",
        "FAILED t.py::test[a - b] - assert 1 - 1\nERROR t.py::test_e - boom\n"
        "1 failed, 1 error in 0.10s",
        (2, 0, 2, 0),
        ("t.py::test[a - b]", "t.py::test_e"),
    ),
    Case(
        Pytest,
        "-v without a summary",
        "t.py::test_a PASSED                       [ 50%]\n"
        "t.py::test_b[x y] FAILED                  [100%]\n"
        "=== 1 failed, 1 passed in 0.10s ===",
        (2, 1, 1, 0),
        ("t.py::test_b[x y]",),
    ),
    Case(
        Pytest,
        "xdist -v",
        "[gw0] [ 50%] PASSED t.py::test_a\n[gw1] [100%] FAILED t.py::test_b\n"
        "=== 1 failed, 1 passed in 0.10s ===",
        (2, 1, 1, 0),
        ("t.py::test_b",),
    ),
    Case(
        Pytest,
        "-qq on two lines",
        "." * 72 + " [ 97%]\n" + ".F                         [100%]\n",
        (74, 73, 1, 0),
    ),
    Case(
        Pytest,
        "-qq with a summary",
        ".F                   [100%]\nFAILED t.py::test_b\n1 failed, 1 passed in 0.1s0\n",
        (2, 1, 1, 0),
        ("t.py::test_b",),
    ),
    Case(
        Pytest,
        "pytest-sugar",
        "Results (1.01s):\n       6 passed\n       1 failed\n         - t.py:5 test_b\n",
        (7, 6, 1, 0),
    ),
    Case(
        Pytest,
        "interrupted",
        "!!!!!!! KeyboardInterrupt !!!!!!!\n=== 2 passed in 0.10s ===",
        (2, 2, 0, 0),
        ("KeyboardInterrupt",),
    ),
    # -- unittest
    Case(Unittest, "one test", "Ran 1 test in 0.000s\n\nOK", (1, 1, 0, 0)),
    Case(Unittest, "skips", "Ran 3 tests in 0.000s\n\nOK (skipped=2)", (3, 1, 0, 2)),
    Case(Unittest, "no tests", "Ran 0 tests in 0.000s\n\nNO TESTS RAN", (0, 0, 0, 0)),
    Case(Unittest, "nose", "Ran 3 tests in 0.1s\n\nFAILED (SKIP=1, failures=1)", (3, 1, 1, 1)),
    Case(Unittest, "trial", "Ran 3 tests in 0.1s\n\nPASSED (successes=3)", (3, 3, 0, 0)),
    Case(Unittest, "no verdict", "Ran 3 tests in 0.1s\n\nand more\n\n\n\nOK", None),
    Case(
        Unittest,
        "Python 3.10",
        f"{RULE70}\nFAIL: test_b (pkg.test_m.Case)\n{DASHES70}\nTraceback (most recent call last):\n"
        f'  File "m.py", line 1\nAssertionError: 1 != 2\n\n{DASHES70}\n'
        "Ran 2 tests in 0.001s\n\nFAILED (failures=1)",
        (2, 1, 1, 0),
        ("pkg.test_m.Case.test_b",),
    ),
    # -- cargo, nextest
    Case(
        Cargo,
        "filtered",
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out",
        (1, 1, 0, 0),
    ),
    Case(
        Cargo,
        "old version",
        "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured",
        (3, 1, 2, 0),
    ),
    Case(
        Cargo,
        "terse",
        "running 2 tests\n. 1/2\ntests::b --- FAILED\n\nfailures:\n\n---- tests::b stdout ----\n"
        "thread 'tests::b' panicked at src/lib.rs:5:9:\nno\n\n\nfailures:\n    tests::b\n\n"
        "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        (2, 1, 1, 0),
        ("tests::b",),
    ),
    Case(
        Cargo,
        "two runs",
        "    Finished test [unoptimized] target(s) in 0.1s\n     Running src/lib.rs (target/a-1)\n"
        "test result: FAILED. 0 passed; 2 failed; 0 ignored\n"
        "    Finished test [unoptimized] target(s) in 0.1s\n     Running src/lib.rs (target/a-1)\n"
        "test result: ok. 2 passed; 0 failed; 0 ignored\n",
        (2, 2, 0, 0),
    ),
    Case(
        Nextest,
        "failures, a retry, a libtest summary",
        "    Starting 4 tests across 2 binaries (1 test skipped)\n"
        "        PASS [   0.004s] alpha tests::a1\n"
        "  TRY 1 FAIL [   0.004s] alpha tests::flaky\n"
        "        FAIL [   0.005s] (3/4) alpha::integ i1\n  stdout ───\n\n    running 1 test\n"
        "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 1 filtered out\n"
        "────────────\n"
        "     Summary [   0.011s] 3/4 tests run: 2 passed (1 flaky), 1 failed, 1 skipped\n"
        "        FAIL [   0.005s] (3/4) alpha::integ i1\nerror: test run failed",
        (4, 2, 1, 1),
        ("alpha::integ i1",),
    ),
    Case(
        Nextest,
        "output after the summary",
        "     Summary [   0.011s] 1 test run: 0 passed, 1 failed, 0 skipped\n"
        "        FAIL [   0.005s] a i1\n    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured\n",
        (1, 0, 1, 0),
        ("a i1",),
    ),
    Case(
        Cargo,
        "crash",
        "     Running tests/a.rs (target/a-1)\n"
        "  process didn't exit successfully: `target/a-1` (signal: 11, SIGSEGV: invalid memory reference)\n"
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n",
        (2, 1, 1, 0),
        ("target/a-1",),
    ),
    Case(
        Nextest,
        "timeouts and crashes",
        "     Summary [  60.000s] 5 tests run: 2 passed (1 slow), 1 exec failed, 2 timed out, 0 skipped\n"
        "     SIGSEGV [   1.000s] a t1\n     TIMEOUT [  60.000s] a t2",
        (5, 2, 3, 0),
        ("a t1", "a t2"),
    ),
    # -- go
    Case(Go, "nothing to run", "ok  \ta.b/c\t0.01s [no tests to run]", (0, 0, 0, 0)),
    Case(Go, "coverage", "ok  \ta.b/c\t0.01s\tcoverage: 50.0% of statements", (1, 1, 0, 0)),
    Case(Go, "no files", "?   \ta.b/c\t[no test files]", (0, 0, 0, 0)),
    Case(Go, "setup", "FAIL\ta.b/c [setup failed]\nFAIL", (1, 0, 1, 0), ("a.b/c",)),
    Case(Go, "one line of prose", "It prints\n--- FAIL: TestA (0.00s)\nhere.", None),
    Case(
        Go,
        "test binary without go test",
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- SKIP: TestB (0.00s)\nPASS",
        (2, 1, 0, 1),
    ),
    Case(
        Go,
        "gotestsum",
        "=== FAIL: calc TestBroken (0.00s)\n    calc_test.go:4: no\n\nDONE 10 tests, 1 skipped, 3 failures in 0.005s",
        (10, 6, 3, 1),
        ("TestBroken",),
    ),
    # -- JavaScript
    Case(Jest, "grepped", "Tests:       1 failed, 2 passed, 3 total", (3, 2, 1, 0)),
    Case(Jest, "prose", "Tests: 1 failed, 2 passed, 3 total", None),
    Case(Jest, "no test ran", "Test Suites: 2 failed, 2 total\nTests:       0 total", (2, 0, 2, 0)),
    Case(Vitest, "one test", " Test Files  1 passed (1)\n      Tests  1 passed (1)", (1, 1, 0, 0)),
    Case(
        Vitest,
        "only skipped",
        " Test Files  1 skipped (1)\n      Tests  2 skipped (2)",
        (2, 0, 0, 2),
    ),
    Case(Vitest, "no test ran", " Test Files  1 failed (1)\n      Tests  no tests", (1, 0, 1, 0)),
    Case(
        Vitest,
        "error outside of the tests",
        "      Tests  2 passed (2)\n     Errors  1 error\n",
        (2, 2, 0, 0),
        ("Unhandled errors",),
    ),
    Case(Mocha, "nothing failed", "  2 passing (1m)\n", (2, 2, 0, 0)),
    Case(
        Mocha,
        "a failure at the top",
        "  0 passing (3ms)\n  1 failing\n\n  1) is wrong:\n     Error: no\n      at x.js:1\n",
        (1, 0, 1, 0),
        ("is wrong",),
    ),
    Case(
        Node,
        "end of an output",
        "# pass 5\n# fail 2\n# cancelled 1\n# skipped 1\n# todo 1\n",
        (10, 5, 3, 2),
    ),
    Case(Jasmine, "one test", "1 spec, 0 failures\nFinished in 0.01 seconds", (1, 1, 0, 0)),
    Case(
        Bun,
        "all skipped",
        " 0 pass\n 2 skip\n 0 fail\nRan 2 tests across 1 file. [3.00ms]",
        (2, 0, 0, 2),
    ),
    Case(
        Bun,
        "old marks",
        "✗ sum > adds [0.2ms]\n 1 pass\n 1 fail\nRan 2 tests across 1 file. [3.00ms]",
        (2, 1, 1, 0),
        ("sum > adds",),
    ),
    Case(
        Deno,
        "steps",
        "ok | 2 passed (3 steps) | 0 failed | 1 ignored (1 step) (25ms)",
        (3, 2, 0, 1),
    ),
    Case(Ava, "prose", "2 tests passed", None),
    Case(Ava, "passed", "  ✔ a\n  ✔ b\n  ─\n\n  2 tests passed\n", (2, 2, 0, 0)),
    Case(
        Ava,
        "only an exception",
        "  ✔ a\n\n  Uncaught exception in b.js\n\n  ─\n\n  1 uncaught exception\n",
        (1, 1, 0, 0),
        ("outside of the tests",),
    ),
    Case(
        Ava,
        "twice",
        "  ✔ a\n  ─\n\n  1 test failed\n  ✔ a\n  ✔ b\n  ─\n\n  2 tests passed\n",
        (2, 2, 0, 0),
    ),
    Case(
        Bun,
        "error outside of the tests",
        " 2 pass\n 0 fail\n 1 error\nRan 2 tests across 1 file. [3.00ms]",
        (2, 2, 0, 0),
        ("outside of the tests",),
    ),
    Case(
        Playwright,
        "all failed, with a project",
        "Running 1 test using 1 worker\n\n  1) [chromium] › a.spec.ts:3:1 › bad ─────\n\n    Error: no\n\n"
        "  1 failed\n    [chromium] › a.spec.ts:3:1 › bad ─────\n",
        (1, 0, 1, 0),
        ("[chromium] › a.spec.ts:3:1 › bad",),
    ),
    Case(Playwright, "end of an output", "  1 skipped\n  3 passed (1.2m)\n", (4, 3, 0, 1)),
    Case(
        Karma,
        "two browsers",
        "Chrome 120.0.0 (Linux): Executed 1 of 2 SUCCESS (0.1 secs / 0.1 secs)\n"
        "Firefox 119.0 (Linux) calc adds FAILED\n\tExpected 1 to be 2.\n"
        "Chrome 120.0.0 (Linux): Executed 2 of 2 SUCCESS (0.1 secs / 0.1 secs)\n"
        "Firefox 119.0 (Linux): Executed 2 of 2 (1 FAILED) (0.1 secs / 0.1 secs)\n"
        "TOTAL: 1 FAILED, 3 SUCCESS\n",
        (4, 3, 1, 0),
        ("calc adds",),
    ),
    Case(
        Cypress,
        "a table",
        "  (Run Finished)\n       Spec              Tests  Passing  Failing  Pending  Skipped\n"
        "  │ ✖  a.cy.js       00:01        3        1        1        1        - │\n"
        "    ✖  1 of 1 failed (100%)  00:01        3        1        1        1        -\n",
        (3, 1, 1, 1),
        ("a.cy.js",),
    ),
    Case(
        Cypress,
        "passed",
        "  ✔  All specs passed!     00:07        6        6        -        -        -",
        (6, 6, 0, 0),
    ),
    Case(
        JsonReports,
        "playwright",
        '{"suites":[{"title":"a.spec.ts","specs":[{"title":"bad","ok":false,"file":"a.spec.ts",'
        '"line":3,"column":1}],"suites":[{"title":"g","specs":[{"title":"in","ok":false,'
        '"file":"a.spec.ts","line":5,"column":2}]}]}],'
        '"stats":{"expected":2,"skipped":1,"unexpected":2,"flaky":1}}',
        (6, 3, 2, 1),
        ("a.spec.ts:3:1 › bad", "a.spec.ts:5:2 › g › in"),
    ),
    Case(
        JsonReports,
        "a jest suite that failed to run",
        '{"numTotalTests":1,"numRuntimeErrorTestSuites":1,"testResults":[{"name":"/w/src/a.test.js",'
        '"status":"failed","message":"no","assertionResults":[]},{"name":"/w/b.test.js",'
        '"status":"passed","assertionResults":[{"title":"t","status":"passed"}]}]}',
        (2, 1, 1, 0),
        ("src/a.test.js",),
    ),
    Case(JsonReports, "not a report", '{"stats": {"passes": "x"}}\n{\n"passes": [\n}\n', None),
    # -- Java
    Case(Maven, "quiet", "Tests run: 3, Failures: 0, Errors: 0, Skipped: 1", (3, 2, 0, 1)),
    Case(
        Maven,
        "two modules",
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in x.ATest\n"
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n"
        "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in x.BTest\n"
        "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 1\n[INFO] BUILD SUCCESS\n",
        (5, 4, 0, 1),
    ),
    Case(
        Maven,
        "Surefire 2",
        "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec <<< FAILURE! - in x.ATest\n"
        "Results :\n\nFailed tests: \n  ATest.wrong:6 expected:<3> but was:<2>\n\n"
        "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n",
        (2, 1, 1, 0),
        ("ATest.wrong",),
    ),
    Case(
        Maven,
        "truncated before the total",
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in x.ATest\n"
        "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in x.BTest\n",
        (5, 4, 1, 0),
    ),
    Case(Maven, "no tests", "[INFO] No tests to run.\n[INFO] BUILD SUCCESS", (0, 0, 0, 0)),
    Case(
        Gradle,
        "tasks of two projects",
        "> Task :app:test\n\nATest > a PASSED\n\nATest > b PASSED\n\n> Task :lib:test FAILED\n\n"
        "BTest > c() FAILED\n    java.lang.AssertionError at BTest.java:2\n\n"
        "3 tests completed, 1 failed\n\nBUILD FAILED in 5s\n",
        (5, 4, 1, 0),
        ("BTest > c()",),
    ),
    Case(
        Gradle,
        "names before the header of their task",
        "> Task :compileJava UP-TO-DATE\nCalcTest > a PASSED\nCalcTest > b PASSED\n> Task :test\n\n"
        "BUILD SUCCESSFUL in 2s\n3 actionable tasks: 1 executed, 2 up-to-date\n",
        (2, 2, 0, 0),
    ),
    Case(
        Gradle,
        "names in one of two tasks",
        "> Task :integrationTest\n\n> Task :test\n\nCalcTest > a PASSED\n\nCalcTest > b PASSED\n\n"
        "BUILD SUCCESSFUL in 2s\n4 actionable tasks: 2 executed, 2 up-to-date\n",
        (2, 2, 0, 0),
    ),
    Case(
        Gradle,
        "the line of a class after its tests",
        "> Task :test\nGradle Test Run :test > CalcTest > a PASSED\n"
        "Gradle Test Run :test > CalcTest > b PASSED\nGradle Test Run :test > CalcTest PASSED\n\n"
        "BUILD SUCCESSFUL in 2s\n4 actionable tasks: 2 executed, 2 up-to-date\n",
        (2, 2, 0, 0),
    ),
    Case(
        Gradle,
        "a second header of a task after its counts",
        "> Task :a:test\n\nATest > x FAILED\n\n2 tests completed, 1 failed\n\n> Task :b:test\n\n"
        "BTest > y PASSED\n\n> Task :a:test\nThere were failing tests.\n\nBUILD SUCCESSFUL in 2s\n",
        (3, 2, 1, 0),
        ("ATest > x",),
    ),
    Case(
        Gradle,
        "a task that compiles tests",
        "> Task :compileDebugUnitTest\n> Task :test\n\nBUILD SUCCESSFUL in 2s\n",
        (1, 1, 0, 0),
    ),
    Case(
        Gradle,
        "a test that is tried again",
        "> Task :test\n\nCalcTest > a PASSED\n\nCalcTest > b FAILED\n    x at CalcTest.java:5\n\n"
        "CalcTest > b FAILED\n\nCalcTest > b PASSED\n\nBUILD SUCCESSFUL in 1s\n",
        (2, 2, 0, 0),
    ),
    Case(
        Gradle,
        "names above the header of a failed task",
        "> Task :compileJava UP-TO-DATE\nCalcTest > a PASSED\nCalcTest > b FAILED\n"
        "> Task :test FAILED\n\n2 tests completed, 1 failed\n\nBUILD FAILED in 1s\n",
        (2, 1, 1, 0),
        ("CalcTest > b",),
    ),
    Case(
        Gradle,
        "times",
        "> Task :test\n\nCalcTest > a() PASSED (12ms)\nCalcTest > b() PASSED (1.3s)\n\n"
        "BUILD SUCCESSFUL in 1s\n",
        (2, 2, 0, 0),
    ),
    Case(
        Gradle,
        "a sum by an afterSuite closure",
        "> Task :test\n\nCalcTest > a PASSED\nCalcTest > b PASSED\n"
        "Results: SUCCESS (2 tests, 2 successes, 0 failures, 0 skipped)\n\nBUILD SUCCESSFUL in 1s\n",
        (2, 2, 0, 0),
    ),
    Case(
        Gradle,
        "a device of Android",
        "> Task :app:connectedDebugAndroidTest\nStarting 3 tests on Pixel_4(AVD) - 11\n\n"
        "x.CalcTest > b[Pixel_4(AVD) - 11] FAILED\n\tjava.lang.AssertionError\n"
        "Finished 3 tests on Pixel_4(AVD) - 11\n\n"
        "> Task :app:connectedDebugAndroidTest FAILED\n\nBUILD FAILED in 30s\n",
        (3, 2, 1, 0),
        ("x.CalcTest > b[Pixel_4(AVD) - 11]",),
    ),
    Case(Gradle, "nothing run", "> Task :test UP-TO-DATE\n\nBUILD SUCCESSFUL in 1s\n", None),
    Case(Gradle, "another build", "> Task :compileTestJava\n\nBUILD SUCCESSFUL in 1s\n", None),
    Case(
        JUnitConsole,
        "version 4",
        "JUnit version 4.13.2\n..\nTime: 0.01\n\nOK (2 tests)\n",
        (2, 2, 0, 0),
    ),
    Case(
        JUnitConsole,
        "version 4, failed",
        "There was 1 failure:\n1) wrong(x.CalcTest)\njava.lang.AssertionError: no\n\tat x\n\n"
        "FAILURES!!!\nTests run: 3,  Failures: 1\n",
        (3, 2, 1, 0),
        ("wrong(x.CalcTest)",),
    ),
    Case(
        JUnitConsole,
        "the launcher",
        "Failures (1):\n  JUnit Jupiter:CalcTest:wrong()\n\n"
        "[         5 tests found           ]\n[         1 tests skipped         ]\n"
        "[         4 tests started         ]\n[         0 tests aborted         ]\n"
        "[         3 tests successful      ]\n[         1 tests failed          ]\n",
        (5, 3, 1, 1),
        ("CalcTest > wrong()",),
    ),
    # -- Ruby, PHP, Elixir
    Case(RSpec, "end of an output", "1 example, 0 failures\n", (1, 1, 0, 0)),
    Case(
        RSpec,
        "errors and examples",
        "Finished in 0.1 seconds\n3 examples, 1 failure, 2 errors occurred outside of examples\n",
        (5, 2, 3, 0),
    ),
    Case(
        RSpec,
        "hspec",
        "Failures:\n\n  src/S.hs:3:5:\n  1) Calc adds\n       expected: 3\n\nFinished in 0.0003 seconds\n"
        "3 examples, 1 failure, 1 pending\n",
        (3, 1, 1, 1),
        ("Calc adds",),
    ),
    Case(Minitest, "Rails", "12 runs, 30 assertions, 1 failures, 0 errors, 2 skips", (12, 9, 1, 2)),
    Case(
        Minitest,
        "minitest-reporters",
        "4 tests, 2 assertions, 1 failures, 1 errors, 1 skips",
        (4, 1, 2, 1),
    ),
    Case(
        Minitest,
        "names",
        "  1) Failure:\nUserTest#test_it_works [test/user_test.rb:5]:\nExpected: 1\n  Actual: 2\n\n"
        "  2) Skipped:\nUserTest#test_later [test/user_test.rb:9]:\nno\n\n"
        "2 runs, 1 assertions, 1 failures, 0 errors, 1 skips\n",
        (2, 0, 1, 1),
        ("UserTest#test_it_works",),
    ),
    Case(PhpUnit, "one test", "OK (1 test, 1 assertion)", (1, 1, 0, 0)),
    Case(
        PhpUnit,
        "version 11",
        "OK, but there were issues!\nTests: 5, Assertions: 7, Warnings: 1, PHPUnit Deprecations: 2, Skipped: 1.",
        (5, 4, 0, 1),
    ),
    Case(
        PhpUnit,
        "Pest",
        "  Tests:    1 failed, 1 skipped, 2 passed (3 assertions)\n  Duration: 0.05s",
        (4, 2, 1, 1),
    ),
    Case(
        PhpUnit,
        "names of Pest",
        "   FAILED  Tests\\Unit\\CalcTest > it adds\n  Tests:    1 failed, 2 passed (3 assertions)\n",
        (3, 2, 1, 0),
        ("Tests\\Unit\\CalcTest > it adds",),
    ),
    Case(
        ExUnit,
        "doctests",
        "  1) doctest X.f/1 (1) (XTest)\n     no\n\nFinished in 0.02 seconds (0.00s async, 0.02s sync)\n"
        "2 doctests, 1 property, 5 tests, 1 failure, 1 invalid\n",
        (8, 6, 2, 0),
        ("doctest X.f/1 (1) (XTest)",),
    ),
    Case(ExUnit, "prose", "5 tests, 0 failures", None),
    # -- C++
    Case(CTest, "one test", "100% tests passed, 0 tests failed out of 1\n", (1, 1, 0, 0)),
    Case(
        CTest,
        "skipped lines, no list",
        "2/3 Test #2: b ......***Skipped   0.00 sec\n3/3 Test #3: c ....***Not Run (Disabled)   0.00 sec\n"
        "100% tests passed, 0 tests failed out of 2\n",
        (3, 1, 0, 2),
    ),
    Case(
        CTest,
        "twice without a heading",
        "    Start 1: a\n1/1 Test #1: a ....***Skipped   0.00 sec\n100% tests passed, 0 tests failed out of 1\n"
        "    Start 1: a\n1/1 Test #1: a ....   Passed    0.00 sec\n100% tests passed, 0 tests failed out of 1\n",
        (1, 1, 0, 0),
    ),
    Case(
        GoogleTest,
        "end of an output",
        "[  PASSED  ] 4 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.Bad\n",
        (5, 4, 1, 0),
        ("A.Bad",),
    ),
    Case(
        GoogleTest,
        "old version",
        "[==========] 3 tests from 2 test cases ran. (0 ms total)\n[  PASSED  ] 3 tests.\n",
        (3, 3, 0, 0),
    ),
    Case(
        Catch2,
        "version 3",
        "test cases: 5 | 1 passed | 2 failed | 1 skipped | 1 failed as expected",
        (5, 1, 2, 1),
    ),
    Case(Catch2, "both", "Passed both 2 test cases with 3 assertions.", (2, 2, 0, 0)),
    Case(
        Doctest, "one", "[doctest] test cases:  1 |  1 passed | 0 failed | 0 skipped", (1, 1, 0, 0)
    ),
    Case(Boost, "one test", "Running 1 test case...\n\n*** No errors detected\n", (1, 1, 0, 0)),
    Case(
        Meson,
        "names",
        "1/2 x / alpha   OK              0.01s\n2/2 x / beta    FAIL            0.01s   exit status 1\n\n"
        "Ok:                 1   \nFail:               1   \nFull log:         2\n",
        (2, 1, 1, 0),
        ("x / beta",),
    ),
    Case(Meson, "newer", "Ok:                 3   \nFail:               1   \n", (4, 3, 1, 0)),
    Case(Meson, "prose", "Ok: 3\n", None),
    # -- shells and the rest
    Case(Tap, "trailing plan", "ok 1 - a\nnot ok 2 - b\n1..2\n", (2, 1, 1, 0), ("b",)),
    Case(Tap, "end of an output", "ok 19 - a\nnot ok 20 - b\n", (2, 1, 1, 0), ("b",)),
    Case(Tap, "prose", "ok 1 thing is left\n", None),
    Case(Tap, "skipped all", "1..0 # SKIP no network\n", (0, 0, 0, 0)),
    Case(
        Tap,
        "subtests",
        "    # Subtest: x\n    ok 1 - in\n    not ok 2 - out\n    1..2\nnot ok 1 - x\nok 2 - y\n1..2\n",
        (2, 1, 1, 0),
        ("x",),
    ),
    Case(Tap, "only sums", "# tests 3\n# pass  2\n# fail  1\n", (3, 2, 1, 0)),
    Case(Tap, "bailed out", "1..2\nok 1 - a\nBail out! no disk\n", (1, 1, 0, 0), ("Bail out!",)),
    Case(Tap, "twice", "1..1\nnot ok 1 - a\n1..1\nok 1 - a\n", (1, 1, 0, 0)),
    Case(
        Prove,
        "ranges",
        "t/a.t .. \nFailed 3/6 subtests\nt/a.t (Wstat: 768 Tests: 6 Failed: 3)\n  Failed tests:  2, 4-5\n"
        "Files=1, Tests=6,  0 wallclock secs ( 0.03 usr )\nResult: FAIL\n",
        (6, 3, 3, 0),
        ("t/a.t test 2", "t/a.t test 4-5"),
    ),
    Case(
        Prove,
        "error exit without a failed test",
        "t/a.t .. ok\nt/a.t (Wstat: 256 (exited 1) Tests: 2 Failed: 0)\n  Non-zero exit status: 1\n"
        "Files=1, Tests=2,  0 wallclock secs\nResult: FAIL\n",
        (2, 2, 0, 0),
        ("t/a.t",),
    ),
    Case(
        Prove,
        "passed",
        "t/a.t .. ok\nAll tests successful.\nFiles=1, Tests=6,  0 wallclock secs\nResult: PASS\n",
        (6, 6, 0, 0),
    ),
    Case(Bats, "one test", " ✓ good\n\n1 test, 0 failures\n", (1, 1, 0, 0)),
    Case(Bats, "prose", " ✓ Added a parser\n ✓ Wrote tests\n\n12 tests, 0 failures\n", None),
    Case(
        Robot,
        "version 3",
        "Breaks          | FAIL |\na != b\n------\nS               | FAIL |\n2 critical tests, 1 passed, 1 failed\n"
        "2 tests total, 1 passed, 1 failed\n",
        (2, 1, 1, 0),
        ("Breaks",),
    ),
    Case(Robot, "prose", "4 tests, 2 passed, 2 failed\n", None),
    Case(Behave, "one test", "1 scenario passed, 0 failed, 0 skipped", (1, 1, 0, 0)),
    Case(Cucumber, "no tests", "0 scenarios\n0 steps\n", (0, 0, 0, 0)),
    Case(
        Cucumber,
        "names",
        "cucumber features/a.feature:5 # Scenario: wrong\n\n2 scenarios (1 failed, 1 passed)\n",
        (2, 1, 1, 0),
        ("features/a.feature:5",),
    ),
    Case(
        Automake,
        "unexpected pass",
        "XPASS: d.sh\n# TOTAL: 1\n# PASS:  0\n# SKIP:  0\n# XFAIL: 0\n# FAIL:  0\n# XPASS: 1\n# ERROR: 0\n",
        (1, 0, 1, 0),
        ("d.sh",),
    ),
    Case(
        Automake,
        "two folders, and a second run of one",
        "Making check in a\n# TOTAL: 1\n# FAIL:  0\n# ERROR: 0\n"
        "Making check in a\n# TOTAL: 2\n# FAIL:  0\n# ERROR: 0\n"
        "Making check in b\nFAIL: x.sh\n# TOTAL: 3\n# FAIL:  1\n# ERROR: 0\n",
        (5, 4, 1, 0),
        ("x.sh",),
    ),
    # -- others
    Case(
        DotNet,
        "a list and a line of one project",
        "Test run for /x/bin/Calc.dll (.NETCoreApp,Version=v8.0)\n  Passed A [5 ms]\n\n"
        "Test Run Successful.\nTotal tests: 1\n     Passed: 1\n Total time: 0.5 Seconds\n\n"
        "Passed!  - Failed:     0, Passed:     1, Skipped:     0, Total:     1, Duration: 5 ms - "
        "Calc.dll (net8.0)\n",
        (1, 1, 0, 0),
    ),
    Case(
        XCTest,
        "two bundles",
        "Test Suite 'All tests' started at 12:00\nTest Suite 'ATests.xctest' started at 12:00\n"
        "Test Suite 'ATests.xctest' passed at 12:00\n"
        "\t Executed 1 test, with 0 failures (0 unexpected) in 0.001 (0.002) seconds\n"
        "Test Suite 'All tests' passed at 12:00\n"
        "\t Executed 1 test, with 0 failures (0 unexpected) in 0.001 (0.002) seconds\n"
        "Test Suite 'All tests' started at 12:01\nTest Suite 'BTests.xctest' started at 12:01\n"
        "Test Suite 'BTests.xctest' passed at 12:01\n"
        "\t Executed 2 tests, with 0 failures (0 unexpected) in 0.001 (0.002) seconds\n"
        "Test Suite 'All tests' passed at 12:01\n"
        "\t Executed 2 tests, with 0 failures (0 unexpected) in 0.001 (0.002) seconds\n",
        (3, 3, 0, 0),
    ),
    Case(
        Scala,
        "sbt and ScalaTest",
        "[info] CalcSpec:\n[info] - adds\n[info] - is wrong *** FAILED ***\n[info]   1 did not equal 2 (CalcSpec.scala:9)\n"
        "[info] - later !!! IGNORED !!!\n[info] Run completed in 300 milliseconds.\n[info] Total number of tests run: 2\n"
        "[info] Suites: completed 1, aborted 0\n[info] Tests: succeeded 1, failed 1, canceled 0, ignored 1, pending 0\n"
        "[info] *** 1 TEST FAILED ***\n[error] Failed: Total 2, Failed 1, Errors 0, Passed 1, Ignored 1\n"
        "[error] Failed tests:\n[error] \tCalcSpec\n[error] Total time: 3 s, completed Oct 14, 2025\n",
        (3, 1, 1, 1),
        ("is wrong",),
    ),
    Case(
        Scala,
        "two projects, then again",
        "[info] Passed: Total 2, Failed 0, Errors 0, Passed 2\n[error] Failed: Total 1, Failed 1, Errors 0, Passed 0\n"
        "[error] Total time: 3 s\n[info] Passed: Total 2, Failed 0, Errors 0, Passed 2\n"
        "[info] Passed: Total 1, Failed 0, Errors 0, Passed 1\n[success] Total time: 2 s\n",
        (3, 3, 0, 0),
    ),
    Case(
        Scala,
        "munit",
        "HelloSuite:\n==> X HelloSuite.starts with H  0.004s munit.FailException: no\n"
        "[error] Failed: Total 1, Failed 1, Errors 0, Passed 0\n",
        (1, 0, 1, 0),
        ("HelloSuite.starts with H",),
    ),
    Case(
        Scala,
        "without sbt",
        "Tests: succeeded 4, failed 0, canceled 0, ignored 1, pending 0\nAll tests passed.\n",
        (5, 4, 0, 1),
    ),
    Case(
        Dart,
        "failed",
        "00:00 +0: loading test/a_test.dart\n00:00 +1: adds\n00:00 +1 -1: is wrong [E]\n  Expected: <2>\n    Actual: <1>\n\n"
        "00:00 +1 ~1 -1: later\n00:01 +2 ~1 -1: Some tests failed.\n",
        (4, 2, 1, 1),
        ("is wrong",),
    ),
    Case(Dart, "passed", "00:02 +12: All tests passed!\n", (12, 12, 0, 0)),
    Case(Dart, "prose", "All tests passed!\n+12: All tests passed!\nNo tests ran.\n", None),
    Case(
        Forge,
        "two contracts",
        "Ran 2 tests for test/A.t.sol:ATest\n[PASS] test_Inc() (gas: 31303)\n"
        "[FAIL: assertion failed: 1 != 2] test_Bad() (gas: 123)\n"
        "Suite result: FAILED. 1 passed; 1 failed; 0 skipped; finished in 1.2ms (1.0ms CPU time)\n\n"
        "Ran 1 test for test/B.t.sol:BTest\n[PASS] testFuzz_Set(uint256) (runs: 256)\n"
        "Suite result: ok. 1 passed; 0 failed; 0 skipped; finished in 9ms (8ms CPU time)\n\n"
        "Ran 2 test suites in 1.6s (23ms CPU time): 2 tests passed, 1 failed, 0 skipped (3 total tests)\n",
        (3, 2, 1, 0),
        ("test_Bad()",),
    ),
    Case(
        Forge,
        "old version",
        "Running 2 tests for test/A.t.sol:ATest\n[PASS] testA() (gas: 1)\n[PASS] testB() (gas: 1)\n"
        "Test result: ok. 2 passed; 0 failed; finished in 3.35ms\n",
        (2, 2, 0, 0),
    ),
    Case(
        Uvu,
        "failed",
        '• ✘   (1 / 2)\n\n   FAIL  "wrong"\n    Expected values to be strictly equal:  (is)\n\n'
        "  Total:     2\n  Passed:    1\n  Skipped:   1\n  Duration:  1.17ms\n",
        (3, 1, 1, 1),
        ("wrong",),
    ),
    Case(Uvu, "prose", "Total:   12\nPassed:  10\nSkipped:  2\n\nDuration:  3s\n", None),
    Case(
        PyDoctest,
        "failed",
        'File "calc.py", line 2, in calc.add\nFailed example:\n    1+1\nExpected:\n    3\nGot:\n    2\n'
        "**********\n1 items had failures:\n   1 of   2 in calc.add\n***Test Failed*** 1 failures.\n",
        (2, 1, 1, 0),
        ("calc.add (calc.py, line 2)",),
    ),
    Case(
        PyDoctest,
        "-v",
        "2 items passed all tests:\n   3 tests in calc\n3 tests in 2 items.\n3 passed and 0 failed.\nTest passed.\n",
        (3, 3, 0, 0),
    ),
    Case(PyDoctest, "prose", "3 passed.\n\nTest passed.\n", None),
    # -- .NET, Swift
    Case(
        DotNet,
        "two projects",
        "  Failed N.C.Wrong [12 ms]\n  Error Message:\n   Assert.Equal() Failure\n  Stack Trace:\n     at N.C\n\n"
        "Failed!  - Failed:     1, Passed:     2, Skipped:     1, Total:     4, Duration: 45 ms - A.dll (net8.0)\n"
        "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 5 ms - B.dll (net8.0)\n",
        (7, 5, 1, 1),
        ("N.C.Wrong",),
    ),
    Case(
        DotNet,
        "terminal logger",
        "Test summary: total: 4, failed: 1, succeeded: 2, skipped: 1, duration: 1.0s",
        (4, 2, 1, 1),
    ),
    Case(
        DotNet,
        "vstest",
        "Test Run Failed.\nTotal tests: 4\n     Passed: 2\n     Failed: 1\n    Skipped: 1\n Total time: 1 Seconds\n",
        (4, 2, 1, 1),
    ),
    Case(
        DotNet,
        "old vstest",
        "Total tests: 4. Passed: 2. Failed: 1. Skipped: 1.\nTest Run Failed.\n",
        (4, 2, 1, 1),
    ),
    Case(
        DotNet,
        "vstest, two projects",
        "Test run for /w/A.dll (.NETCoreApp,Version=v8.0)\nTest Run Successful.\nTotal tests: 1\n     Passed: 1\n"
        "Test run for /w/B.dll (.NETCoreApp,Version=v8.0)\nTest Run Successful.\nTotal tests: 2\n     Passed: 2\n",
        (3, 3, 0, 0),
    ),
    Case(
        DotNet,
        "testing platform",
        "failed N.C.Wrong (12ms)\n  no\nTest run summary: Failed! - bin/x.dll (net9.0|x64)\n  total: 3\n"
        "  failed: 1\n  succeeded: 2\n  skipped: 0\n  duration: 150ms\n",
        (3, 2, 1, 0),
        ("N.C.Wrong",),
    ),
    Case(DotNet, "prose", "Total tests: 24\nPassed: 24\nFailed: 0\n", None),
    Case(
        XCTest,
        "nested suites",
        "Test Suite 'All tests' started at 2026-01-01 12:00:00.000.\n"
        "/src/T.swift:5: error: CalcTests.testWrong : XCTAssertEqual failed\n"
        "/src/T.swift:6: error: CalcTests.testWrong : XCTAssertTrue failed\n"
        "Test Case 'CalcTests.testWrong' failed (0.001 seconds).\n"
        "Test Suite 'CalcTests' failed at 2026-01-01 12:00:00.000.\n"
        "\t Executed 3 tests, with 2 failures (0 unexpected) in 0.003 (0.003) seconds\n"
        "Test Suite 'All tests' failed at 2026-01-01 12:00:00.000.\n"
        "\t Executed 4 tests, with 1 test skipped and 2 failures (0 unexpected) in 0.003 (0.004) seconds\n",
        (4, 2, 1, 1),
        ("CalcTests.testWrong",),
    ),
    Case(
        SwiftTesting,
        "failed",
        "◇ Test run started.\n✘ Test adds() recorded an issue at T.swift:5:3: Expectation failed: 1 == 2\n"
        "✘ Test adds() failed after 0.001 seconds with 1 issue.\n➜ Test later() skipped.\n"
        "✘ Test run with 3 tests in 1 suite failed after 0.002 seconds with 1 issue.\n",
        (3, 1, 1, 1),
        ("adds()",),
    ),
    Case(
        SwiftTesting,
        "passed",
        "✔ Test run with 2 tests passed after 0.001 seconds.\n",
        (2, 2, 0, 0),
    ),
    # -- reports
    Case(
        XmlReports,
        "two files",
        '<testsuite name="a"><testcase name="x"/></testsuite>\n'
        '<?xml version="1.0"?><testsuite name="b">\n<testcase classname="B" name="y"><failure>no</failure></testcase>\n</testsuite>\n',
        (2, 1, 1, 0),
        ("B.y",),
    ),
    Case(
        XmlReports, "truncated", '<testsuites>\n<testsuite name="a">\n<testcase name="x"/>\n', None
    ),
]
