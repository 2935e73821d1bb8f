"""Which failed checks can't run at all, from real outputs of the tools."""

import pytest

from rooda.loop.stages.cannot_run import cannot_run

NPM = (
    'npm error Missing script: "tst"\nnpm error\nnpm error Did you mean this?\n'
    "npm error   npm test # Test a package\nnpm error\n"
    "npm error To see a list of scripts, run:\nnpm error   npm run\n"
    "npm error A complete log of this run can be found in: /h/.npm/_logs/2026-11-18T16_17_56.log\n"
)
NO_PACKAGE = (
    "npm error code ENOENT\nnpm error syscall open\nnpm error path /w/package.json\n"
    "npm error errno -2\nnpm error enoent Could not read package.json: Error: ENOENT: no such file "
    "or directory, open '/w/package.json'\n"
    "npm error enoent This is related to npm not being able to find a file.\nnpm error enoent\n"
    "npm error A complete log of this run can be found in: /h/.npm/_logs/2026-11-18T16_17_56.log\n"
)
NODE = (
    "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\n"
    "Error: Cannot find module '/w/check.js'\n"
    "    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)\n"
    "    at Function.executeUserEntryPoint [as runMain] (node:internal/modules/run_main:164:12)\n"
    "    at node:internal/main/run_main_module:28:49 {\n"
    "  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.20.2\n"
)
CARGO = (
    "error: no such command: `tst`\n\nhelp: a command with a similar name exists: `test`\n\n"
    "help: view all installed commands with `cargo --list`\n"
    "help: find a package to install `tst` with `cargo search cargo-tst`\n"
)
GRADLE = (
    "\nFAILURE: Build failed with an exception.\n\n* What went wrong:\n"
    "Task 'tst' not found in root project 'x'.\n\n* Try:\n"
    "> Run gradlew tasks to get a list of available tasks.\n"
    "> Run with --scan to get full insights.\n\nBUILD FAILED in 410ms\n"
)
MAVEN = (
    "[ERROR] The goal you specified requires a project to execute but there is no POM in this "
    "directory (/w). Please verify you invoked Maven from the correct directory. -> [Help 1]\n"
    "[ERROR] \n[ERROR] Re-run Maven using the -X switch to enable full debug logging.\n"
    "[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/MissingProjectException\n"
)
CONFTEST = (
    "ImportError while loading conftest '/w/conftest.py'.\nconftest.py:1: in <module>\n"
    "    import nosuch\nE   ModuleNotFoundError: No module named 'nosuch'\n"
)
RAKE = "rake aborted!\nDon't know how to build task 'tst' (See the list of available tasks)\n"
TRACE = "(See full trace by running task with --trace)\n"
NO_TARGET = "make: *** No rule to make target 'tst'.  Stop.\n"
MAKE_USAGE = (
    "Usage: make [options] [target] ...\nOptions:\n"
    "  -B, --always-make           Unconditionally make all targets.\n"
    "  -C DIRECTORY, --directory=DIRECTORY\n"
    "                              Change to DIRECTORY before doing anything.\n\n"
    "This program built for x86_64-pc-linux-gnu\nReport bugs to <bug-make@gnu.org>\n"
)
TIME = (
    "Command exited with non-zero status 2\n"
    "0.00user 0.00system 0:00.00elapsed 28%CPU (0avgtext+0avgdata 2300maxresident)k\n"
    "0inputs+0outputs (0major+162minor)pagefaults 0swaps\n"
)
TOX = (
    "py: exit {0} (0.15 seconds) /w> pytest pid=123\n"
    "  py: FAIL code {0} (0.20=setup[0.05]+cmd[0.15] seconds)\n"
    "  evaluation failed :( (0.24 seconds)\n"
)
UNITTEST = (
    "ERROR: nosuch (unittest.loader._FailedTest.nosuch)\n"
    "ImportError: Failed to import test module: nosuch\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/unittest/loader.py", line 162, in loadTestsFromName\n'
    "    module = __import__(module_name)\nModuleNotFoundError: No module named 'nosuch'\n\n\n"
    "----------\nRan 1 test in 0.000s\n\nFAILED (errors=1)\n"
)
NO_PROGRAM = (
    "npm error code E404\nnpm error 404 Not Found - GET https://packages.example.org/nosuch\n"
    "npm error 404\nnpm error 404  The requested resource 'nosuch@*' could not be found or you do "
    "not have permission to access it.\nnpm error 404\n"
    "npm error 404 Note that you can also install from a\n"
    "npm error 404 tarball, folder, http url, or git url.\n"
)
NO_NODE_PACKAGE = (
    "Error: Cannot find module 'chai'\nRequire stack:\n- /w/test.js\n"
    "    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)\n"
    "    at Object.<anonymous> (/w/test.js:1:1) {\n"
    "  code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/w/test.js' ]\n}\n\nNode.js v20.20.2\n"
)
NO_ES_PACKAGE = (
    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chai' imported from /w/t.mjs\n"
    "    at packageResolve (node:internal/modules/esm/resolve:873:9) {\n"
    "  code: 'ERR_MODULE_NOT_FOUND'\n}\n\nNode.js v20.20.2\n"
)
NO_LOCK = (
    "npm error code EUSAGE\nnpm error\n"
    "npm error The `npm ci` command can only install with an existing package-lock.json or\n"
    "npm error npm-shrinkwrap.json with lockfileVersion >= 1. Run an install with npm@5 or\n"
    "npm error later to generate a package-lock.json file, then try again.\n"
    'npm error\nnpm error Run "npm help ci" for more info\n'
)
NO_CONFIG = (
    "Error: Could not find a config file based on provided values:\n"
    'path: "/w"\ncwd: "/w"\nConfig paths must be specified by either a direct path to a config\n'
    "file, or a path to a directory. If directory is given, Jest will try to\n"
    'traverse directory tree up, until it finds one of those files in exact order: "jest.config.js"'
    "\n    at resolveConfigPathByTraversing (/w/node_modules/jest-config/build/index.js:2596:11)\n"
)
NO_ESLINT_CONFIG = (
    "\nOops! Something went wrong! :(\n\nESLint: 10.15.0\n\n"
    "ESLint couldn't find an eslint.config.* file.\n\n"
    "From ESLint v9.0.0, the default configuration file is now eslint.config.*.\n"
)
RUSTUP = (
    "error: rustup could not choose a version of cargo to run, because one wasn't specified "
    "explicitly, and no default is configured.\n"
    "help: run 'rustup default stable' to download the latest stable release of Rust.\n\n"
    "Stack backtrace:\n   0: main\n             at ./csu/../libc-start.c:360:3\n   1: <unknown>\n"
)
IMPORT = (
    'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
    "ModuleNotFoundError: No module named 'nosuch'\n"
)
PYTHON = "/usr/bin/python3"
NO_PYTEST = f"{PYTHON}: No module named pytest\n"


@pytest.mark.parametrize(
    "code,command,output,reason",
    [
        (127, "x", "sh: 1: x: not found\n", "a program or file is missing"),
        (126, "./x", "sh: 1: ./x: Permission denied\n", "a program is not executable"),
        (127, "npm test", "\n> x@1.0.0 test\n> jest\n\nsh: 1: jest: not found\n", "is missing"),
        # make
        (2, "make tst", "make: *** No rule to make target 'tst'.  Stop.\n", "target tst"),
        (2, "make tst", "make: *** No rule to make target `tst'.  Stop.\n", "target tst"),
        (2, "make -k tst", "make: *** No rule to make target 'tst'.\n", "target tst"),
        (2, "gmake tst", "gmake: *** No rule to make target 'tst'.  Stop.\n", "target tst"),
        (
            2,
            "make -f nope.mk t",
            (
                "make: nope.mk: No such file or directory\n"
                "make: *** No rule to make target 'nope.mk'.  Stop.\n"
            ),
            "target nope.mk",
        ),
        (
            2,
            "make",
            "make: *** No targets specified and no makefile found.  Stop.\n",
            "make found no Makefile",
        ),
        (1, "make tst || exit 1", NO_TARGET, "target tst"),
        (3, "if ! make tst; then exit 3; fi", NO_TARGET, "target tst"),
        (1, "make tst || false", NO_TARGET, "target tst"),
        (1, "pytst || exit 1", "/usr/bin/sh: 1: pytst: not found\n", "program pytst"),
        (1, "pytst || exit 1", "bash: line 1: pytst: command not found\n", "program pytst"),
        (2, "make --no", f"make: unrecognized option '--no'\n{MAKE_USAGE}", "option '--no'"),
        (2, "make -Q", f"make: invalid option -- 'Q'\n{MAKE_USAGE}", "option -- 'Q'"),
        (2, "make -C x t", "make: *** x: No such file or directory.  Stop.\n", "folder x does not"),
        (
            2,
            "make tst",
            "make: don't know how to make tst. Stop\n\nmake: stopped in /w\n",
            "target tst",
        ),
        (
            2,
            "make use",
            (
                "make tst\nmake[1]: Entering directory '/w'\n"
                "make[1]: *** No rule to make target 'tst'.  Stop.\n"
                "make[1]: Leaving directory '/w'\nmake: *** [Makefile:6: use] Error 2\n"
            ),
            "target tst",
        ),
        (
            2,
            "make test",
            "pytst\nmake: pytst: No such file or directory\nmake: *** [Makefile:2: test] Error 127",
            "a program or file is missing",
        ),
        (2, "make t", f"{NO_PYTEST}make: *** [Makefile:4: t] Error 1\n", "no module pytest"),
        (2, "make t", "\nno tests ran in 0.81s\nmake: *** [Makefile:6: t] Error 5\n", "no tests"),
        # shells
        (2, "sh check.sh", "sh: 0: cannot open check.sh: No such file\n", "file check.sh does not"),
        (2, ". ./v && x", "sh: 1: .: cannot open ./v: No such file\n", "file ./v does not"),
        (2, "cd nosuch && x", "sh: 1: cd: can't cd to nosuch\n", "folder nosuch does not"),
        (
            1,
            "cd nosuch && x",
            "sh: line 1: cd: nosuch: No such file or directory\n",
            "folder nosuch does not",
        ),
        (
            1,
            "bash -c 'source v/bin/activate; pytest'",
            "bash: line 1: v/bin/activate: No such file or directory\n",
            "file v/bin/activate does not",
        ),
        (2, "make )", 'sh: 1: Syntax error: ")" unexpected\n', "the shell can't read"),
        (
            2,
            "make )",
            "sh: -c: line 1: syntax error near unexpected token `)'\nsh: -c: line 1: `make )'\n",
            "the shell can't read",
        ),
        (2, "set -o pipefail; x", "sh: 1: set: Illegal option -o pipefail\n", "option -o pipefail"),
        # Python
        (1, "python3 -c 'import nosuch'", IMPORT, "no module nosuch"),
        (
            2,
            "mypy --nosuch",
            "usage: mypy [-h]\n\nmypy: error: unrecognized arguments: --nosuch\n",
            "unrecognized arguments: --nosuch",
        ),
        (
            2,
            "python3 -m unittest --nosuch",
            "python3 -m unittest: error: unrecognized arguments: --nosuch\n",
            "unrecognized arguments: --nosuch",
        ),
        (
            2,
            "mypy nosuch",
            (
                "nosuch: error: Cannot read file: No such file or directory\n"
                "Found 1 error in 1 file (errors prevented further checking)\n"
            ),
            "mypy found no such file",
        ),
        (
            2,
            "ruff chek .",
            (
                "error: unrecognized subcommand 'chek'\n\n  tip: a similar subcommand exists: "
                "'check'\n\nUsage: ruff [OPTIONS] <COMMAND>\n\n"
                "For more information, try '--help'.\n"
            ),
            "ruff rejects its arguments",
        ),
        (1, "coverage run no.py", "No file to run: '/w/no.py'\n", "file /w/no.py does not"),
        (1, "python3 -m pytest", NO_PYTEST, "no module pytest"),
        (1, "coverage run -m pytest", "No module named 'pytest'\n", "no module pytest"),
        (1, "python -m pytest", "/w/a b/bin/python3.11: No module named pytest\n", "module pytest"),
        (
            1,
            "python3 -m no.such",
            (
                f"{PYTHON}: Error while finding module specification for 'no.such' "
                "(ModuleNotFoundError: No module named 'no')\n"
            ),
            "no module no.such",
        ),
        (
            1,
            "python3 -m pkg",
            (
                f"{PYTHON}: No module named pkg.__main__; 'pkg' is a package and cannot be "
                "directly executed\n"
            ),
            "no module pkg.__main__",
        ),
        (
            2,
            "python3 check.py",
            f"{PYTHON}: can't open file '/w/check.py': [Errno 2] No such file or directory\n",
            "file /w/check.py does not",
        ),
        (1, "python3 pkg", f"{PYTHON}: can't find '__main__' module in '/w/pkg'\n", "__main__.py"),
        (5, "pytest", "collected 0 items\n\n===== no tests ran in 0.53s =====\n", "no tests"),
        (5, "cd x && .venv/bin/pytest -q -q 2>&1", "", "pytest found no tests"),
        (5, "uv run pytest -k no", "3 deselected in 0.01s\n", "pytest found no tests"),
        (5, "python3 -m unittest", "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", "unittest found no"),
        (4, "pytest x", "no tests ran in 0.5s\nERROR: file or directory not found: x\n", "no x"),
        (
            4,
            "pytest --nosuch",
            (
                "ERROR: usage: pytest [options] [file_or_dir] [file_or_dir] [...]\n"
                "pytest: error: unrecognized arguments: --nosuch\n  inifile: None\n  rootdir: /w\n"
            ),
            "unrecognized arguments: --nosuch",
        ),
        (4, "python -m pytest", CONFTEST, "pytest can't load /w/conftest.py"),
        (2, "make t", f"{CONFTEST}make: *** [Makefile:6: t] Error 4\n", "load /w/conftest.py"),
        (4, "pytest -p no", "Error importing plugin\n", "pytest rejects its arguments or conftest"),
        (1, "python -m unittest nosuch", UNITTEST, "no module nosuch"),
        (1, "python -m unittest -v nosuch.test_a", UNITTEST, "no module nosuch"),
        (
            1,
            "python3 -m unittest discover -s nosuch",
            (
                "    raise ImportError('Start directory is not importable: %r' % start_dir)\n"
                "ImportError: Start directory is not importable: 'nosuch'\n"
            ),
            "unittest found no folder nosuch",
        ),
        (5, "tox", f"no tests ran in 0.00s\n{TOX.format(5)}", "pytest found no tests"),
        (4, "tox -e py", f"{CONFTEST}{TOX.format(4)}", "load /w/conftest.py"),
        (
            1,
            "tox",
            (
                "py: failed with pytst is not allowed, use allowlist_externals to allow it\n"
                "  py: FAIL code 1 (0.02 seconds)\n  evaluation failed :( (0.10 seconds)\n"
            ),
            "tox may not run pytst",
        ),
        (
            1,
            "nox -s tests",
            (
                "no tests ran in 0.01s\nnox > Command pytest failed with exit code 5\n"
                "nox > Session tests failed.\n"
            ),
            "pytest found no tests",
        ),
        (
            1,
            "nox",
            "nox > Program pytst not found.\nnox > Session tests failed.\n",
            "nox found no program pytst",
        ),
        (
            1,
            "pipenv run pytst",
            "Error: the command pytst could not be found within PATH or Pipfile's [scripts].\n",
            "pipenv found no program pytst",
        ),
        (
            2,
            "uv run pytst",
            "error: Failed to spawn: `pytst`\n  Caused by: No such file or directory (os error 2)",
            "uv found no program pytst",
        ),
        (3, "nox -s tst", "nox > Sessions not found: tst\n", "session tst"),
        # JavaScript
        (1, "npm run tst", NPM, "no script tst"),
        (
            1,
            "npm run tst",
            (
                "npm ERR! missing script: tst\n\n"
                "npm ERR! A complete log of this run can be found in:\n"
                "npm ERR!     /h/.npm/_logs/x.log\n"
            ),
            "no script tst",
        ),
        (
            1,
            "npm test",
            (
                '\n> x@1.0.0 test\n> echo "Error: no test specified" && exit 1\n\n'
                "Error: no test specified\n"
            ),
            "only the test script of `npm init`",
        ),
        (254, "npm test", NO_PACKAGE, "npm found no package.json"),
        (
            1,
            "npx --no-install jest",
            ('npm error npx canceled due to missing packages and no YES option: ["jest@30.5.2"]\n'),
            "npx found no such program",
        ),
        (1, "pnpm run tst", " ERR_PNPM_NO_SCRIPT  Missing script: tst\n", "no script tst"),
        (
            1,
            "yarn tst",
            (
                'yarn run v1.22.22\nerror Command "tst" not found.\n'
                "info Visit https://example.org/en/docs/cli/run for documentation about this "
                "command."
            ),
            "yarn found no script or program tst",
        ),
        (
            1,
            "yarn run tst",
            'Usage Error: Couldn\'t find a script named "tst".\n\n$ yarn run [--inspect] <name>',
            "no script tst",
        ),
        (1, "bun run tst", 'error: Script not found "tst"\n', "no script tst"),
        (1, "node check.js", NODE, "file /w/check.js does not"),
        (1, "npm test", f"\n> x@1.0.0 test\n> node\n\n{NODE}", "file /w/check.js does not"),
        (
            1,
            "npx jest",
            (
                "No tests found, exiting with code 1\n"
                "Run with `--passWithNoTests` to exit with code 0\nIn /w\n  4 files checked.\n"
                "  testMatch: **/*.test.js - 0 matches\n"
                "Pattern:  - 0 matches\n"
            ),
            "jest found no tests",
        ),
        (1, "npm ci && npm test", NO_LOCK, "no package-lock.json"),
        (1, "npx jest", NO_CONFIG, "jest found no config"),
        (2, "npx eslint .", NO_ESLINT_CONFIG, "eslint found no config"),
        (
            1,
            "npx tsc -p nosuch",
            "error TS5058: The specified path does not exist: '/w/nosuch'.\n",
            "path does not exist: '/w/nosuch'",
        ),
        (9, "node --nosuch x.js", "node: bad option: --nosuch\n", "no option --nosuch"),
        (1, "npx nosuch", NO_PROGRAM, "npm found no package nosuch"),
        (1, "npm tst", 'Unknown command: "tst"\n\nDid you mean this?\n  npm test\n', "command tst"),
        (1, "node test.js", NO_NODE_PACKAGE, "node found no package chai"),
        (1, "npm test", f"> x@1.0.0 test\n> node t.mjs\n\n{NO_ES_PACKAGE}", "no package chai"),
        (1, "node --test nosuch.js", "Could not find '/w/nosuch.js'\n", "no file /w/nosuch.js"),
        (
            1,
            "npx playwright test nosuch",
            "Error: No tests found.\nMake sure that arguments are regular expressions.\n",
            "playwright found no tests",
        ),
        # others
        (2, "time make tst", f"{NO_TARGET}{TIME}", "target tst"),
        (
            1,
            "ninja -C no",
            "ninja: fatal: chdir to 'no' - No such file or directory\n",
            "folder no",
        ),
        (1, "cmake --build build", "Error: /w/build is not a directory\n", "folder /w/build"),
        (
            1,
            "go test ./no",
            "stat /w/no: directory not found\nFAIL\t./no [setup failed]\nFAIL\n",
            "folder /w/no",
        ),
        (2, "prove", "No tests named and 't' directory not found at Prove.pm line 522.\n", "prove"),
        (1, "vendor/bin/phpunit x", 'PHPUnit 11.0\n\nTest file "x" not found\n', "no such file"),
        (
            1,
            "docker compose run t",
            "docker: unknown command: docker compose\n\nRun 'docker --help' for more information\n",
            "no command compose",
        ),
        (1, "docker compose run t", "no such service: t\n", "no service t"),
        (
            101,
            "cargo test",
            "error: could not find `Cargo.toml` in `/w` or any parent directory\n",
            "no Cargo.toml",
        ),
        (101, "cargo tst", CARGO, "no command tst"),
        (1, "cargo test", RUSTUP, "no toolchain for cargo"),
        (
            101,
            "cargo test --test n",
            "error: no test target named `n` in default-run packages\n",
            "no test target n",
        ),
        (
            1,
            "go test ./...",
            (
                "go: cannot find main module, but found .git/config in /w\n"
                "\tto create a module there, run:\n\tgo mod init\n"
            ),
            "no go.mod",
        ),
        (
            1,
            "just tst",
            "error: Justfile does not contain recipe `tst`\nDid you mean `test`?\n",
            "no recipe tst",
        ),
        (200, "task tst", 'task: Task "tst" does not exist\n', "no task tst"),
        (1, "gradle tst", GRADLE, "gradle has no task tst"),
        (1, "mvn test", MAVEN, "no pom.xml"),
        (
            1,
            "dotnet test",
            (
                "MSBUILD : error MSB1003: Specify a project or solution file. The "
                "current working directory does not contain a project or solution file.\n"
            ),
            "no project or solution",
        ),
        (10, "bundle exec rspec", "Could not locate Gemfile or .bundle/ directory\n", "no Gemfile"),
        (1, "rake tst", f"{RAKE}\n{TRACE}", "no task tst"),
        (
            1,
            "mix tst",
            '** (Mix) The task "tst" could not be found. Did you mean "test"?\n',
            "no task tst",
        ),
        (1, "composer tst", '\n  Command "tst" is not defined.\n\n', "no command tst"),
        (1, "ninja tst", "ninja: error: unknown target 'tst'\n", "no target tst"),
        (
            1,
            "docker compose run t",
            (
                "Cannot connect to the Docker daemon at unix:///var/run/"
                "docker.sock. Is the docker daemon running?\n"
            ),
            "docker is not running",
        ),
        (
            2,
            "pytest >logs/out.txt 2>&1",
            "/bin/sh: 1: cannot create logs/out.txt: Directory nonexistent\n",
            "can't write to logs/out.txt",
        ),
        (
            1,
            "bash -c 'pytest 2>logs/out.txt'",
            "bash: line 1: logs/out.txt: No such file or directory\n",
            "logs/out.txt does not exist",
        ),
        (1, "mkae test || exit 1", "/bin/sh: 1: mkae: not found\n", "mkae is missing"),
        (1, "bash -c 'make tst || { exit 1; }'", NO_TARGET, "no rule for the target tst"),
        (1, "(cd sub && pytest -q) || false", "\nno tests ran in 0.01s\n", "pytest found no tests"),
        (
            1,
            "bash -c '(mkae test)||exit 1'",
            "bash: line 1: mkae: command not found\n",
            "mkae is missing",
        ),
        (
            1,
            "sudo make test",
            (
                "sudo: a terminal is required to read the password; either use the -S option to "
                "read from standard input or configure an askpass helper\n"
                "sudo: a password is required\n"
            ),
            "asks for a password",
        ),
        (
            1,
            "poe tst",
            (
                "Poe the Poet (version 0.49.0)\n\nError: Unrecognized task 'tst'\n\nUsage:\n"
                "  poe [global options] task [task arguments]\n\nConfigured tasks:\n  test\n"
            ),
            "no task tst",
        ),
        (
            1,
            "poe test",
            (
                "Poe the Poet (version 0.49.0)\n\nError: No poe configuration found from location "
                "/w\n\nUsage:\n  poe [global options] task\n\nNO TASKS CONFIGURED\n"
            ),
            "poe found no tasks",
        ),
        (
            2,
            "make -C sub test",
            (
                "make: Entering directory '/w/sub'\nMakefile:2: *** missing separator.  Stop.\n"
                "make: Leaving directory '/w/sub'\n"
            ),
            "can't read the Makefile: missing separator",
        ),
        (2, "make", "Makefile:1: *** recipe commences before first target.  Stop.\n", "recipe com"),
        (
            1,
            "cmake -S src -B build && cmake --build build",
            (
                'CMake Error: The source directory "/w/src" does not appear to contain '
                "CMakeLists.txt.\n"
                "Specify --help for usage, or press the help button on the CMake GUI.\n"
            ),
            "no project in /w/src",
        ),
        (
            1,
            "cmake --preset ci",
            "CMake Error: Could not read presets from /w: File not found\n",
            "no presets",
        ),
        (
            8,
            "ctest --no-tests=error",
            (
                "No tests were found!!!\nErrors while running CTest\n"
                "Output from these tests are in: /w/Testing/Temporary/LastTest.log\n"
                'Use "--rerun-failed --output-on-failure" to re-run the failed cases verbosely.\n'
            ),
            "ctest found no tests",
        ),
        (
            1,
            "meson test -C build",
            "\nERROR: No such build data file as '/w/build/meson-private/build.dat'.\n",
            "not configured",
        ),
        (
            1,
            "bash -e ci.sh",
            "bash: ci.sh: No such file or directory\n",
            "ci.sh does not exist",
        ),
        (
            1,
            "pip install -r dev.txt && pytest",
            (
                "ERROR: Could not open requirements file: [Errno 2] No such file or directory: "
                "'dev.txt'\n"
            ),
            "no file dev.txt",
        ),
        (
            1,
            "pip install -e . && pytest",
            (
                "ERROR: file:///w does not appear to be a Python project: neither 'setup.py' nor "
                "'pyproject.toml' found.\n"
            ),
            "no Python project",
        ),
        (
            1,
            "flake8 srcc",
            ("srcc:0:1: E902 FileNotFoundError: [Errno 2] No such file or directory: 'srcc'\n"),
            "flake8 found no srcc",
        ),
        (
            1,
            "pylint srcc",
            "************* Module srcc\nsrcc:1:0: F0001: No module named srcc (fatal)\n",
            "pylint found no srcc",
        ),
        (
            1,
            "ruff check srcc.py",
            "E902 No such file or directory (os error 2)\n--> srcc.py:1:1\n\nFound 1 error.\n",
            "ruff found no such file",
        ),
        (
            2,
            "black --check srcc",
            (
                "Usage: black [OPTIONS] SRC ...\nTry 'black --help' for help.\n\n"
                "Error: Invalid value for 'SRC ...': Path 'srcc' does not exist.\n"
            ),
            "there is no srcc",
        ),
        (
            2,
            "nox",
            "nox > Failed to load Noxfile /w/noxfile.py, no such file exists.\n",
            "no noxfile.py",
        ),
        (
            1,
            "npm test",
            (
                "npm error code EJSONPARSE\n"
                "npm error JSON.parse Failed to parse JSON data.\n"
                "npm error JSON.parse Note: package.json must be actual JSON, "
                "not just JavaScript.\n"
                "npm error A complete log of this run can be found in: /h/.npm/_logs/x.log\n"
            ),
            "not valid JSON",
        ),
        (
            1,
            "mvn -q -pl nosuch test",
            (
                "[ERROR] Could not find the selected project in the reactor: nosuch -> [Help 1]\n"
                "[ERROR] \n[ERROR] Re-run Maven using the -X switch to enable full debug logging.\n"
            ),
            "no project nosuch",
        ),
        (
            1,
            "mvn -q test",
            (
                "[ERROR] The build could not read 1 project -> [Help 1]\n[ERROR]   \n"
                "[ERROR]   The project  (/w/pom.xml) has 1 error\n"
                "[ERROR]     Non-readable POM /w/pom.xml: no more data available @2:1\n"
            ),
            "can't read pom.xml",
        ),
        (
            125,
            "docker run --rm nosuch make test",
            (
                "docker: Error response from daemon: pull access denied for nosuch.\n"
                "See 'docker run --help'.\n"
            ),
            "pull access denied",
        ),
        (1, "inv tst", "No idea what 'tst' is!\n", "no task tst"),
        (1, "invoke test", "Can't find any collection named 'tasks'!\n", "no tasks.py"),
        (
            1,
            "pdm run tst",
            "[PdmUsageError]: Command 'tst' is not found in your PATH.\n",
            "no script or program tst",
        ),
        (
            1,
            "pdm run test",
            (
                "[ProjectError]: The pyproject.toml has not been initialized yet. You can do this "
                "by running `pdm init`.\n"
            ),
            "no project",
        ),
        (1, "hatch run ci:test", "Unknown environment: ci\n", "no environment ci"),
        (
            1,
            "pre-commit run tst -a",
            "No hook with id `tst` in stage `pre-commit`\n",
            "no hook tst",
        ),
        (
            1,
            "pre-commit run -a",
            (
                "An error has occurred: InvalidConfigError: \n"
                "=====> .pre-commit-config.yaml is not a file\n"
                "Check the log at /h/.cache/pre-commit/pre-commit.log\n"
            ),
            "no .pre-commit-config.yaml",
        ),
        (2, "mypy -p nosuch", "Can't find package 'nosuch'\n", "no package nosuch"),
        (
            1,
            "java -jar t.jar",
            "Error: Unable to access jarfile t.jar\n",
            "t.jar does not exist",
        ),
        (
            1,
            "java -cp build AllTests",
            (
                "Error: Could not find or load main class AllTests\n"
                "Caused by: java.lang.ClassNotFoundException: AllTests\n"
            ),
            "no class AllTests",
        ),
        (
            2,
            "javac T.java",
            (
                "error: file not found: T.java\nUsage: javac <options> <source files>\n"
                "use --help for a list of possible options\n"
            ),
            "T.java does not exist",
        ),
    ],
)
def test_check_that_cannot_run_is_found_with_its_reason_and_a_fix(
    code: int, command: str, output: str, reason: str
) -> None:
    found = cannot_run(code, command, output)
    assert found is not None
    assert reason in found.reason
    assert found.fix


PYTEST_RED = (
    "----------------------------- Captured stderr call -----------------------------\n"
    "{}\n"
    "=========================== short test summary info ============================\n"
    "FAILED test_x.py::test_a - AssertionError: assert 1 == 0\n1 failed in 0.59s\n"
)
COLLECTION = (
    "test_x.py:1: in <module>\n    import nosuch\n"
    "E   ModuleNotFoundError: No module named 'nosuch'\n"
    "=========================== short test summary info ============================\n"
    "ERROR test_x.py\n!!!!!!!! Interrupted: 1 error during collection !!!!!!!!\n1 error in 0.63s\n"
)


@pytest.mark.parametrize(
    "code,command,output",
    [
        (0, "make tst", "make: *** No rule to make target 'tst'.  Stop.\n"),
        (None, "make tst", "make: *** No rule to make target 'tst'.  Stop.\n"),
        (1, "make tst", "make: *** No rule to make target 'tst'.  Stop.\n"),
        (1, "make test || exit 1", "make: *** No rule to make target 'tst'.  Stop.\n1 failed\n"),
        (1, "make a || exit 1", "make: *** No rule to make target 'f', needed by 'a'.  Stop.\n"),
        (2, "make all", "make: *** No rule to make target 'foo.c', needed by 'all'.  Stop.\n"),
        (2, "make all", "make: don't know how to make foo.c. Stop\nmake: stopped in /w\n"),
        (2, "make test", "1 failed in 0.59s\nmake: *** [Makefile:12: test] Error 1\n"),
        (2, "make test", f"{COLLECTION}make: *** [Makefile:12: test] Error 2\n"),
        (1, "pytest", PYTEST_RED.format("/usr/bin/python3: No module named no_such")),
        (1, "pytest", PYTEST_RED.format("make: *** No rule to make target 'tst'.  Stop.")),
        (1, "pytest", PYTEST_RED.format('npm error Missing script: "tst"')),
        (1, "pytest", PYTEST_RED.format("no tests ran in 0.1s")),
        (1, "./check", "bash: line 3: out.txt: No such file or directory\n"),  # the agent's work
        (1, "./check", "sh: 1: cannot create out/x: Directory nonexistent\n"),
        (1, "./check", "./check: line 3: convert: command not found\n"),
        (1, "make test || exit 1", "1 failed\nmake: *** [Makefile:2: test] Error 1\n"),
        (1, "make tst || exit 1; ./check", f"{NO_TARGET}"),
        (1, "mkae test || pytest", "sh: 1: mkae: not found\n1 failed in 0.59s\n"),
        (1, "./run.sh", "Error: Could not find or load main class app.Main\n"),
        (2, "make", "Makefile:7: *** set DB_URL, or start the database.  Stop.\n"),
        (1, "flake8", "./a.py:0:1: E902 FileNotFoundError: [Errno 2] No such file: './a.py'\n"),
        (2, "./app --config x", "Error: Invalid value for 'IN': Path 'in.txt' does not exist.\n"),
        (1, "coverage run t.py", "No module named 'pytest'\n"),
        (2, "pytest -q", COLLECTION),
        (
            1,
            "python3 -m unittest test_app",
            UNITTEST,
        ),  # the test exists, and the agent writes nosuch
        (1, "python3 -m unittest nosuch test_a", UNITTEST.replace("Ran 1 test", "Ran 2 tests")),
        (1, "node test.js", NO_NODE_PACKAGE.replace("'chai'", "'./chai'")),
        (1, "node test.js", NO_NODE_PACKAGE.replace("'chai'", "'@/chai'")),
        (1, "npm test", f"{NO_NODE_PACKAGE}\n  1 failing\n"),
        (1, "tox", f"1 failed in 0.59s\n{TOX.format(1)}"),
        (2, "time make test", f"1 failed in 0.59s\nmake: *** [Makefile:12: test] Error 1\n{TIME}"),
        (
            1,
            "python3 check.py",
            (
                'Traceback (most recent call last):\n  File "/w/check.py", line 1'
                "\n    import app\nModuleNotFoundError: No module named 'app'\n"
            ),
        ),
        (5, "./check.sh", "5 tests failed\n"),
        (4, "./run-pytest.sh", "4 tests failed\n"),
        (5, "pytest; ./check.sh", "no luck\n"),
        (5, "pytest | ./count.sh", "5\n"),
        (1, "node test.js", NODE.replace("requireStack: []", "requireStack: [ '/w/test.js' ]")),
        (
            1,
            "npm test",
            (
                "  ● a › b\n    Cannot find module '/w/a.js' from 'a.test.js'\n\n"
                "Tests:       1 failed, 1 total\nTime:        0.5 s\nRan all test suites.\n"
            ),
        ),
        (1, "npm test", "1 failing\nnpm error code 1\nnpm error path /w\n"),
        (1, "rake", f"{RAKE}\nTasks: TOP => default\n{TRACE}"),
        (1, "mvn test", "[ERROR] Tests run: 1, Failures: 1\n[ERROR] -> [Help 1]\n"),
        (
            101,
            "cargo test",
            (
                "error: could not find `Cargo.toml` in `/x` or any parent directory\n"
                "test result: FAILED. 0 passed; 1 failed\n\nerror: test failed, rerun `--lib`\n"
            ),
        ),
        (1, "./mycli x | grep y", "Command not found: x\n"),
        (2, "grep x y", "grep: y: No such file or directory\n"),
        (1, "false", ""),
    ],
)
def test_red_test_that_mentions_such_words_is_not_a_check_that_cannot_run(
    code: int | None, command: str, output: str
) -> None:
    assert cannot_run(code, command, output) is None


def test_name_from_the_output_is_short_and_on_one_line() -> None:
    found = cannot_run(1, "x", f"python3: No module named {'a' * 3000}\n")
    assert found is not None
    assert len(found.reason) < 120
