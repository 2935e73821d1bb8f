"""The list of all parsers. Their order has no meaning: runner names keep the results apart."""

from collections.abc import Callable

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

PARSERS: tuple[Callable[[], Parser], ...] = (
    Automake,
    Ava,
    Bats,
    Behave,
    Boost,
    Bun,
    Cargo,
    Catch2,
    CTest,
    Cucumber,
    Cypress,
    Dart,
    Deno,
    Doctest,
    DotNet,
    ExUnit,
    Forge,
    Go,
    GoogleTest,
    Gradle,
    Jasmine,
    Jest,
    JsonReports,
    JUnitConsole,
    Karma,
    Maven,
    Meson,
    Minitest,
    Mocha,
    Nextest,
    Node,
    PhpUnit,
    Playwright,
    Prove,
    PyDoctest,
    Pytest,
    Robot,
    RSpec,
    Scala,
    SwiftTesting,
    Tap,
    Unittest,
    Uvu,
    Vitest,
    XCTest,
    XmlReports,
)
