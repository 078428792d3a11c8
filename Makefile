# make demo   set up .venv, install, fit the simulated scene, leave a report in demo/
# make test   set up .venv, install, lint, type-check and run the tests
# make lint   ruff and mypy alone
# make docs   build the site, run its examples
# make fuzz   damage files of every kind and read them, for a minute (FUZZ_SECONDS=600: for ten)
# make soak   fuzz and draw fits at random for SOAK_MINUTES, ten if not said; writes soak.json
# make test-minimal   the core tests on the oldest versions that pyproject.toml allows
# make test-minimal-extras   the same for the extras: files, pictures, commands, clusters
# make dist   the wheel and the source archive, the same byte for byte every time
# make bench  time deepmf beside its peers, about ten minutes (make bench BENCH=--quick: a trial)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: setup demo test lint docs fuzz soak test-minimal test-minimal-extras dist bench uncache clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "deepmf needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/python -m deepmf.cli.demo --out demo --overwrite

lint: setup
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 -q

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

# The site, with examples run and warnings as errors: docs/_build/html/index.html
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

FUZZ_SECONDS ?= 60
SOAK_MINUTES ?= 10

fuzz: setup
	$(BIN)/python tests/hostile/fuzz.py --seconds $(FUZZ_SECONDS) --seed $$(date +%s)

soak: setup
	$(BIN)/python tests/soak.py --minutes $(SOAK_MINUTES)

# What needs no other library than the five that deepmf itself needs.
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

# Old libraries have much to say about new ones that they use, and about a disk that is full.
test-minimal-extras: .venv-minimal-extras/.ready
	.venv-minimal-extras/bin/python -m pytest -n 2 -q -W default -k 'not no_space_left' $(EXTRAS)

dist: setup
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build
	cd dist && sha256sum *

# Peers that cannot be installed are reported as not available. nn-fac asks for a tensorly of 2021
# but works with the present one.
$(VENV)/.bench: $(VENV)/.ready
	-$(BIN)/python -m pip install --quiet --editable '.[bench]'
	-$(BIN)/python -m pip install --quiet --no-deps nn-fac==0.3.5
	touch $@

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.run $(BENCH)

# Code compiled by Numba, which does not notice a change in another file.
uncache:
	find src -name '*.nb[ci]' -delete

clean:
	rm -rf $(VENV) .venv-minimal .venv-minimal-extras demo dist build soak.json
