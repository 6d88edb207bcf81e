# make demo      ingest a small bundled upstream and search it (no key, no network)
# make check     lint, types, import direction: for the minute before a commit
# make test      make check beside the tests on SQLite and a folder, one for each other server
# make test-all  all other tests: long ones, and all on PostgreSQL, S3, Azure, Ray, a browser
# make bench     figures, each beside a peer or a limit (BENCH="--full", BENCH="--only load")

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# Compiled tests are kept, whatever the shell says: each process would compile them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all bench check lint types tests azurite chromium linters clean

demo: $(VENV)/.installed
	$(BIN)/fonds --home demo-library demo

# Types are checked while tests wait for each other.
test: lint azurite chromium linters
	@$(MAKE) --no-print-directory --jobs=2 --keep-going types tests

tests: $(VENV)/.dev
	$(PYTEST) -m "not full"

test-all: $(VENV)/.dev azurite chromium linters
	$(PYTEST) -m full

check: lint types

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python -m bench $(BENCH)

# Debian ships venv without what puts pip into it; the machine's own pip can do that.
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

# A real Azure Blob server needs Node; without it those tests are skipped, and say so.
azurite:
	@scripts/install-azurite

# Pages are rendered in a real browser; without one those tests are skipped, and say so.
chromium:
	@scripts/install-chromium

# Dockerfile and compose.yaml are linted; without Node that is skipped, and said.
linters:
	@scripts/install-linters

clean:
	rm -rf $(VENV) .tools demo-library .mypy_cache .ruff_cache .pytest_cache .hypothesis
