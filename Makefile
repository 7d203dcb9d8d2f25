# Each target is what CI runs. On Debian, as root, a target installs the system packages it misses; elsewhere it prints the line to run.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
APT_RUN := python3-venv libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 git
APT_DEV := $(APT_RUN) poppler-utils openssl chromium
PUBLIC_STUDY := specs/public-models$(if $(ACCEPT_GEMMA_TERMS),-gemma).yaml
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo demo-public test check golden bench

demo: $(RUN_STAMP)
	$(BIN)/python specs/demo/demonstrate.py

demo-public: $(RUN_STAMP)
	$(PIP) -e '.[public]'
	$(BIN)/python specs/public/fetch_models.py $(if $(ACCEPT_GEMMA_TERMS),--accept-gemma-terms)
	$(BIN)/evalspec run $(PUBLIC_STUDY)
	$(BIN)/evalspec verify reports/$(basename $(notdir $(PUBLIC_STUDY))) --trust reports/$(basename $(notdir $(PUBLIC_STUDY))).trust.yaml --recompute

test: $(DEV_STAMP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

check: $(DEV_STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

golden: $(DEV_STAMP)
	EVALSPEC_UPDATE_GOLDEN=1 $(BIN)/python -m pytest -q tests
	git --no-pager diff --stat

bench: $(DEV_STAMP)
	$(PIP) -e '.[bench]'
	$(BIN)/python specs/public/fetch_models.py
	$(BIN)/python -m benchmarks

$(RUN_STAMP): pyproject.toml constraints.txt Makefile
	@bash .ci/system-packages $(APT_RUN)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[score,report]'
	touch $@

$(DEV_STAMP): $(RUN_STAMP) tests/plugin/pyproject.toml tests/plugin/evalspec_agreement/__init__.py
	@bash .ci/system-packages $(APT_DEV)
	$(PIP) -e '.[dev]' ./tests/plugin
	touch $@
