# Needs Python 3.11 to 3.14 and make, nothing else; the rest is installed into $(VENV), from the locks.
#   make demo      set up, then protect a made-up day and show what it tells
#   make test      set up, then check style, types and behaviour on one Python
#   make docs      set up, then build the documents as a site, build/site/index.html
#   make test-all  the behaviour also on every other supported Python of this machine

.DEFAULT_GOAL := help
VENV ?= .venv
PYTEST_ARGS ?= -n 2
# Without what needs data of its own, or long.
BENCHMARKS = $(filter-out _% activity_floors large_files prior_held_out realism realism_attack realism_design validation comparison,$(basename $(notdir $(wildcard benchmarks/*.py))))
SOURCES = $(wildcard trailveil tests benchmarks docs/site)
PIP = $(VENV)/bin/python -m pip -qq --disable-pip-version-check --no-input
LOCK = uv pip compile pyproject.toml --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock" $(LOCK_ARGS)

# Prints "3.12 /path/of/python" for each supported Python that runs and can make an environment, the default
# `python3` first, one for each minor version. A name on PATH proves nothing: it may be a shim that fails.
define FIND_PYTHONS
for python in python3 python3.14 python3.13 python3.12 python3.11 python \
		"$$HOME"/.pyenv/versions/*/bin/python3; do \
	"$$python" -c 'import ensurepip, venv, sys; v = sys.version_info[:2]; \
(3, 11) <= v < (3, 15) and print("%d.%d" % v, sys.executable)' </dev/null 2>/dev/null; \
done | awk '!seen[$$1]++'
endef

# Bytecode is written when Python first uses a file, whatever this machine's settings: without it each of
# the many processes of the tests takes two to three times as long.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo docs test test-all test-others pytest lint lock bench validation designs clean setup setup-dev

help:
	@sed -n 's/^#   //p' Makefile

demo: setup
	$(VENV)/bin/trailveil demo

test: lint pytest

lint: setup-dev
	$(VENV)/bin/ruff check $(SOURCES)
	$(VENV)/bin/ruff format --check $(SOURCES)
	$(VENV)/bin/mypy $(SOURCES)

# One thread for each of the processes: they would fight over the cores.
pytest: setup-dev
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python -m pytest $(PYTEST_ARGS)

test-all: test test-others

# One environment for each: .venv-3.12, ...
test-others: setup-dev
	@default=$$($(VENV)/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])') && \
	{ $(FIND_PYTHONS); } | while read -r version python; do \
		if [ "$$version" = "$$default" ]; then continue; fi; \
		echo "== Tests on Python $$version"; \
		$(MAKE) --no-print-directory pytest VENV=".venv-$$version" PYTHON="$$python" </dev/null || exit 1; \
	done

# Warnings, such as of a link that leads nowhere, are errors.
docs: setup-dev
	rm -rf build/site
	$(VENV)/bin/python -m sphinx -W --keep-going -q -c docs/site -d build/site-doctrees . build/site
	@echo "The site begins at build/site/index.html"

bench: setup-dev
	@for file in $(BENCHMARKS); do echo "== $$file"; $(VENV)/bin/python -m "benchmarks.$$file" || exit 1; done

# The tables of docs/validation.md, from the results that are kept.
validation: setup-dev
	$(VENV)/bin/python -m benchmarks.validation

# The noise that ships with the package; some seven minutes. DESIGNS_ARGS=--missing keeps what is there.
designs: setup-dev
	OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python -m benchmarks._shipped_designs $(DESIGNS_ARGS)

# Needs uv, which nothing else does.
lock:
	$(LOCK) --group dev --output-file requirements-dev.txt
	$(LOCK) --group build --extra plots --extra page --constraint requirements-dev.txt --output-file requirements.txt

clean:
	rm -rf .venv .venv-[0-9]* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up is done again when a lock or the package's description is newer than the stamp. Nothing is compiled
# to bytecode ahead: that would take as long as all the rest, and Python does it for what is used.
setup: $(VENV)/.run
setup-dev: $(VENV)/.dev

$(VENV)/bin/python:
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then python=$$({ $(FIND_PYTHONS); } | head -n 1 | cut -d ' ' -f 2-); fi; \
	if [ -z "$$python" ]; then \
		echo "No Python from 3.11 to 3.14 that can make environments was found: install one, or say make PYTHON=/path/of/python." >&2; \
		exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$python"; \
	"$$python" -m venv "$(VENV)"

$(VENV)/.run: requirements.txt pyproject.toml trailveil/version.py | $(VENV)/bin/python
	@echo "Installing Trailveil and what it needs, from requirements.txt"
	@$(PIP) install --no-compile --require-hashes -r requirements.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.txt pyproject.toml trailveil/version.py | $(VENV)/bin/python
	@echo "Installing Trailveil and its tools, from requirements-dev.txt"
	@$(PIP) install --no-compile --require-hashes -r requirements-dev.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.run
