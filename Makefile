# SPDX-License-Identifier: Apache-2.0
# make run     what Hourglass is for: the same uploads with and without TCP Small Queues, side by side
# make test    all tests, on all kernels
# make check   style and types, as CI does
# make setup   only what both need; seconds when nothing changed

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

BIN := .venv/bin
HOURGLASS := $(BIN)/hourglass
SYSTEM_PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: run test check bench other-cpus wheel tools setup packages agent kernels release image places clean

run: setup
	$(HOURGLASS) run L100M --set stack.tsq=off --out runs/L100M-notsq
	$(HOURGLASS) run L100M --out runs/L100M-tsq
	$(HOURGLASS) compare runs/L100M-notsq runs/L100M-tsq --out runs/L100M.png

test: setup tools kernels
	cd agent && cargo test --locked --quiet
	$(BIN)/pytest tests/native  # by itself: it measures in real time
	$(BIN)/pytest -n auto --ignore tests/native

# What only tests need, which are skipped without it (and fail where CI is set).
tools: setup
	@missing=""; for pair in chromium:chromium chromedriver:chromium-driver tshark:tshark; do \
		command -v $${pair%%:*} >/dev/null || missing="$$missing $${pair##*:}"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ]; then echo "some tests are skipped: apt-get install -y$$missing" >&2; exit 0; fi; \
	echo "installing$$missing"; apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null

kernels: setup
	@$(HOURGLASS) kernel build all

setup: agent
	@$(BIN)/python -m compileall -q src  # what an environment that forbids writing bytecode would compile at each start

# Installs what is missing when we may; else says what to install.
packages: .venv/installed
	@missing="$$($(BIN)/python -m hourglass.engine.doctor)"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ]; then echo "please run: sudo apt-get install -y $$missing" >&2; exit 3; fi; \
	echo "installing $$missing"; \
	apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null

.venv/installed: pyproject.toml
	@if [ -z "$(SYSTEM_PYTHON)" ]; then echo "Python 3.11 or newer is needed: apt-get install -y python3 python3-venv" >&2; exit 3; fi
	@if [ ! -x $(BIN)/python ]; then $(SYSTEM_PYTHON) -m venv .venv || \
		{ echo "to fix: apt-get install -y python3-venv" >&2; exit 3; }; fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

agent: packages
	@$(BIN)/python -m hourglass.engine.agent
	@$(BIN)/python -m hourglass.engine.tree

# A checker that is missing is left out, with a word; where CI is set, that fails.
check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@cd agent && if cargo fmt --version >/dev/null 2>&1; then cargo fmt --check; \
		else echo "no rustfmt: not checked"; test -z "$${CI:-}"; fi
	@cd agent && if cargo clippy --version >/dev/null 2>&1; then cargo clippy --locked --quiet --all-targets -- -D warnings; \
		else echo "no clippy: not checked"; test -z "$${CI:-}"; fi
	$(BIN)/python -m hourglass.engine.kernel.check

# The same bytes on CPUs that QEMU emulates; CPUS="qemu64 max": on these alone. Minutes for each.
other-cpus: setup
	$(BIN)/python -m tests.other_cpus $(CPUS)

bench: setup
	$(BIN)/python -m bench

# Wheels with everything inside, of each kernel, in $(DIST). PYTHONPATH: this checkout's code, whatever is installed.
DIST ?= dist
wheel: setup
	PYTHONPATH=src $(BIN)/python -m release.wheel --dist $(DIST)

# All artefacts, made twice and tried where they are installed: dist/ and the CHANGELOG's section. As root.
release: setup
	$(BIN)/python -m release

# Of the wheel in dist/: the OCI image; installations in bare roots.
image: setup
	$(BIN)/python -m release.image
places: setup
	$(BIN)/python -m release.check

clean:
	rm -rf .venv agent/target .pytest_cache .mypy_cache .ruff_cache
	@echo "runs/ and the kernels in \$${XDG_CACHE_HOME:-~/.cache}/hourglass are kept"
