"""Whether a failed check can't run at all: a missing program, target, script or module. Pure."""

import re
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.widths import cut

_LONGEST_NAME = 80  # characters of a name that comes from the output


class Obstacle(Struct, frozen=True):
    """Why a check can't run, and what the user can do about it."""

    reason: str
    fix: str


class _Form(Struct, frozen=True):
    """A message with which a tool reports that it can't run what it was asked for.

    `line` matches the whole line, and its group is the {name} in `reason`. The lines that may
    follow it match `after`: any other line behind it makes the message a quotation, for example
    in the output of a failed test. With `in_command`, the name has to be a word of the command;
    `tool` has to be in the command, if the message alone is too general.
    """

    line: str
    codes: tuple[int, ...]
    reason: str
    fix: str
    after: str = r"(?!)"
    in_command: bool = False
    tool: str = ""


_MAKE = r"\S*make(?:\[\d+\])?"
_MAKE_USAGE = r"Usage: .*|Options:|  .*|This program built for .*|Report bugs to .*"

# Lines that a tool prints after the program that it started has failed. A code is that of the
# program.
_TRAILERS = (
    rf"{_MAKE}: \*\*\* \[.*\] Error (?P<code>\d+)",
    rf"{_MAKE}: (?:Leaving directory .*|Target .* not remade because of errors\.)",
    rf"{_MAKE}: stopped in .*",
    rf"{_MAKE}: \*\*\* Waiting for unfinished jobs.*",
    r"\*\*\* Error code (?P<code>\d+)(?: \(continuing\))?",  # BSD make
    r"Stop\.",
    r"npm (?:error|ERR!|warn|WARN|notice)(?: .*)?",
    r"error Command failed with exit code (?P<code>\d+)\.",  # yarn
    r"info Visit \S+ for documentation about this command\.",
    r"\s*\[?ELIFECYCLE\]?\s+(?:Test|Command) failed\b.*",  # pnpm
    r'error: script ".*" exited with code (?P<code>\d+)',  # bun
    r"error: [Rr]ecipe .* failed (?:on line \d+ )?with exit code (?P<code>\d+)",  # just
    r'task: Failed to run task ".*": exit status (?P<code>\d+)',
    r"\S+: exit (?P<code>\d+) \(.* seconds\) .*> .* pid=\d+",  # tox
    r"\s*\S+: FAIL(?:ED)? code (?P<code>\d+)(?: \(.*\))?",
    r"\s*evaluation failed :\( .*",
    r"\.pkg\S*: _exit> .*",
    r"nox > Command .* failed with exit code (?P<code>\d+).*",
    r"nox > (?:Session .* failed\.|Ran multiple sessions:|\* .*)",
    r"Command exited with non-zero status (?P<code>\d+)",  # time
    r"[\d.]+user [\d.]+system .*|\d+inputs\+\d+outputs .*|(?:real|user|sys)\s[\dms.]+",
)

_SCRIPT = "Correct the name of the script, or add it to package.json"
_TARGET = "Correct the name of the target, or add it to the Makefile"
_FOLDER = "Run the check in the folder of the project"
_INSTALL = "Install it for the program that runs the check, or correct the name"
_FILE = "Correct the name of the file"
_NO_TESTS = "Correct the paths and filters, or write a first test"
_PACKAGES = "Install the packages first"
_CONFIGURE = "Configure the build first"
_ARGUMENTS = "Correct the arguments of the check"
_PROGRAM = "Install the program, or correct the command"
_ANY = tuple(range(1, 256))
_USAGE = r"Usage: .*|For more information, .*|\s+tip: .*"
_NPM = r"npm (?:error|ERR!)"
_NPM_MORE = r"npm (?:error|ERR!|warn|WARN|notice)(?: .*)?"
_PYTHON = r".*\b(?:python|pypy)[\w.]*"
_SHELL = r"(?:\S*/)?(?:ba|da|k|z|a)?sh: (?:-c: )?(?:line )?"
_NODE_MORE = (
    r"    at .*\binternal/.*|\s+code: 'MODULE_NOT_FOUND',|\s+requireStack: \[\]|\}|Node\.js v\S+"
)
_PACKAGE_MORE = (
    r"Require stack:|- \S+|    at .*|\s+code: '(?:ERR_)?MODULE_NOT_FOUND',?|\s+requireStack: \[.*"
    r"|\s+'/.*|\s*\]|\}|Node\.js v\S+"
)
_DOCKER_MORE = r"See 'docker .*|Run 'docker .*"
_GRADLE_MORE = r"\* .*|> .*|Run .*|BUILD FAILED in .*|\d+ actionable tasks?: .*"

# fmt: off
_FORMS: tuple[_Form, ...] = (
    # make
    _Form(
        rf"{_MAKE}: \*\*\* No rule to make target [`'\u2018]([^'\u2019]+)['\u2019]\.(?:  Stop\.)?",
        (2,), "make has no rule for the target {name}", _TARGET),
    _Form(
        rf"{_MAKE}: \*\*\* No targets(?: specified and no makefile found)?\.  Stop\.",
        (2,), "make found no Makefile with a target", _FOLDER),
    _Form(
        rf"{_MAKE}: \*\*\* (.+): No such file or directory\.  Stop\.",
        (2,), "the folder {name} does not exist", _FOLDER),
    _Form(
        rf"{_MAKE}: don't know how to make (\S+?)\. Stop",
        (1, 2), "make has no rule for the target {name}", _TARGET, in_command=True),
    _Form(
        r"\S+:\d+: \*\*\* ((?:missing|extraneous|unterminated) .*"
        r"|(?:recipe|commands) commences? before first target)\.  Stop\.",
        (2,), "make can't read the Makefile: {name}", "Correct the Makefile"),
    _Form(
        rf"{_MAKE}: ((?:(?:unrecognized|invalid) option|option requires an argument)(?: --)? '.+')",
        (2,), "make rejects its arguments: {name}", _ARGUMENTS, after=_MAKE_USAGE),
    _Form(r"ninja: error: unknown target '(.+)'.*",
        (1,), "ninja has no target {name}", "Correct the name of the target"),
    _Form(r"ninja: error: loading '(.+)': No such file or directory",
        (1,), "ninja found no file {name}", _FOLDER),
    _Form(r"ninja: fatal: chdir to '(.+)' - No such file or directory",
        (1,), "the folder {name} does not exist", _FOLDER),
    _Form(r"CMake Error: The source directory \"(.+)\" does not .*",
        (1,), "cmake found no project in {name}", _FOLDER, after=r"Specify --help .*"),
    _Form(r"CMake Error: Could not read presets from .*: File not found",
        (1,), "cmake found no presets", _FOLDER),
    _Form(r"No tests were found!!!",
        (8,), "ctest found no tests", _NO_TESTS,
        after=r"Errors while running CTest|Output from these tests .*|Use \"--rerun-failed .*"),
    _Form(r"ERROR: No such build data file as '(.+)'\.",
        (1,), "meson has not configured this build", _CONFIGURE, tool="meson"),
    _Form(r"Error: could not load cache",
        (1,), "cmake has not configured this build", _CONFIGURE),
    _Form(r"Error: (.+) is not a directory",
        (1,), "the folder {name} does not exist", _CONFIGURE, tool="cmake"),
    _Form(r'Failed to change working directory to "(.+)" : No such file or directory',
        (1,), "the folder {name} does not exist", _CONFIGURE, tool="ctest"),
    # shells
    _Form(rf"{_SHELL}\d+: (?:\.: )?(?:cannot|can't) open '?(.+?)'?: No such file.*",
        (1, 2, 127), "the file {name} does not exist", _FILE),
    _Form(rf"{_SHELL}\d+: (\S+): (?:command )?not found",
        (127,), "the program {name} is missing", "Install it, or correct the command"),
    _Form(rf"{_SHELL}\d+: cd: can't cd to (.+)",
        (1, 2), "the folder {name} does not exist", _FOLDER),
    _Form(rf"{_SHELL}\d+: cd: (.+): No such file or directory",
        (1, 2), "the folder {name} does not exist", _FOLDER),
    _Form(rf"{_SHELL}\d+: (\S+): No such file or directory",  # `source` or `<` of bash
        (1,), "the file {name} does not exist", _FILE, in_command=True),
    _Form(rf"{_SHELL}\d+: cannot create (.+): .*",
        (1, 2), "the shell can't write to {name}", "Make its folder, or correct the path",
        in_command=True),
    _Form(rf"{_SHELL}\d+: (\S+): (?:command )?not found",  # `mkae test || exit 1`
        _ANY, "the program {name} is missing", _PROGRAM, in_command=True),
    _Form(r"(?:\S*/)?(?:ba|z|k)?sh: (\S+): No such file or directory",  # `bash -e missing.sh`
        (1,), "the file {name} does not exist", _FILE, in_command=True),
    _Form(rf"{_SHELL}\d+: [Ss]yntax error.*",
        (1, 2), "the shell can't read the command", "Correct its quotes and operators",
        after=rf"{_SHELL}\d+: .*"),
    _Form(rf"{_SHELL}\d+: set: Illegal option (.+)",
        (2,), "sh has no option {name}", "Run the check with `bash -c`"),
    _Form(r"sudo: a password is required",
        (1,), "sudo asks for a password",
        "Run the check without sudo, or allow sudo without a password"),
    # Python
    _Form(rf"{_PYTHON}: No module named ([^\s;]+)(?:; .*)?",
        (1,), "Python has no module {name}", _INSTALL),
    _Form(r"No module named '?([\w.]+?)'?",
        (1,), "Python has no module {name}", _INSTALL, in_command=True, tool="coverage"),
    _Form(rf"{_PYTHON}: Error while finding module specification for '(.+?)' .*",
        (1,), "Python has no module {name}", _INSTALL),
    _Form(rf"{_PYTHON}: can't open file '?(.+?)'?: \[Errno 2\].*",
        (2,), "the file {name} does not exist", _FILE),
    _Form(rf"{_PYTHON}: can't find '__main__' module in '?(.+?)'?",
        (1,), "{name} is a folder without __main__.py", _FILE),
    _Form(r"ImportError: Couldn't import Django\..*",
        (1,), "Python has no module django", _INSTALL),
    _Form(r"(?:=+ )?(?:no tests ran|\d+ deselected\b.*) in [\d.]+s.*",
        (5,), "pytest found no tests", _NO_TESTS),
    _Form(r"NO TESTS RAN",
        (5,), "unittest found no tests", _NO_TESTS),
    _Form(r"ModuleNotFoundError: No module named '(.+?)'",  # one that the command names
        (1,), "Python has no module {name}", "Correct the name of the module",
        after=r"-+|Ran 1 test in .*|FAILED \(errors=1\)", in_command=True, tool="unittest"),
    _Form(r"ModuleNotFoundError: No module named '(.+?)'",
        (1,), "Python has no module {name}", _INSTALL, in_command=True, tool=" -c "),
    _Form(r"ImportError: Start directory is not importable: '(.+)'",
        (1,), "unittest found no folder {name}", _NO_TESTS),
    _Form(r"ImportError while loading conftest '(.+)'\.",
        (4,), "pytest can't load {name}", "Correct that file, or install what it imports",
        after=r".*"),
    _Form(r"ERROR: (?:file or directory )?not found: (.+)",
        (4,), "pytest found no {name}", _NO_TESTS, after=r"\(no match in any of .*"),
    _Form(r"\S*pytest(?:\.py)?: error: (.+)",
        (4,), "pytest rejects its arguments: {name}", "Correct the arguments of pytest",
        after=r"  (?:inifile|rootdir): .*"),
    _Form(r"((?:mypy|flake8|pylint|.* -m (?:unittest|mypy|flake8|pylint)): error: .+)",
        (2, 32), "a tool rejects its arguments: {name}", _ARGUMENTS),
    _Form(r"(?:mypy: can't read file '.+'|.+: error: Cannot read file): No such file or directory",
        (2,), "mypy found no such file", _FILE, after=r"Found \d+ errors? in .*", tool="mypy"),
    _Form(r"ERROR: Could not open requirements file: .*: '(.+)'",
        (1,), "pip found no file {name}", _FILE),
    _Form(r"ERROR: .+ does not appear to be a Python project: .*",
        (1,), "pip found no Python project", _FOLDER),
    _Form(r"(\S+):0:1: E902 FileNotFoundError: .*",
        (1,), "flake8 found no {name}", _FILE, in_command=True),
    _Form(r"(\S+):1:0: F0001: No module named \S+ \(fatal\)",
        (1,), "pylint found no {name}", _FILE, in_command=True),
    _Form(r"E902 No such file or directory .*",
        (1,), "ruff found no such file", _FILE,
        after=r"\s*--> .*|Found 1 error\.", tool="ruff"),
    _Form(r"Error: Invalid value for .+: (?:Path|File|Directory) '(.+)' does not exist\.",
        (2,), "there is no {name}", _FILE, in_command=True),
    _Form(r"Can't find package '(.+)'",
        (2,), "mypy found no package {name}", "Correct the name of the package", tool="mypy"),
    _Form(r"error: (unexpected argument|unrecognized subcommand) '.+'.*",
        (2,), "ruff rejects its arguments: {name}", _ARGUMENTS, after=_USAGE, tool="ruff"),
    _Form(r"No file to run: '(.+)'",
        (1,), "the file {name} does not exist", _FILE, tool="coverage"),
    _Form(r"error: Failed to spawn: [`'](.+)[`']",
        (2,), "uv found no program {name}", _INSTALL,
        after=r"\s+Caused by: No such file or directory.*"),
    _Form(r"Command not found: (\S+)",
        (1,), "poetry found no program {name}", _INSTALL, tool="poetry"),
    _Form(r"Poetry could not find a pyproject\.toml file in .*",
        (1,), "poetry found no pyproject.toml", _FOLDER),
    _Form(r"Error: the command (\S+) (?:\(from Pipfile\) )?could not be found within PATH\b.*",
        _ANY, "pipenv found no program {name}", _INSTALL),
    _Form(r"(?:\S+: )?failed with (\S+) is not allowed, use allowlist_externals to allow it",
        (1,), "tox may not run {name}", "Install it in the environment of tox, or allow it there"),
    _Form(r"tox: error: provided environments not found in configuration file: (.+)",
        _ANY, "tox has no environment {name}", "Correct the name of the environment"),
    _Form(r"ERROR: unknown environment '(.+)'",
        (1,), "tox has no environment {name}", "Correct the name of the environment"),
    _Form(r"nox > Sessions not found: (.+)",
        (3,), "nox has no session {name}", "Correct the name of the session"),
    _Form(r"nox > Program (\S+) not found\.",
        (1,), "nox found no program {name}", _INSTALL),
    _Form(r"nox > Failed to (?:find|load) [Nn]oxfile\b.*",
        (2,), "nox found no noxfile.py", _FOLDER),
    _Form(r"Error: Unrecognized task '(.+)'",
        (1,), "poe has no task {name}", "Correct the name of the task", after=r".*", tool="poe"),
    _Form(r"Error: No poe configuration found from location .*",
        (1,), "poe found no tasks", _FOLDER, after=r".*", tool="poe"),
    _Form(r"No idea what '(.+)' is!",
        (1,), "invoke has no task {name}", "Correct the name of the task"),
    _Form(r"Can't find any collection named '.+'!",
        (1,), "invoke found no tasks.py", _FOLDER),
    _Form(r"\[PdmUsageError\]: Command '(.+)' is not found in your PATH\.",
        (1,), "pdm found no script or program {name}", _INSTALL),
    _Form(r"\[ProjectError\]: The pyproject\.toml has not been initialized yet\..*",
        (1,), "pdm found no project", _FOLDER),
    _Form(r"Unknown environment: (.+)",
        (1,), "hatch has no environment {name}", "Correct the name of the environment",
        tool="hatch"),
    _Form(r"No hook with id `(.+)` in stage .*",
        (1,), "pre-commit has no hook {name}", "Correct the name of the hook"),
    _Form(r"=====> (.+) is not a file",
        (1,), "pre-commit found no {name}", _FOLDER, after=r"Check the log at .*"),
    # JavaScript
    _Form(rf'{_NPM} [Mm]issing script: "?([^"]+)"?',
        (1,), "package.json has no script {name}", _SCRIPT, after=_NPM_MORE),
    _Form(rf"{_NPM} JSON\.parse Note: package\.json must be actual JSON, .*",
        (1,), "package.json is not valid JSON", "Correct package.json", after=_NPM_MORE),
    _Form(r"Error: no test specified",
        (1,), "package.json has only the test script of `npm init`", "Write that script",
        after=_NPM_MORE),
    _Form(rf"{_NPM} .*ENOENT: no such file or directory, open '(?:.*/)?package\.json'.*",
        (1, 254), "npm found no package.json", _FOLDER, after=_NPM_MORE),
    _Form(rf"{_NPM} The `npm ci` command can only install with an existing package-lock\.json .*",
        (1,), "npm found no package-lock.json", "Run `npm install` first", after=_NPM_MORE),
    _Form(rf"{_NPM} (?:npx canceled due to missing packages|could not determine executable).*",
        (1,), "npx found no such program in node_modules", _PACKAGES,
        after=_NPM_MORE),
    _Form(rf"{_NPM} 404\s+(?:The requested resource )?'(.+?)(?:@[^'@]*)?' "
        r"(?:could not be found|is not in )\b.*",
        (1,), "npm found no package {name}", "Correct the name of the package",
        after=_NPM_MORE),
    _Form(r'Unknown command: "(.+)"',
        (1,), "npm has no command {name}", "Correct the name of the command",
        after=r"Did you mean .*|\s+npm .*|To see a list of supported npm .*", tool="npm"),
    _Form(r"\s*\[?ERR_PNPM_NO_SCRIPT\w*\]?\s+Missing script: (\S+)",
        (1,), "package.json has no script {name}", _SCRIPT, after=r"Command .* not found\..*"),
    _Form(r'\s*\[?ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL\]?\s+Command "(.+)" not found.*',
        (1, 254), "pnpm found no script or program {name}", _SCRIPT, after=r"Did you mean .*"),
    _Form(r"\s*\[?ERR_PNPM_NO_IMPORTER_MANIFEST_FOUND\]?\s+No package\.json .*",
        (1,), "pnpm found no package.json", _FOLDER),
    _Form(r'error Command "(.+)" not found\.(?: Did you mean .*)?',
        (1,), "yarn found no script or program {name}", _SCRIPT,
        after=r"info Visit \S+ for documentation about .*"),
    _Form(r"error Couldn't find a package\.json file in .*",
        (1,), "yarn found no package.json", _FOLDER,
        after=r"info Visit \S+ for documentation about .*"),
    _Form(r'Usage Error: Couldn\'t find a script named "(.+?)".*',
        (1,), "package.json has no script {name}", _SCRIPT, after=r"\$ yarn .*"),
    _Form(r"Usage Error: No project found in .*",
        (1,), "yarn found no package.json", _FOLDER, after=r"\$ yarn .*"),
    _Form(r'error: (?:Script|Module) not found "(.+)"',
        (1,), "bun found no script {name}", _SCRIPT),
    _Form(r"(?:error: )?Task not found: (.+)",
        (1,), "deno has no task {name}", "Correct the name of the task",
        after=r"Available tasks.*|- .*|\s{2,}.*"),
    _Form(r"error: No test modules found",
        (1,), "deno found no tests", _NO_TESTS),
    _Form(r"Error: Cannot find module '(/.+)'",
        (1,), "the file {name} does not exist", _FILE, after=_NODE_MORE),
    _Form(r"Error: Cannot find module '((?:@[\w.-]+/)?\w[\w.-]*)(?:/[^']*)?'",
        (1,), "node found no package {name}", _PACKAGES, after=_PACKAGE_MORE),
    _Form(r"Error \[ERR_MODULE_NOT_FOUND\]: Cannot find package '([^']+)' imported from .*",
        (1,), "node found no package {name}", _PACKAGES, after=_PACKAGE_MORE),
    _Form(r"Could not find '(.+)'",
        (1,), "node found no file {name}", _FILE, tool="node"),
    _Form(r"Error: No tests found\.?",
        (1,), "playwright found no tests", _NO_TESTS, after=r"Make sure .*|You may need .*"),
    _Form(r"Error: No test files found.*",
        (1,), "mocha found no tests", _NO_TESTS),
    _Form(r"No tests found, exiting with code 1",
        (1,), "jest found no tests", _NO_TESTS,
        after=r"Run with `--passWithNoTests`.*|No files found in .*|Make sure Jest.*|In /.*|\s+.*"
        r"|testMatch: .*|testPathIgnorePatterns: .*|testRegex: .*|Pattern: .* - 0 matches"),
    _Form(r"Error: Could not find a config file based on provided values:",
        (1,), "jest found no config and no package.json", _FOLDER,
        after=r"path: .*|cwd: .*|Config paths must .*|file, or a path .*|traverse directory .*"
        r"|    at .*", tool="jest"),
    _Form(r"ESLint couldn't find (?:an eslint\.config\.|a configuration file).*",
        (2,), "eslint found no config", "Add its config, or run the check in its folder",
        after=r".*", tool="eslint"),
    _Form(r"error TS(?:5057|5058|5081|18003): (.+)",
        (1, 2), "tsc: {name}", "Correct the path, or add tsconfig.json", tool="tsc"),
    _Form(r"\S*node: bad option: (.+)",
        (9,), "node has no option {name}", _ARGUMENTS),
    _Form(r"\s*No test files found, exiting with code 1",
        (1,), "vitest found no tests", _NO_TESTS, after=r"(?:filter|include|exclude): .*"),
    # Rust, Go, Swift
    _Form(r"error: could not find `Cargo\.toml` in .*",
        (101,), "cargo found no Cargo.toml", _FOLDER),
    _Form(r"error: rustup could not choose a version of (\S+) to run\b.*",
        (1,), "rustup has no toolchain for {name}", "Run `rustup default stable`",
        after=r"help: .*|Stack backtrace:|\s+\d+: .*|\s+at .*"),
    _Form(r"error: toolchain '(.+)' is not installed",
        (1,), "rustup has no toolchain {name}", "Install it with rustup",
        after=r"help: .*|Stack backtrace:|\s+\d+: .*|\s+at .*"),
    _Form(r"error: no such (?:sub)?command: `(.+)`",
        (101,), "cargo has no command {name}", "Correct the name of the command, or install it",
        after=r"help: .*|\s+Did you mean .*|\s*View all installed commands .*"),
    _Form(r"error: no test target named `(.+)`.*",
        (101,), "cargo has no test target {name}", "Correct the name of the target",
        after=r"help: .*|\s+Did you mean .*"),
    _Form(r"error: package ID specification `(.+)` did not match any packages",
        (101,), "cargo has no package {name}", "Correct the name of the package",
        after=r"help: .*|\s+Did you mean .*"),
    _Form(r"error: manifest path `(.+)` does not exist",
        (1, 101), "the file {name} does not exist", _FILE),
    _Form(r"error: '(.+)' is not installed for the toolchain .*",
        (1,), "the toolchain has no {name}", "Install it with rustup",
        after=r"(?:help: )?[Tt]o install, run .*"),
    _Form(r"go: (?:cannot find main module|go\.mod file not found)\b.*",
        (1,), "go found no go.mod", _FOLDER, after=r"\s+.*"),
    _Form(r"go (\S+): unknown command",
        (2,), "go has no command {name}", "Correct the name of the command",
        after=r"Run 'go help' for usage\."),
    _Form(r"no packages to test",
        (1,), "go found no packages to test", _NO_TESTS),
    _Form(r"stat (.+): directory not found",
        (1,), "the folder {name} does not exist", _FOLDER, after=r"FAIL\b.*"),
    _Form(r"(?:package .+: )?no Go files in .+",
        (1,), "go found no files", _FOLDER),
    _Form(r"error: Could not find Package\.swift in .*",
        (1,), "swift found no Package.swift", _FOLDER),
    # task runners
    _Form(r"error: [Jj]ustfile does not contain recipe [`'](.+?)[`'].*",
        (1,), "the justfile has no recipe {name}", "Correct the name of the recipe",
        after=r"Did you mean .*"),
    _Form(r"error: [Nn]o justfile found.*",
        (1,), "just found no justfile", _FOLDER),
    _Form(r'task: Task "(.+)" (?:does not exist|not found).*',
        _ANY, "the Taskfile has no task {name}", "Correct the name of the task"),
    _Form(r"task: No Taskfile found .*",
        _ANY, "task found no Taskfile", _FOLDER),
    _Form(r"No Rakefile found \(looking for: .*\)",
        (1,), "rake found no Rakefile", _FOLDER, after=r"/.*|\(See full trace .*\)"),
    _Form(r"Don't know how to build task '(.+?)'.*",
        (1,), "rake has no task {name}", "Correct the name of the task",
        # `Tasks: TOP => x` names a task whose prerequisite is missing: that is the agent's work.
        after=r"Did you mean\? .*|\s+\S+|/.*|\(See full trace .*\)"),
    # Java, .NET
    _Form(r"Error: Unable to access jarfile (.+)",
        (1,), "the file {name} does not exist", _FILE),
    _Form(r"Error: Could not find or load main class (\S+)",
        (1,), "java found no class {name}", "Correct the name or the class path, or compile first",
        after=r"Caused by: java\.lang\.ClassNotFoundException: .*", in_command=True),
    _Form(r"error: file not found: (.+)",
        (2,), "the file {name} does not exist", _FILE,
        after=r"Usage: javac .*|use (?:--help|-help) .*", tool="javac"),
    _Form(r"\[ERROR\] The goal you specified requires a project to execute but there is no POM .*",
        (1,), "mvn found no pom.xml", _FOLDER, after=r"\[ERROR\].*"),
    _Form(r"\[ERROR\] Could not find the selected project in the reactor: (\S+).*",
        (1,), "mvn has no project {name}", "Correct the name of the project", after=r"\[ERROR\].*"),
    _Form(r"\[ERROR\] The build could not read \d+ projects?\b.*",
        (1,), "mvn can't read pom.xml", "Correct pom.xml", after=r"\[ERROR\].*"),
    _Form(r'\[ERROR\] Unknown lifecycle phase "(.+?)".*',
        (1,), "mvn has no phase {name}", "Correct the name of the phase", after=r"\[ERROR\].*"),
    _Form(r"(?:Task|Cannot locate tasks that match) '(.+?)' (?:not found in|as task) .*",
        (1,), "gradle has no task {name}", "Correct the name of the task", after=_GRADLE_MORE),
    _Form(r"Directory '.+' does not contain a Gradle build\.",
        (1,), "gradle found no build", _FOLDER, after=rf"{_GRADLE_MORE}|A Gradle build .*"),
    _Form(r"MSBUILD : error MSB10(?:03|09|11): .*",
        (1,), "dotnet found no project or solution", _FOLDER, after=r"Switch: .*"),
    _Form(r"Could not execute because the specified command or file was not found\.",
        (1,), "dotnet has no such command", "Correct the name of the command",
        after=r"Possible reasons .*|\s+\* .*"),
    # Ruby, Elixir, PHP, Perl
    _Form(r"Could not locate Gemfile or \.bundle/ directory",
        (10,), "bundler found no Gemfile", _FOLDER),
    _Form(r"Run `bundle install` to install missing gems\.",
        (7,), "gems of the Gemfile are missing", "Run `bundle install`"),
    _Form(r"\S*ruby\S*: No such file or directory -- (.+) \(LoadError\)",
        (1,), "the file {name} does not exist", _FILE),
    _Form(r'\*\* \(Mix\) The task "(.+?)" could not be found.*',
        (1,), "mix has no task {name}", "Correct the name of the task"),
    _Form(r"\*\* \(Mix\) Could not find a Mix\.Project\b.*",
        (1,), "mix found no mix.exs", _FOLDER),
    _Form(r'\s*Command "(.+)" is not defined\.',
        (1,), "there is no command {name}", "Correct the name of the command",
        after=r"\s*Did you mean .*|\s+\S+"),
    _Form(r"Composer could not find a composer\.json file in .*",
        (1,), "composer found no composer.json", _FOLDER, after=r"To initialize a project, .*"),
    _Form(r"Could not open input file: (.+)",
        (1,), "the file {name} does not exist", _FILE),
    _Form(r'(?:Test file "(.+)" not found|Cannot open file "(.+)"\.)',
        (1, 2), "phpunit found no such file", _FILE, tool="phpunit"),
    _Form(r"No tests executed!",
        (1, 2), "phpunit found no tests", _NO_TESTS),
    _Form(r"No tests named and 't' directory not found at .*|Result: NOTESTS",
        (2,), "prove found no tests", _NO_TESTS),
    _Form(r'Can\'t open perl script "(.+)": No such file or directory',
        (2,), "the file {name} does not exist", _FILE),
    # containers
    _Form(r"(?:.*: )?Cannot connect to the Docker daemon at .*",
        (1, 125), "docker is not running", "Start docker",
        after=_DOCKER_MORE),
    _Form(r"docker: Error response from daemon: (.+)",
        (125,), "docker can't start the container: {name}", "Correct the image or its options",
        after=_DOCKER_MORE),
    _Form(r"docker: unknown command: docker (.+)",
        (1,), "docker has no command {name}", "Correct the name of the command, or install it",
        after=_DOCKER_MORE),
    _Form(r"no configuration file provided: not found",
        _ANY, "docker compose found no compose.yaml", _FOLDER, tool="docker"),
    _Form(r"no such service: (.+)",
        _ANY, "compose.yaml has no service {name}", "Correct the name of the service",
        tool="docker"),
)
# fmt: on

_BY_SHELL = {
    126: Obstacle(
        "a program is not executable, or is a folder", "Make it executable, or correct the command"
    ),
    127: Obstacle("a program or file is missing", _PROGRAM),
}
_BY_PYTEST = {
    4: Obstacle("pytest rejects its arguments or conftest.py", "Correct the command of the check"),
    5: Obstacle("pytest found no tests", _NO_TESTS),
}
_PYTEST = re.compile(r"(?:^|[\s/'\"(])(?:pytest|py\.test)(?=$|[\s'\")])")
# The end of a command that gives another exit code to every failure.
_OWN_CODE = re.compile(r"(?:\|\|[\s{]*|\bthen\s+)(?:exit\s+[1-9]\d*|false)[\s;)}'\"]*(?:fi\s*)?$")
_BETWEEN_WORDS = re.compile(r"[\s;|&<>()]+")
_OPERATOR = re.compile(r"&&|[;\n|]|(?<![<>&])&(?![>&])")


def cannot_run(exit_code: int | None, command: str, output: str) -> Obstacle | None:
    """Return why a check that ended like this can't run; None if it ran or that is unknown.

    `output` is the end of what the check printed. A message counts only at the very end, together
    with its exit code: the same words in the output of a failed test do not. A command that itself
    names an exit code (`make tst || exit 1`) hides that of the tool.
    """
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    code = exit_code
    while code:
        if code in _BY_SHELL:
            return _BY_SHELL[code]
        if (found := _matching(code, command, lines)) is not None:
            return found
        trailer = _trailer(lines[-1]) if lines else None
        if trailer is None:
            break
        lines.pop()
        code = int(trailer["code"]) if trailer.groupdict().get("code") else code
    last = _OPERATOR.split(command.rstrip("; \n"))[-1]
    if exit_code in _BY_PYTEST and _PYTEST.search(last):
        return _BY_PYTEST[exit_code]
    return None


@cache
def _patterns() -> tuple[tuple[_Form, re.Pattern[str], re.Pattern[str]], ...]:
    """Return the compiled forms. A run whose checks pass needs none of them."""
    return tuple((form, re.compile(form.line), re.compile(form.after)) for form in _FORMS)


def _trailer(line: str) -> re.Match[str] | None:
    return next(filter(None, (re.fullmatch(pattern, line) for pattern in _TRAILERS)), None)


def _matching(code: int, command: str, lines: Sequence[str]) -> Obstacle | None:
    hides_code = _OWN_CODE.search(command) is not None
    for form, line, after in _patterns():
        if not (hides_code or code in form.codes) or form.tool not in command:
            continue
        if (found := _last_match(line, after, lines)) is not None:
            name = found[1] if found.groups() else ""
            if not form.in_command or _is_named(name, command):
                shown = cut(one_line(name), _LONGEST_NAME)
                return Obstacle(form.reason.format(name=shown), form.fix)
    return None


def _is_named(name: str, command: str) -> bool:
    """Return whether the name, or something in the module of this name, is in the command."""
    words = (word.strip("\"'") for word in _BETWEEN_WORDS.split(command))
    return any(word == name or word.startswith(f"{name}.") for word in words)


def _last_match(
    line: re.Pattern[str], after: re.Pattern[str], lines: Sequence[str]
) -> re.Match[str] | None:
    """Return the match in the last line that is not one of those that may follow the message."""
    for text in reversed(lines):
        if found := line.fullmatch(text):
            return found
        if not after.fullmatch(text):
            return None
    return None
