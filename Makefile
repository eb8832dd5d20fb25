# Two commands do everything on a fresh machine with Python 3.11 or newer and git: `make demo`, `make test`.
# `make quick` is the part of `make test` for while one edits.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test quick clean

demo: $(VENV)/.demo
	@$(BIN)/python tooling/demo.py

test: $(VENV)/.dev
	@$(BIN)/python tooling/check.py

quick: $(VENV)/.dev
	@$(BIN)/python tooling/check.py --quick

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist
