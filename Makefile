# Every target sets up .venv/ in this checkout by itself; Python 3.11+ with pip is all a machine needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
COMPILED := $(VENV)/.compiled
WORKERS ?= 4
# Bytecode is kept even where a machine says not to: without it every process of every test compiles anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-all test-times invariants mutations coverage browser check corpus bench e2e soak picture lock wheels clean help

help:
	@echo "make run    set up and watch the product work, offline"
	@echo "make test   set up and run the quick tests: every pure and store test, smokes of every door"
	@echo "make test-all  those and the slow ones: processes, browsers, every example of every property"
	@echo "make test-times  the quick tests, and what they cost"
	@echo "make coverage  every test, and the lines no test reaches"
	@echo "make invariants  every safety property of the source has a test that names it"
	@echo "make mutations  break safety properties and see their tests fail"
	@echo "make check  ruff, mypy --strict, import contracts, invariants"
	@echo "make corpus measure the classifier on labelled commands (CHECKREIN_DATA)"
	@echo "make bench  measure, and write docs/performance.md"
	@echo "make soak   the long fault campaigns"
	@echo "make e2e    real clients and suites"
	@echo "make wheels  build the wheels of every platform"
	@echo "make lock   lock dependency versions again (needs uv)"

$(READY): requirements/pip.txt requirements/dev.txt pyproject.toml hatch_build.py src/checkrein/hookclient/client.c
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Checkrein needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(VENV)/ (once; about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@for name in pip dev; do $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --require-hashes -r requirements/$$name.txt || exit 1; done
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # by every processor; pip uses one
	@touch $@

run: $(READY)
	@$(BIN)/checkrein demo

# Debian's Chromium, for the browser tests; where it may not be installed they are skipped, and say so.
# The one without windows needs half the time.
browser:
	@command -v chromium-headless-shell >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { echo "Installing Chromium for the browser tests (once) ..."; apt-get update -qq >/dev/null; \
	    apt-get install -y -qq chromium-headless-shell >/dev/null 2>&1 || command -v chromium >/dev/null || \
	    apt-get install -y -qq chromium >/dev/null 2>&1 || echo "It cannot be installed."; }

TESTED := $(BIN)/python -m tools.run_tests -n $(WORKERS) --dist worksteal

test: $(COMPILED) browser
	@$(TESTED) $(PYTEST_ARGS)

test-all: $(COMPILED) browser
	@CHECKREIN_TESTS=all $(TESTED) $(PYTEST_ARGS)

test-times: $(COMPILED) browser
	@$(TESTED) --times $(PYTEST_ARGS)

# Every test module compiled once; in a fresh checkout each worker would compile all of them.
$(COMPILED): $(READY)
	@CHECKREIN_TESTS=all $(BIN)/python -m pytest --collect-only -qq >/dev/null || true # the tests name what is wrong
	@touch $@

invariants: $(READY)
	@$(BIN)/python -m tools.invariants

mutations: $(READY)
	@$(BIN)/python -m tools.mutations $(MUTATION_ARGS)

coverage: $(READY) browser
	@CHECKREIN_TESTS=all $(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term-missing:skip-covered \
	  --cov-fail-under=$(COVERAGE) $(PYTEST_ARGS)

check: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tools.invariants

corpus: $(READY)
	@$(BIN)/python -m bench.risk $(CORPUS_ARGS)

# Measured is what is released: the hook client as the release compiler makes it.
bench: $(READY)
	@$(BIN)/python -c 'import ziglang' 2>/dev/null || { echo "Fetching the release compiler (once; 100 MB) ..."; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m bench

wheels:
	@$(PYTHON) -m venv build/release
	@build/release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	@for target in x86_64-linux-musl aarch64-linux-musl x86_64-macos aarch64-macos any; do \
	  CHECKREIN_TARGET=$$target build/release/bin/python -m pip wheel --quiet --no-deps --no-build-isolation -w dist . \
	    || exit 1; done

soak: $(READY)
	@CHECKREIN_SOAK=1 $(BIN)/python -m pytest -m soak --timeout 3600

picture: $(READY)
	@$(BIN)/python docs/capture.py
	@$(BIN)/python docs/capture_hooks.py
	@$(BIN)/python docs/capture_gateway.py
	@$(BIN)/python docs/capture_eval.py
	@$(BIN)/python docs/capture_console.py
	@$(BIN)/python docs/capture_library.py
	@$(BIN)/python docs/capture_chat.py
	@$(BIN)/python docs/capture_compression.py

e2e: $(READY)
	@$(BIN)/python -m pytest tests/e2e --timeout 900

lock:
	@for name in pip runtime dev release; do \
	  uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-emit-index-url --no-annotate requirements/$$name.in -o requirements/$$name.txt; done

clean:
	@rm -rf $(VENV) .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

COVERAGE ?= 95
