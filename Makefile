# SPDX-License-Identifier: Apache-2.0
# make run     what Hourglass is for: the same uploads with and without TCP Small Queues, side by side
# make tune    makes runs faster by up to a tenth: the kernel once more, with PGO
# make test    tests on the default kernel; make test-all: all tests, on all kernels; make quick: those without a guest
# make check   style and types
# make docs    the documentation site: build/docs/html/index.html
# make setup   only what a run needs, but no kernel; seconds when nothing changed; make developer: what tests need, too

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

BIN := .venv/bin
HOURGLASS := $(BIN)/hourglass
SCHEMAS := src/hourglass/schema/scenario.schema.json

# What Python compiled is kept, even where the environment forbids it: else each command takes a second more.
unexport PYTHONDONTWRITEBYTECODE

# Looked for when it is needed: it may be installed by then.
SYSTEM_PYTHON = $$(for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
USABLE_PYTHON = { python=$(SYSTEM_PYTHON) && $$python -c 'import venv, ensurepip' 2>/dev/null; }
BEGINNING := python3 python3-venv ca-certificates

.PHONY: run tune test test-all quick check begin ready kernel source root bench fuzz fuzz-calls soak repeat loaded patches other-cpus wheel setup developer packages agent \
	release image places docs clean

run: begin
	@$(MAKE) --no-print-directory -j3 ready
	$(call step,L100M without TSQ,$(HOURGLASS) run L100M --set stack.tsq=off --out runs/L100M-notsq)
	$(call step,L100M,$(HOURGLASS) run L100M --out runs/L100M-tsq)
	$(call step,comparison,$(HOURGLASS) compare runs/L100M-notsq runs/L100M-tsq --out runs/L100M.png)
	$(told)

tune: setup
	@$(HOURGLASS) kernel tune

# All parts of each, whatever fails, and a table of them; what they take is installed first (tests/tools.py).
test test-all quick check: .venv/developer
	@$(BIN)/python -m tests $@

# $(call step,WHAT,COMMAND): runs it and prints what took longer than a second; after `begin`, $(told) does. The shell
# becomes a single command, so make's SIGTERM reaches it.
STEPS := runs/.steps
tenths = $$(( ($${EPOCHREALTIME/[.,]/} - $(1)) / 100000 ))
define step
@mkdir -p $(dir $(STEPS)); echo "$${EPOCHREALTIME/[.,]/}" >$(STEPS).$(@F)
@$(2)
@spent=$(call tenths,$$(<$(STEPS).$(@F))); rm $(STEPS).$(@F); \
	if [ $$spent -ge 10 ]; then [ -e $(STEPS) ] && exec >>$(STEPS); \
		printf '%6d.%d s  %s\n' $$((spent / 10)) $$((spent % 10)) "$(1)"; fi
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
	$(call step,kernel source,$(BIN)/python -m hourglass.builders.kernel.source_tree)

setup: agent root $(SCHEMAS)
	@$(BIN)/python -m compileall -q src

# Editors complete scenarios by them: the repository's own name them (`#:schema`).
$(SCHEMAS): $(wildcard $(patsubst %,src/hourglass/%/*.py,contract scenario schema studies)) | .venv/installed
	$(call step,schemas,$(BIN)/python -m hourglass.schema)

# Installs what is missing when we may; else says what to install.
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

# What those need who change something: linters, test runners.
developer: setup .venv/developer
.venv/developer: pyproject.toml | .venv/installed
	$(call step,Python packages for tests,$(PIP) '.[dev]')
	@touch $@ .venv/docs

# The documentation site. The runs of its gallery need the kernel. After the first call, or make developer, it needs no network.
docs: ready .venv/docs
	@$(BIN)/python -m website
.venv/docs: pyproject.toml | .venv/installed
	$(call step,Python packages for the site,$(PIP) '.[docs]')
	@touch $@

# Python compiles what it imports, when it first does: a third of what is installed. Once for all commands:
COMMANDS := from hourglass.cli import commands, pictures, run, tables; from hourglass.results import run_directory; pictures.plots()
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e

agent: packages
	$(call step,agent,$(BIN)/python -m hourglass.builders.agent)
root: packages
	$(call step,guest root,$(BIN)/python -m hourglass.builders.tool_packages)

# Compiles the patch for real kernels, net/ipv4/ as a whole, for x86-64 and a machine of 32 bits; KERNELS="6.1": of these alone.
patches: developer
	$(BIN)/python -m hourglass.builders.kernel.patch_check $(KERNELS)

# The same bytes on CPUs that QEMU emulates; CPUS="qemu64 max": on these alone. Minutes for each.
other-cpus: developer
	$(BIN)/python -m tests.other_cpus $(CPUS)

# Random scenarios as runs, on all kernels: N of the series SEED; goes on where it was left. Findings: runs/fuzz/*.toml.
N ?= 1000
SEED ?= 1
fuzz: developer
	$(BIN)/python -m tests.fuzz -n $(N) --seed $(SEED)

# Random system calls of programs, for so many seconds on each kernel: the host must stay as it was.
SECONDS ?= 3600
fuzz-calls: developer
	$(BIN)/python -m tests.fuzz.system_calls --seconds $(SECONDS) --seed $(SEED)

# Kernels that look for faults run all built-ins and random scenarios; hours. KERNELS="6.1": on these alone.
soak: developer
	$(BIN)/python -m tests.soak $(KERNELS)

# The examples of programs five times each: alone, on a busy machine, by another user elsewhere; EXAMPLES="web nat": these alone.
repeat: developer
	$(BIN)/python -m tests.repeat $(EXAMPLES)

# The tests that depend on real time, ROUNDS times beside four processes that spin. A round takes a quarter of an hour.
ROUNDS ?= 20
loaded: developer
	$(BIN)/python -m tests.loaded $(ROUNDS)

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
