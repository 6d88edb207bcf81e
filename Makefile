# make demo      ingest a small bundled upstream and search it (no key, no network)
# make test      lint, types, import direction, tests with real servers
# make test-all  the long tests: many kills, many seeds
# make bench     figures, each beside a peer or a limit (BENCH="--full", BENCH="--only load")

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
JOBS   ?= 2

.PHONY: demo test test-all bench check azurite chromium linters clean

demo: $(VENV)/.installed
	$(BIN)/fonds --home demo-library demo

test: check azurite chromium linters
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not long"

test-all: $(VENV)/.dev azurite chromium
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m long

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

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
