"""Dynamo's mocker, registered with what Dynamo's workers of a real engine register.

A separate program: ``python -m inference_blueprints.targets.local.simulated_engine``, with the mocker's
arguments and the names of Dynamo's parsers. The mocker of 1.6.1 registers neither of these:

- The maximum number of tokens. Workers of every engine register it, and the frontend answers requests that
  are too long with 400 (``dynamo/common/token_budget.py``). Without it, such requests end with 500.
- The parsers of reasoning and tool calls (``register_vllm_model`` in ``dynamo/vllm/main.py``). The frontend
  runs them. Without them, a forced tool call is sent in one piece, and ``usage`` has no ``reasoning_tokens``.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

from dynamo.common.token_budget import TokenBudget, publish_token_budget

# Imports the module, not its names, because a function of it is replaced below.
_mocker: Any = import_module("dynamo.mocker.main")
_build_runtime_config = _mocker.build_runtime_config


def _parsers() -> argparse.Namespace:
    """Take the names of the parsers out of the command line, which the mocker reads afterwards."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--dyn-reasoning-parser")
    options.add_argument("--dyn-tool-call-parser")
    parsers, sys.argv[1:] = options.parse_known_args()
    return parsers


def _registering(parsers: argparse.Namespace) -> Any:
    def build_runtime_config(engine_args: Any) -> tuple[int, Any]:
        block_size, config = _build_runtime_config(engine_args)
        budget = TokenBudget(config.context_length, reject_prompt_overflow=True, reject_total_overflow=True)
        publish_token_budget(config, budget)
        if engine_args["engine"]["worker_type"] != "prefill":  # a prefill worker answers no request itself
            config.reasoning_parser = parsers.dyn_reasoning_parser
            config.tool_call_parser = parsers.dyn_tool_call_parser
        return block_size, config

    return build_runtime_config


if __name__ == "__main__":
    _mocker.build_runtime_config = _registering(_parsers())
    _mocker.main()
