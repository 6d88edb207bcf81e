# make demo      ingest a small bundled upstream and search it (no key, no network)
# make check     lint, types, import direction: run it before a commit (a minute)
# make test      make check, tests on SQLite and a folder, and one test for each other server
# make test-all  all other tests: long ones, and those on PostgreSQL, S3, Azure, Ray, a browser
#                (TESTS="tests/contract" chooses files and folders)
# make live      request one item of each real publisher (contacts them)
# make bench     benchmarks, each with a peer or a limit (BENCH="--full", BENCH="--only load")

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# Keep compiled tests, also if the shell sets this variable: each process would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all live bench check lint types tests azurite chromium proxies linters clean

demo: $(VENV)/.installed
	$(BIN)/fonds --home demo-library demo

# Types are checked while tests run, which leave some processor time.
test: lint azurite chromium linters
	@$(MAKE) --no-print-directory --jobs=2 --keep-going types tests

tests: $(VENV)/.dev
	$(PYTEST) -m "not full"

test-all: $(VENV)/.dev azurite chromium proxies linters
	$(PYTEST) -m full $(TESTS)

check: lint types

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

live: $(VENV)/.dev
	FONDS_LIVE=1 $(BIN)/python -m pytest tests/live

bench: $(VENV)/.bench
	$(BIN)/python -m bench $(BENCH)

# Debian's venv cannot install pip; the pip of the machine can.
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  $(PYTHON) -m venv --without-pip --clear $(VENV) && \
	  $(PYTHON) -m pip --python $(VENV)/bin/python install --quiet pip; }

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.installed

$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[dev,bench]'
	touch $@ $(VENV)/.dev $(VENV)/.installed

# The Azure Blob server needs Node; without it those tests are skipped with a message.
azurite:
	@scripts/install-azurite

# Pages are tested in Chromium; without it those tests are skipped with a message.
chromium:
	@scripts/install-chromium

# A server is tested behind real proxies; without them those tests are skipped with a message.
proxies:
	@scripts/install-proxies

# The linters of Dockerfile and compose.yaml need Node; without it they are skipped with a message.
linters:
	@scripts/install-linters

clean:
	rm -rf $(VENV) .tools demo-library .mypy_cache .ruff_cache .pytest_cache .hypothesis
