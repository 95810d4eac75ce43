# Needs make and Python 3.11 or newer; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test test-model lint lint-docker bench clean

help:  ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(READY)  ## Run the sample's five stories; KEEP=1 leaves the server up until Ctrl-C
	@$(RUN) -m samples.order.demo $(if $(KEEP),--keep)

# The sandbox imports modules again for every run: without bytecode it would compile them each time.
test: $(READY)  ## Run the tests; ARGS goes to pytest
	@PYTHONDONTWRITEBYTECODE= $(RUN) -m pytest -n 2 --dist loadfile $(ARGS)

test-model: $(READY)  ## Compare 3000 random programs with the model; SEED picks them
	@MODEL_PROGRAMS=3000 MODEL_SEED=$(or $(SEED),random) $(RUN) -m pytest tests/model -k random_programs $(ARGS)

lint: $(READY)  ## Run the linters and the type checker
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy
	@$(VENV)/bin/lint-imports

lint-docker: $(VENV)/.docker-ready  ## Check the files in docker/; needs no engine
	@$(RUN) -m pytest -q -m "not slow" tests/docker $(ARGS)

bench: $(READY)  ## Run the benchmarks; ARGS goes to them
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(RUN) -m benchmarks $(ARGS)

clean:  ## Remove .venv, .demo and caches
	@rm -rf $(VENV) .demo build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	@echo "Preparing $(VENV), once; this takes about a minute ..."
	@$(PYTHON) -m venv $(VENV)
	@$(RUN) -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@

# Prometheus is not on PyPI. Without it, the tests that need it are skipped, and say so.
$(VENV)/.docker-ready: $(READY) docker/get_prometheus.sh
	@echo "Getting what checks the stack, once; some 75 MB ..."
	@$(RUN) -m pip install -qq --disable-pip-version-check -e '.[dev,docker]'
	@docker/get_prometheus.sh $(VENV)/bin || echo "no Prometheus: put prometheus and promtool on the PATH"
	@touch $@
