# SPDX-License-Identifier: Apache-2.0
# make run     what Hourglass is for: the same uploads with and without TCP Small Queues, side by side
# make tune    makes runs faster by up to a tenth: the kernel once more, with PGO
# make test    all tests, on all kernels
# make check   style and types, as CI does
# make setup   only what a run needs, but no kernel; seconds when nothing changed; make developer: what tests need, too

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

BIN := .venv/bin
HOURGLASS := $(BIN)/hourglass

# What Python compiled is kept, even where the environment forbids it: else each command takes a second more.
unexport PYTHONDONTWRITEBYTECODE

SYSTEM_PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: run tune test begin ready kernel source root check bench fuzz soak repeat patches other-cpus wheel tools setup developer packages agent \
	release image places clean

run: begin
	@$(MAKE) --no-print-directory -j3 ready
	$(call step,L100M without TSQ,$(HOURGLASS) run L100M --set stack.tsq=off --out runs/L100M-notsq)
	$(call step,L100M,$(HOURGLASS) run L100M --out runs/L100M-tsq)
	$(call step,comparison,$(HOURGLASS) compare runs/L100M-notsq runs/L100M-tsq --out runs/L100M.png)
	$(told)

tune: setup
	@$(HOURGLASS) kernel tune

test: begin
	@$(MAKE) --no-print-directory -j3 ready
	@$(MAKE) --no-print-directory developer tools
	$(call step,kernels for tests,$(BIN)/python -m tests.kernels)
	$(call step,tests of the agent,cd agent && cargo test --locked --quiet)
	$(call step,tests against this machine's kernel,$(BIN)/pytest tests/native tests/ssh)  # by themselves: they measure in real time
	$(call step,tests,$(BIN)/pytest -n auto --dist worksteal --ignore tests/native --ignore tests/ssh)
	$(told)

# $(call step,WHAT,COMMANDS): carries them out and notes what took longer than a second; $(told) prints that.
STEPS := runs/.steps
tenths = $$(( ($${EPOCHREALTIME/[.,]/} - $(1)) / 100000 ))
define step
	@begun=$${EPOCHREALTIME/[.,]/}; ( $(2) ); spent=$(call tenths,$$begun); \
	if [ -e $(STEPS) ] && [ $$spent -ge 10 ]; then \
		printf '%6d.%d s  %s\n' $$((spent / 10)) $$((spent % 10)) "$(1)" >>$(STEPS); fi
endef
define told
	@spent=$(call tenths,$$(head -1 $(STEPS))); \
	printf '\nWhere the time went (agent, guest root and kernel are made side by side):\n'; tail -n +2 $(STEPS); \
	printf '%6d.%d s  in all\n' $$((spent / 10)) $$((spent % 10)); rm $(STEPS)
endef
begin:
	@mkdir -p $(dir $(STEPS)); echo "$${EPOCHREALTIME/[.,]/}" >$(STEPS)

# What the first run needs, side by side.
ready: setup kernel
kernel: source
	$(call step,kernel,$(HOURGLASS) kernel build 6.1)
source: packages
	$(call step,kernel source,$(BIN)/python -m hourglass.engine.kernel.source)

# What only tests need, which are skipped without it (and fail where CI is set).
tools: setup
	@missing=""; for pair in chromium:chromium chromedriver:chromium-driver tshark:tshark; do \
		command -v $${pair%%:*} >/dev/null || missing="$$missing $${pair##*:}"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ]; then echo "some tests are skipped: apt-get install -y$$missing" >&2; exit 0; fi; \
	echo "installing$$missing"; apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null

setup: agent root
	@$(BIN)/python -m compileall -q src

# Installs what is missing when we may; else says what to install.
packages: .venv/installed
	$(call step,Debian packages,$(INSTALL_MISSING))
define INSTALL_MISSING
missing="$$($(BIN)/python -m hourglass.engine.doctor)"; if [ -n "$$missing" ]; then \
	if [ "$$(id -u)" != 0 ]; then echo "please run: sudo apt-get install -y $$missing" >&2; exit 3; fi; \
	echo "installing $$missing"; apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; fi
endef

.venv/installed: pyproject.toml
	@if [ -z "$(SYSTEM_PYTHON)" ]; then echo "Python 3.11 or newer is needed: apt-get install -y python3 python3-venv" >&2; exit 3; fi
	@if [ ! -x $(BIN)/python ]; then $(SYSTEM_PYTHON) -m venv .venv || \
		{ echo "to fix: apt-get install -y python3-venv" >&2; exit 3; }; fi
	$(call step,Python packages,$(PIP) '.[report]'; $(BIN)/python -c '$(COMMANDS)')
	@touch $@

# What those need who change something: linters, test runners.
developer: setup .venv/developer
.venv/developer: pyproject.toml | .venv/installed
	$(call step,Python packages for tests,$(PIP) '.[dev]')
	@touch $@

# Python compiles what it imports, when it first does: a third of what is installed. Once for all commands:
COMMANDS := from hourglass.cli import app, pictures, run, tables; from hourglass.results import opening; pictures.plots()
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e

agent: packages
	$(call step,agent,$(BIN)/python -m hourglass.engine.agent)
root: packages
	$(call step,guest root,$(BIN)/python -m hourglass.engine.tree)

# A checker that is missing is left out, with a word; where CI is set, that fails.
check: developer
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@cd agent && if cargo fmt --version >/dev/null 2>&1; then cargo fmt --check; \
		else echo "no rustfmt: not checked"; test -z "$${CI:-}"; fi
	@cd agent && if cargo clippy --version >/dev/null 2>&1; then cargo clippy --locked --quiet --all-targets -- -D warnings; \
		else echo "no clippy: not checked"; test -z "$${CI:-}"; fi
	$(BIN)/python -m hourglass.engine.kernel.check

# Compiles the patch for real kernels, net/ipv4/ as a whole, for x86-64 and a machine of 32 bits; KERNELS="6.1": of these alone.
patches: developer
	$(BIN)/python -m hourglass.engine.kernel.patched $(KERNELS)

# The same bytes on CPUs that QEMU emulates; CPUS="qemu64 max": on these alone. Minutes for each.
other-cpus: developer
	$(BIN)/python -m tests.other_cpus $(CPUS)

# Random scenarios as runs, on all kernels: N of the series SEED; goes on where it was left. Findings: runs/fuzz/*.toml.
N ?= 1000
SEED ?= 1
fuzz: developer
	$(BIN)/python -m tests.fuzz -n $(N) --seed $(SEED)

# Kernels that look for faults run all built-ins and random scenarios; hours. KERNELS="6.1": on these alone.
soak: developer
	$(BIN)/python -m tests.soak $(KERNELS)

# The examples of programs five times each: alone, on a busy machine, by another user elsewhere; EXAMPLES="web nat": these alone.
repeat: developer
	$(BIN)/python -m tests.repeat $(EXAMPLES)

# The performance figures, and each case beside the last release: BASE=REVISION: beside that, BASE=none: by itself.
bench: developer
	$(BIN)/python -m bench $(if $(BASE),--base $(BASE))

# Wheels with everything inside, of each kernel, in $(DIST). PYTHONPATH: this checkout's code, whatever is installed.
DIST ?= dist
wheel: developer
	PYTHONPATH=src $(BIN)/python -m release.wheel --dist $(DIST)

# All artefacts, made twice and tried where they are installed: dist/ and the CHANGELOG's section. As root.
release: developer
	$(BIN)/python -m release

# Of the wheel in dist/: the OCI image; installations in bare roots.
image: developer
	$(BIN)/python -m release.image
places: developer
	$(BIN)/python -m release.check

clean:
	rm -rf .venv agent/target .pytest_cache .mypy_cache .ruff_cache
	@echo "runs/ and the kernels in \$${XDG_CACHE_HOME:-~/.cache}/hourglass are kept"
