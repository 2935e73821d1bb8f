# make demo   a real loop with a scripted agent (no key, no network)
# make fleet-demo   three loops at once, one of them killed and taken over
# make test   set up and run the first ring of tests: no process but git
# make test-real   the second ring: the installed command, real children, sandbox, database, browser
# make test-long   the third ring: whole matrices, storms, gigabytes, coverage; takes an hour
# make test-agents  the real agent CLIs, installed with npm, against a scripted API on loopback
# make test-dbos    the durable engine of the fleet with the oldest and newest DBOS that is allowed
# make check  linters, types, import contract
# Everything needs only Python 3.11+, git and make; packages come locked, with hashes.

# The first interpreter that is new enough; `make PYTHON=... demo` chooses another.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q install $(PIP_FLAGS)
# Python may keep what it compiled: it takes half the time to load the tests again.
export PYTHONDONTWRITEBYTECODE :=
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS ?= $(CORES)

.PHONY: demo fleet-demo test test-real test-sample test-long coverage test-agents test-dbos check docs lock bench clean

demo: $(VENV)/.runtime
	@$(BIN)/rooda demo

# The packages of the fleet are among those of developers.
fleet-demo: $(VENV)/.dev
	@$(BIN)/rooda fleet demo

# Compiled first: the tests start rooda often.
$(VENV)/.compiled: $(VENV)/.dev FORCE
	@$(BIN)/python -m compileall -q src

test: $(VENV)/.compiled
	$(BIN)/pytest -n $(WORKERS) --ring first

# Most of these tests wait for something, so more of them run at once.
test-real: $(VENV)/.compiled
	$(BIN)/pytest -n $$((2 * $(WORKERS))) --dist worksteal --durations=10 --ring real

# What `.ci/run` takes of the third ring, each time with the same numbers.
test-sample: $(VENV)/.compiled
	$(BIN)/pytest -n $$((2 * $(WORKERS))) --dist worksteal --randomly-seed=1 --ring sample

test-long: coverage
	ROODA_TEST_EXAMPLES=20 $(BIN)/pytest -n $(WORKERS) --timeout 3600 --ring first
	ROODA_TEST_EXAMPLES=20 $(BIN)/pytest -n $$((2 * $(WORKERS))) --dist worksteal --timeout 3600 --ring long

# Both rings, with the lines of child processes. It takes half as long again as the tests alone.
coverage: $(VENV)/.compiled
	$(BIN)/pytest -n $$((2 * $(WORKERS))) --dist worksteal -m "not long" --cov --cov-report=
	$(BIN)/coverage report     # fails below the floor, which pytest only mentions

# Not part of `make test`: it fetches a gigabyte. Where npm is missing it says so, and skips.
test-agents: $(VENV)/.compiled
	@$(BIN)/python -m tools.install_agents
	ROODA_REAL_AGENTS=1 $(BIN)/pytest -n 2 tests/real_agents

# A part of `.ci/run`, where it is skipped for the installed version.
test-dbos: $(VENV)/.dev
	@$(BIN)/python -m tools.dbos_versions

check: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev
	$(BIN)/python -m tools.docs

bench: $(VENV)/.compiled
	$(BIN)/python -m benchmarks

$(VENV)/.runtime: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "rooda needs Python 3.11 or newer; none was found on the PATH" >&2; exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV); } || \
		{ rm -rf $(VENV); echo "Python's venv module is missing (Debian: apt install python3-venv)" >&2; exit 1; }
	@echo "Setting up in $(VENV) ..."
	@$(PIP) --no-deps --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@$(PIP) --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

# The locks name no index: whichever one pip is set up with is used.
lock: $(VENV)/.dev
	$(BIN)/python -m pip -q install uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-annotate -o requirements.lock pyproject.toml --group build
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-annotate -o requirements-dev.lock pyproject.toml --group dev

clean:
	rm -rf $(VENV) .agents dist .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

FORCE:
