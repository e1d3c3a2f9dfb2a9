"""Dynamo's mocker, with the token limits that Dynamo's workers publish.

A separate program: ``python -m inference_blueprints.targets.local.simulated_engine``, with the mocker's
arguments. Workers of every engine publish the maximum number of tokens, and the frontend answers requests
that
are too long with 400 (``dynamo/common/token_budget.py`` of 1.6.1). The mocker of that release publishes no
limits, so such requests would end with 500.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dynamo.common.token_budget import TokenBudget, publish_token_budget

# Imports the module, not its names, because a function of it is replaced below.
_mocker: Any = import_module("dynamo.mocker.main")
_build_runtime_config = _mocker.build_runtime_config


def _with_token_budget(engine_args: Any) -> tuple[int, Any]:
    block_size, config = _build_runtime_config(engine_args)
    budget = TokenBudget(config.context_length, reject_prompt_overflow=True, reject_total_overflow=True)
    publish_token_budget(config, budget)
    return block_size, config


if __name__ == "__main__":
    _mocker.build_runtime_config = _with_token_budget
    _mocker.main()
