"""Dynamo's mocker, which tells the frontend of its context what Dynamo's workers tell.

A program of its own: ``python -m inference_blueprints.targets.local.simulated_engine``, with the mocker's
arguments. Workers of every engine publish which requests are too long, and the frontend answers those with
400 (``dynamo/common/token_budget.py`` of 1.6.1). The mocker of that release does not, and fails at them with
500.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from dynamo.common.token_budget import TokenBudget, publish_token_budget

# The module and not its names: one of them is replaced where the module itself looks it up.
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
