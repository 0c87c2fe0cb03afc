# Every target makes what it needs: the virtual environment when it is missing or when its pins changed.
# Variables: VENV (default .venv), PYTHON (default python3), ARGS (passed on to pytest or the demo),
# JOBS (processes that test, default one more than cores, since some tests wait, and at most 4; 0 tests in one
# process and shows what is printed),
# SECONDS (how long to fuzz, default 60), MINUTES (how long to soak, default 10), ROWS and KILLS (of a batch), CLIENTS (some or full: which clients).

VENV ?= .venv
PYTHON ?= python3
UV ?= uv
ARGS ?=
JOBS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
SECONDS ?= 60
ROWS ?= 1000000
KILLS ?= 20
MINUTES ?= 10
CLIENTS ?= some

BIN := $(VENV)/bin
RUN := $(VENV)/.package
DEV := $(VENV)/.package $(VENV)/.dev
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --maxprocesses 4 --dist worksteal
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
COMPILE := $(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

# Tests start hundreds of processes: each would compile what it loads where Python is told to keep nothing.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:  # one pip at a time in an environment
.PHONY: help demo test full test-lowest test-clients test-browser test-ray kills memory fuzz soak fetch lint format bench bench-decode bench-gateway docs wheel measure lock clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

demo: $(RUN)  ## watch a small embedded model call Python functions
	@$(BIN)/python examples/demo.py $(ARGS)

test: $(DEV) fetch  ## fetch what the tests need, then run them with the network blocked
	$(PYTEST) $(ARGS)

full: $(DEV) fetch  ## everything that there is to run: all inputs of the properties, the clients, a cluster, long fuzzing, a long soak
	$(PYTEST) --hypothesis-profile=full $(ARGS)
	$(MAKE) test-lowest ARGS=
	$(MAKE) test-clients CLIENTS=full ARGS=
	$(MAKE) test-browser ARGS=
	$(MAKE) test-ray ARGS=
	$(MAKE) fuzz SECONDS=600 ARGS=
	$(MAKE) soak MINUTES=30 ARGS=

test-lowest: $(DEV) fetch  ## run some tests with the lowest versions of the dependencies that pyproject.toml allows
	$(BIN)/python tests/lowest_versions.py -n $(JOBS) --maxprocesses 4 $(ARGS)

test-clients: $(DEV) fetch  ## run the clients that people use against the gateway, each in an environment of its own
	CLIENTS=$(CLIENTS) $(BIN)/python tests/clients/roster.py
	CLIENTS=$(CLIENTS) $(BIN)/python -m pytest tests/clients $(ARGS)

test-browser: $(DEV) $(VENV)/.browser fetch  ## look at the page of `toolspeak ui` with headless Chromium, which the system must have
	BROWSER=1 $(BIN)/python -m pytest tests/browser $(ARGS)

test-ray: $(DEV)  ## run batches on a Ray cluster of two nodes on this machine, Ray in an environment of its own
	$(BIN)/python tests/ray/ray_environment.py
	RAY=1 $(BIN)/python -m pytest tests/ray $(ARGS)

soak: $(DEV)  ## mixed traffic against a gateway for MINUTES (default 10): nothing may leak, and no request go unanswered
	$(BIN)/python tests/clients/soak.py --minutes $(MINUTES) $(ARGS)

kills: $(DEV)  ## kill a batch of ROWS rows (default a million) KILLS times (default 20): every id must come out once
	$(BIN)/python tests/batch/kills.py $(ROWS) $(KILLS)

memory: $(DEV)  ## attack a gateway, class by class, until its memory is flat
	$(BIN)/python tests/gateway/memory.py $(ARGS)

fuzz: $(DEV) $(VENV)/.fuzz  ## feed dialects damaged texts and endpoints wrong bodies for SECONDS (default 60); findings are kept in .fuzz/
	$(BIN)/python tests/fuzz/run.py $(SECONDS) $(ARGS)

# What the tests need from outside: the weights of the two embedded models, the leaderboard's data, and the packages
# they compare with. All are kept in caches, so that a second run needs no network.
fetch: $(DEV)
	$(if $(wildcard src/toolspeak/models/embedded/weights.py),$(BIN)/python -m toolspeak.models.embedded.weights)
	$(if $(wildcard src/toolspeak/search/minilm.py),$(BIN)/python -m toolspeak.search.minilm)
	$(if $(wildcard src/toolspeak/evals/__main__.py),$(BIN)/python -m toolspeak.evals)
	$(if $(wildcard tests/peers.py),$(BIN)/python tests/peers.py)

lint: $(DEV)  ## style, format, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo

format: $(DEV)  ## rewrite the code in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV)  ## measure speed, as ratios against peers in the same run
	$(BIN)/python benchmarks/run.py $(ARGS)

bench-decode: $(DEV)  ## measure what streaming a call costs in every dialect, beside peers
	$(BIN)/python benchmarks/run.py decode

bench-gateway: $(DEV)  ## measure the gateway beside a pass-through and LiteLLM's proxy (ARGS=--long: 100,000 requests)
	$(BIN)/python benchmarks/gateway/run.py $(ARGS)

docs: $(RUN) $(VENV)/.docs  ## build the documentation into site/
	$(BIN)/zensical build --clean --strict

wheel: $(DEV)  ## build the source distribution and the wheel into dist/, and run the wheel in a new environment
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python scripts/check_wheel.py dist

measure: $(DEV)  ## measure the code, beside h11, starlette and magentic (ARGS=--rooms: package by package)
	@$(BIN)/python scripts/measure_code.py $(ARGS)

# The pins are made from pyproject.toml by uv (https://docs.astral.sh/uv), for every platform and every
# Python from 3.11 on. Run `make lock` after changing a dependency there, and to move to newer versions.
lock:  ## refresh the pins in requirements/ (needs uv)
	$(COMPILE) pyproject.toml --extra local --extra server --group build -o requirements/run.txt
	$(COMPILE) pyproject.toml --extra dense --extra mcp --extra openapi --extra batch --group test --group bench --group lint -c requirements/run.txt -o requirements/dev.txt
	$(subst --generate-hashes,,$(COMPILE)) pyproject.toml --extra ray -c requirements/run.txt -c requirements/dev.txt -o requirements/ray.txt
	$(COMPILE) --group fuzz -c requirements/run.txt -c requirements/dev.txt -o requirements/fuzz.txt
	$(COMPILE) --group browser -c requirements/run.txt -c requirements/dev.txt -o requirements/browser.txt
	$(COMPILE) --group docs -c requirements/run.txt -c requirements/dev.txt -o requirements/docs.txt

clean:  ## remove the virtual environment and everything that was built
	rm -rf $(VENV) site dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Stages, each a stamp inside the environment: what running needs, the package itself, what developing
# needs, what the documentation needs. A stage that broke off leaves no stamp and is made again.
$(VENV)/.run: requirements/run.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "toolspeak needs Python 3.11 or newer; '$(PYTHON)' is missing or older. Say which to use: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv)." >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install --require-hashes -r requirements/run.txt
	@touch $@

$(VENV)/.package: $(VENV)/.run pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

# atheris has wheels for some Pythons only: where it does not install, the fuzzer does without it.
$(VENV)/.fuzz: $(VENV)/.run requirements/fuzz.txt
	@$(PIP) install --require-hashes -r requirements/fuzz.txt || echo "atheris does not install for this Python"
	@touch $@

# The browser itself is the system's: Chromium on the path, or named in $$CHROMIUM.
$(VENV)/.browser: $(VENV)/.run requirements/browser.txt
	@$(PIP) install --require-hashes -r requirements/browser.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.run requirements/docs.txt
	@$(PIP) install --require-hashes -r requirements/docs.txt
	@touch $@
