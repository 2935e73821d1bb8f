"""All parsers, in no particular order: results of different runners are told apart by name."""

from collections.abc import Callable

from rooda.testresults.parser import Parser
from rooda.testresults.runners.automake import Automake
from rooda.testresults.runners.ava import Ava
from rooda.testresults.runners.bats import Bats
from rooda.testresults.runners.behave import Behave
from rooda.testresults.runners.boost import Boost
from rooda.testresults.runners.bun import Bun
from rooda.testresults.runners.cargo import Cargo
from rooda.testresults.runners.catch2 import Catch2
from rooda.testresults.runners.ctest import CTest
from rooda.testresults.runners.cucumber import Cucumber
from rooda.testresults.runners.cypress import Cypress
from rooda.testresults.runners.dart import Dart
from rooda.testresults.runners.deno import Deno
from rooda.testresults.runners.doctest import Doctest
from rooda.testresults.runners.dotnet import DotNet
from rooda.testresults.runners.exunit import ExUnit
from rooda.testresults.runners.forge import Forge
from rooda.testresults.runners.go import Go
from rooda.testresults.runners.gradle import Gradle
from rooda.testresults.runners.gtest import GoogleTest
from rooda.testresults.runners.jasmine import Jasmine
from rooda.testresults.runners.jest import Jest
from rooda.testresults.runners.json_reports import JsonReports
from rooda.testresults.runners.junit_console import JUnitConsole
from rooda.testresults.runners.karma import Karma
from rooda.testresults.runners.maven import Maven
from rooda.testresults.runners.meson import Meson
from rooda.testresults.runners.minitest import Minitest
from rooda.testresults.runners.mocha import Mocha
from rooda.testresults.runners.nextest import Nextest
from rooda.testresults.runners.node import Node
from rooda.testresults.runners.phpunit import PhpUnit
from rooda.testresults.runners.playwright import Playwright
from rooda.testresults.runners.prove import Prove
from rooda.testresults.runners.pydoctest import PyDoctest
from rooda.testresults.runners.pytest import Pytest
from rooda.testresults.runners.robot import Robot
from rooda.testresults.runners.rspec import RSpec
from rooda.testresults.runners.scala import Scala
from rooda.testresults.runners.swift import SwiftTesting, XCTest
from rooda.testresults.runners.tap import Tap
from rooda.testresults.runners.unittest import Unittest
from rooda.testresults.runners.uvu import Uvu
from rooda.testresults.runners.vitest import Vitest
from rooda.testresults.runners.xml_reports import XmlReports

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
