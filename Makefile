# `make help` lists the targets. Every target prepares what it needs; nothing has to be activated.
SHELL := /bin/sh
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
BLUEPRINT ?= quickstart-g6e
READY := $(VENV)/.ready
export BLUEPRINT

.PHONY: help setup run test lint bench docs lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: $(READY) ## prepare .venv with the command `blueprints` and all tools

$(READY): pyproject.toml requirements.lock package-lock.json scripts/setup.sh
	@PYTHON=$(PYTHON) sh scripts/setup.sh

