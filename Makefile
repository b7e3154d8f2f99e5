# Two commands do everything: `make cluster` and `make test`. `make help` lists the others.
CACHE := $(or $(SALTERN_CACHE),/var/cache/saltern-lab)
VENV := $(CACHE)/venv-$(shell cat requirements-dev.txt etc/requirements-master.txt | sha256sum | cut -c1-12)
PYTHON := $(VENV)/bin/python
# Plain Python under test, by the names that Salt gives it.
export PYTHONPATH := $(CURDIR)/_utils:$(CURDIR)/lab
export SALTERN_VENV := $(VENV)
export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help

include lab/lab.mk

.PHONY: help venv check lint unit integration lab-test test bench golden

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

venv:
	@lab/venv.sh $(VENV) requirements-dev.txt

check: lint unit ## the quick part: lint, types, unit, tree and render tests

lint: venv
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy --strict --no-error-summary _utils/saltern
	$(VENV)/bin/mypy --no-error-summary lab/saltern_lab

unit: venv
	$(PYTHON) -m pytest tests/tree tests/unit tests/render

integration: venv ## real master and minion processes on this machine
	$(PYTHON) -m pytest tests/integration

lab-test: venv ## the real cluster: brings the lab up, breaks it, looks at it
	$(PYTHON) -m pytest tests/lab

test: lint ## every test there is
	$(PYTHON) -m pytest tests/tree tests/unit tests/render tests/integration tests/lab

bench: venv ## one JSON object of measurements (ONLY=key,key for a part)
	@$(PYTHON) -m bench $(if $(ONLY),--only $(ONLY))

golden: venv ## write the golden files anew; look at the diff before you commit it
	SALTERN_GOLDEN=write $(PYTHON) -m pytest -q tests/unit -k golden
