# make demo   set up .venv, install, fit the simulated scene, write a report to demo/
# make test   set up .venv, install, lint, type-check and run the tests
# make lint   ruff and mypy only
# make docs   build the site and run its examples
# make fuzz   read randomly damaged files of every format, for one minute (FUZZ_SECONDS=600 for ten)
# make soak   fuzz files and run random fits for SOAK_MINUTES (default 10); writes soak.json
# make test-minimal   core tests with the oldest versions that pyproject.toml allows
# make test-minimal-extras   tests of the extras (files, figures, commands, clusters) with their oldest versions
# make dist   build the wheel and the source archive, byte-for-byte reproducible
# make answers  score the answers of deepmf and of other methods against truth
# make bench  compare deepmf with other libraries, about ten minutes (make bench BENCH=--quick to try it)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: setup demo test lint docs fuzz soak test-minimal test-minimal-extras dist bench answers uncache clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "deepmf needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/python -m deepmf demo --out demo --overwrite

lint: setup
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 -q

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

# Builds the site, runs its examples and treats warnings as errors: docs/_build/html/index.html
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 10

fuzz: setup
	$(BIN)/python tests/hostile/fuzz.py --seconds $(FUZZ_SECONDS) --seed $$(date +%s)

soak: setup
	$(BIN)/python tests/soak.py --minutes $(SOAK_MINUTES)

# Tests that need only the six required libraries.
CORE := tests/conformance tests/init tests/properties $(addprefix tests/test_,fit.py bad_input.py \
	factorization.py panels.py quadratic.py sweep.py threads.py vectors.py stored.py starts.py \
	steps.py metrics.py momentum.py)

.venv-minimal/.ready: requirements/minimal.txt pyproject.toml
	$(PYTHON) -m venv .venv-minimal
	.venv-minimal/bin/python -m pip install --quiet --requirement requirements/minimal.txt
	.venv-minimal/bin/python -m pip install --quiet pytest pytest-xdist hypothesis --editable .
	touch $@

test-minimal: .venv-minimal/.ready
	.venv-minimal/bin/python -m pytest -n 2 -q $(CORE)

EXTRAS := $(addprefix tests/,io plots cli runs cluster test_containers.py)

.venv-minimal-extras/.ready: requirements/minimal.txt requirements/minimal-extras.txt pyproject.toml
	$(PYTHON) -m venv .venv-minimal-extras
	.venv-minimal-extras/bin/python -m pip install --quiet --requirement requirements/minimal-extras.txt
	.venv-minimal-extras/bin/python -m pip install --quiet pytest pytest-xdist hypothesis spectral --editable '.[all]'
	touch $@

# Old libraries emit deprecation warnings about newer dependencies, and handle a full disk differently.
test-minimal-extras: .venv-minimal-extras/.ready
	.venv-minimal-extras/bin/python -m pytest -n 2 -q -W default -k 'not no_space_left' $(EXTRAS)

dist: setup
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build
	cd dist && sha256sum *

# Libraries that cannot be installed are reported as not available. nn-fac requires a tensorly of 2021
# but works with the current one.
$(VENV)/.bench: $(VENV)/.ready
	-$(BIN)/python -m pip install --quiet --editable '.[bench]'
	-$(BIN)/python -m pip install --quiet --no-deps nn-fac==0.3.5
	touch $@

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run $(BENCH)

# Scores deepmf and other methods against truth on every data set in DEEPMF_DATA, about half an hour
# (make answers ANSWERS=--quick: three sets that need no files, about a minute)
answers: setup
	$(BIN)/python -m benchmarks.answers $(ANSWERS)

# Deletes code compiled by Numba, which does not notice changes in other files.
uncache:
	find src -name '*.nb[ci]' -delete

clean:
	rm -rf $(VENV) .venv-minimal .venv-minimal-extras demo dist build soak.json
