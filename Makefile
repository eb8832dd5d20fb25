# Two commands do everything on a fresh machine with Python 3.11 or newer and git: `make demo`, `make test`.
# `make quick` is the part of `make test` for while one edits.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test quick clean

demo: $(VENV)/.demo
	@echo "3/3 running a skill on a PDF"
	@$(BIN)/python tooling/demo.py

test: $(VENV)/.dev
	@$(BIN)/python tooling/check.py

quick: $(VENV)/.dev
	@$(BIN)/python tooling/check.py --quick

$(BIN)/python:
	@echo "1/3 creating the environment $(VENV)"
	@$(PYTHON) -I -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	@echo "2/3 installing: a minute or two the first time"
	@$(BIN)/python tooling/install.py all
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	@$(BIN)/python tooling/install.py dev
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist
