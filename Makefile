# SPDX-License-Identifier: Apache-2.0
# make run     the same uploads with and without TCP Small Queues, side by side
# make tune    builds the kernel again with PGO: runs are up to a tenth faster
# make test    tests on the default kernel; make test-all: all tests on all kernels; make quick: tests without a guest
# make check   style and types
# make docs    the documentation site: build/docs/html/index.html
# make setup   all that a run needs except a kernel; seconds if nothing changed; make developer: also the tools of tests

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

BIN := .venv/bin
HOURGLASS := $(BIN)/hourglass
SCHEMAS := src/hourglass/schema/scenario.schema.json

# Python stores compiled modules, even if the environment forbids it. Without them, each command takes a second more.
unexport PYTHONDONTWRITEBYTECODE

# Searched for at the first use: an earlier rule may install it.
SYSTEM_PYTHON = $$(for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
USABLE_PYTHON = { python=$(SYSTEM_PYTHON) && $$python -c 'import venv, ensurepip' 2>/dev/null; }
BEGINNING := python3 python3-venv ca-certificates

.PHONY: run tune test test-all quick check begin ready kernel source root bench fuzz fuzz-calls soak repeat debian loaded patches other-cpus wheel setup developer packages agent \
	release image places docs clean

run: begin
	@$(MAKE) --no-print-directory -j3 ready
	$(call step,L100M without TSQ,$(HOURGLASS) run L100M --set stack.tsq=off --out runs/L100M-notsq)
	$(call step,L100M,$(HOURGLASS) run L100M --out runs/L100M-tsq)
	$(call step,comparison,$(HOURGLASS) compare runs/L100M-notsq runs/L100M-tsq --picture runs/L100M.png)
	$(timings)

tune: setup
	@$(HOURGLASS) kernel tune

# Runs all parts, even if one fails, and prints a table of them. Installs their tools first (tests/tools.py).
test test-all quick check: .venv/developer
	@$(BIN)/python -m tests $@

# $(call step,NAME,COMMAND): runs the command and prints its time if it took longer than a second. After `begin`,
# $(timings) prints the times. The shell becomes a single command, so make's SIGTERM reaches it.
STEPS := runs/.steps
tenths = $$(( ($${EPOCHREALTIME/[.,]/} - $(1)) / 100000 ))
define step
@mkdir -p $(dir $(STEPS)); echo "$${EPOCHREALTIME/[.,]/}" >$(STEPS).$(@F)
@$(2)
@spent=$(call tenths,$$(<$(STEPS).$(@F))); rm $(STEPS).$(@F); \
	if [ $$spent -ge 10 ]; then [ -e $(STEPS) ] && exec >>$(STEPS); \
		printf '%6d.%d s  %s\n' $$((spent / 10)) $$((spent % 10)) "$(1)"; fi
endef
define timings
	@spent=$(call tenths,$$(head -1 $(STEPS))); \
	printf '\nWhere the time went (agent, guest root and kernel are built in parallel):\n'; tail -n +2 $(STEPS); \
	printf '%6d.%d s  in all\n' $$((spent / 10)) $$((spent % 10)); rm $(STEPS)
endef
begin:
	@mkdir -p $(dir $(STEPS)); echo "$${EPOCHREALTIME/[.,]/}" >$(STEPS)

# Parts that the first run needs; `make run` builds them in parallel.
ready: setup kernel
kernel: source
	$(call step,kernel,$(HOURGLASS) kernel build 6.1)
source: packages
	$(call step,kernel source,$(BIN)/python -m hourglass.builders.kernel.source_tree)

setup: agent root $(SCHEMAS)
	@$(BIN)/python -m compileall -q src

# Editors complete scenarios with them. The scenarios of the repository name their schema (`#:schema`).
$(SCHEMAS): $(wildcard $(patsubst %,src/hourglass/%/*.py,contract scenario schema studies)) | .venv/installed
	$(call step,schemas,$(BIN)/python -m hourglass.schema)

# Installs missing packages as root; otherwise prints the command.
packages: .venv/installed
	$(call step,Debian packages,$(BIN)/python -m hourglass.engine.doctor)

.venv/installed: pyproject.toml
	@if ! $(USABLE_PYTHON); then \
		if [ "$$(id -u)" = 0 ]; then echo "installing $(BEGINNING)"; apt-get update -qq; \
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(BEGINNING) >/dev/null; \
		else echo "please run: sudo apt-get install -y $(BEGINNING)" >&2; exit 3; fi; fi
	@if [ ! -x $(BIN)/python ]; then $(SYSTEM_PYTHON) -m venv .venv; fi
	$(call step,Python packages,$(PIP) .)
	@$(BIN)/python -c '$(COMMANDS)'
	@touch $@

# The tools of contributors: linters, test runners.
developer: setup .venv/developer
.venv/developer: pyproject.toml | .venv/installed
	$(call step,Python packages for tests,$(PIP) '.[dev]')
	@touch $@ .venv/docs

# The documentation site. The runs of its gallery need the kernel. After the first call, or make developer, it needs no
# network.
docs: ready .venv/docs
	@$(BIN)/python -m website
.venv/docs: pyproject.toml | .venv/installed
	$(call step,Python packages for the site,$(PIP) '.[docs]')
	@touch $@

# Python compiles a module at its first import. These imports compile the modules of all commands, a third of those
# installed.
COMMANDS := from hourglass.cli import commands, pictures, run, tables; from hourglass.results import run_directory; pictures.plots()
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e

agent: packages
	$(call step,agent,$(BIN)/python -m hourglass.builders.agent)
root: packages
	$(call step,guest root,$(BIN)/python -m hourglass.builders.tool_packages)

# Compiles all of net/ipv4/ with the patch for real kernels, on x86-64 and 32 bits. KERNELS="6.1": only these.
patches: developer
	$(BIN)/python -m hourglass.builders.kernel.patch_check $(KERNELS)

# Checks that CPUs that QEMU emulates give the same bytes. CPUS="qemu64 max": only these. Minutes for each.
other-cpus: developer
	$(BIN)/python -m tests.other_cpus $(CPUS)

# Runs N random scenarios of the series SEED on all kernels; continues an earlier series. Findings: runs/fuzz/*.toml.
N ?= 1000
SEED ?= 1
fuzz: developer
	$(BIN)/python -m tests.fuzz -n $(N) --seed $(SEED)

# Random system calls of programs, for SECONDS on each kernel: they must not change the host.
SECONDS ?= 3600
fuzz-calls: developer
	$(BIN)/python -m tests.fuzz.system_calls --seconds $(SECONDS) --seed $(SEED)

# Runs all built-ins and random scenarios on kernels that detect faults. Takes hours. KERNELS="6.1": only these.
soak: developer
	$(BIN)/python -m tests.soak $(KERNELS)

# Runs each example of programs five times: alone, on a busy machine, by another user. EXAMPLES="web nat": only these.
repeat: developer
	$(BIN)/python -m tests.repeat $(EXAMPLES)

# Runs the programs of Debian in scenarios/debian three times, and writes their table. PROGRAMS="caddy znc": only these.
debian: developer
	$(BIN)/python -m tests.debian_programs $(PROGRAMS)

# The tests that depend on real time, ROUNDS times next to four processes that spin. A round takes a quarter of an hour.
ROUNDS ?= 20
loaded: developer
	$(BIN)/python -m tests.loaded $(ROUNDS)

# The performance figures, each compared with the last release. BASE=REVISION: compared with this; BASE=none: alone.
bench: developer
	$(BIN)/python -m bench $(if $(BASE),--base $(BASE))

# Complete wheels of each kernel, in $(DIST). PYTHONPATH selects this checkout's code instead of an installed one.
DIST ?= dist
wheel: developer
	PYTHONPATH=src $(BIN)/python -m release.wheel --dist $(DIST)

# All artefacts, built twice and tested in installations: dist/ and the CHANGELOG's section. As root.
release: developer
	$(BIN)/python -m release

# From the wheel in dist/: the OCI image, and installations in bare roots.
image: developer
	$(BIN)/python -m release.image
places: developer
	$(BIN)/python -m release.check

clean:
	rm -rf .venv agent/target .pytest_cache .mypy_cache .ruff_cache
	@echo "runs/ and the kernels in \$${XDG_CACHE_HOME:-~/.cache}/hourglass remain"
