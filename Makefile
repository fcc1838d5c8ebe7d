# Every target sets up what it needs in .venv, once; a changed pyproject.toml, setup.py or constraints.txt installs again.
# PYTHON=python3.12 chooses the interpreter; pip's own settings (PIP_INDEX_URL and the like) are honoured.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q -c constraints.txt
# Small recurrent networks become many times slower when several processes fight for the cores with several threads each.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
WORKERS ?= 2
BENCH ?= --quick
RUNS ?= runs/demo
SECONDS ?= 300
SEED ?= 0
PYTEST := REMANENCE_REQUIRE=kernel,$(REMANENCE_REQUIRE) $(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: help demo test test-all test-cluster check-kernel lint bench docs screenshots browser integrations wheel conformance torture api clean
.DEFAULT_GOAL := help

help:  ## list these targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(VENV)/.installed  ## train LSTMs and cells with a memory side by side and compare them (about four minutes)
	$(BIN)/remanence demo

test: $(VENV)/.installed  ## run the tests, without the slow ones
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.installed  ## run all tests
	$(PYTEST)

test-cluster: $(VENV)/.cluster  ## install Ray and run its tests: two nodes on this machine, one killed, the driver restarted
	REMANENCE_REQUIRE=kernel,ray $(ONE_THREAD) $(BIN)/python -m pytest -q tests/experiments/test_ray.py tests/experiments/test_storage.py

check-kernel: $(VENV)/.installed  ## check the kernel under sanitizers, on emulated ARM, and its build where it fails
	$(PYTEST) tests/csrc tests/test_build.py

lint: $(VENV)/.installed  ## check style (ruff, clang-format) and types (pyright)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(wildcard src/remanence/csrc/*/* tests/csrc/*.cpp)
	$(BIN)/pyright --warnings --pythonpath $(BIN)/python

bench: $(VENV)/.installed  ## measure speed and memory beside torch.nn and the reference (three minutes); BENCH= runs the whole grid
	$(ONE_THREAD) $(BIN)/python -m benchmarks.kernel $(BENCH)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.generation $(BENCH)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.tasks $(BENCH)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.policies $(BENCH)
	$(ONE_THREAD) $(BIN)/python -m benchmarks.information $(BENCH)

docs: $(VENV)/.docs  ## build the documentation; warnings are errors
	$(ONE_THREAD) $(BIN)/python -m sphinx -q -E -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

screenshots: $(VENV)/.e2e  ## take the documentation's pictures of the report on RUNS (runs/demo, which make demo leaves)
	$(BIN)/remanence report $(RUNS) -o docs/_build/report.html
	$(BIN)/python docs/screenshots.py docs/_build/report.html docs/images

browser: $(VENV)/.e2e  ## install what drives a browser in the tests; Chromium itself must be on the PATH

integrations: $(VENV)/.integrations  ## install the other people's tools that the tests try the layers with

wheel: $(VENV)/.installed  ## build a wheel and try it in an empty environment outside the checkout
	.ci/wheel "$(BIN)/python"

conformance: $(VENV)/.installed  ## write the table of layers against checks again, for the documentation
	$(ONE_THREAD) $(BIN)/python tests/nn/conformance_table.py

torture: $(VENV)/.installed  ## kill commands and damage runs for SECONDS (300), or KILLS= and DAMAGED= times; write the docs' table
	$(ONE_THREAD) $(BIN)/python -m tests.torture --seconds $(SECONDS) --seed $(SEED) --jobs $(WORKERS) $(if $(KILLS),--kills $(KILLS)) \
		$(if $(DAMAGED),--damaged $(DAMAGED)) $(addprefix --without ,$(WITHOUT)) --output docs/_generated/faults.json

api: $(VENV)/.installed  ## write the list of public names again, after a wanted change
	$(BIN)/python tests/public_api.py --write

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "remanence needs Python 3.11 or newer, and '$(PYTHON)' is not on the PATH."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "remanence needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Choose another: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# A new environment has an old setuptools or none, and the package is built without isolation, against this very torch.
$(VENV)/.torch: $(VENV)/.python constraints.txt
	$(PIP) setuptools torch
	@touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml $(wildcard setup.py src/remanence/csrc/*/*)
	$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

# What extras ask for, without installing, and so compiling, the package again.
extras = $(PIP) -r <($(BIN)/python -c 'import sys, tomllib; \
	extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*(wish for name in sys.argv[1:] for wish in extras[name]), sep="\n")' $(1))

$(VENV)/.docs: $(VENV)/.installed
	$(call extras,docs)
	@touch $@

$(VENV)/.e2e: $(VENV)/.installed
	$(call extras,report e2e)
	@touch $@

$(VENV)/.cluster: $(VENV)/.installed
	$(call extras,cluster)
	@touch $@

# By name: the package itself is there already, and to install it again would compile the kernel again.
$(VENV)/.integrations: $(VENV)/.installed
	$(PIP) onnx onnxscript onnxruntime lightning accelerate tensorboard torchrl
	@touch $@
