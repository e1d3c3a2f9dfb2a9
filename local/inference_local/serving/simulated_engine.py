"""Dynamo's mocker, registered with what Dynamo's workers of a real engine register.

A separate program: ``python -P simulated_engine.py``, with the mocker's arguments and the names of
Dynamo's parsers. Its Python has Dynamo, and need not have this library. It ends as workers of a real
engine do, by the same function of Dynamo (``common/utils/graceful_shutdown.py``): SIGTERM removes it from
discovery, and it serves on for ``DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS``. Then its requests break off,
and the frontend moves them. The mocker of 1.6.1 ends without this time (``graceful_shutdown`` of
``dynamo/mocker/main.py``). What still runs then ends as if it were complete, with too few tokens, where
other workers raise an error (``_monitor_abort`` of ``dynamo/vllm/handlers.py``). It also registers
neither of these:

- The maximum number of tokens. Workers of every engine register it, and the frontend answers requests that
  are too long with 400 (``dynamo/common/token_budget.py``). Without it, such requests end with 500.
- The parsers of reasoning and tool calls (``register_vllm_model`` in ``dynamo/vllm/main.py``). The frontend
  runs them. Without them, a forced tool call is sent in one piece, and ``usage`` has no ``reasoning_tokens``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from importlib import import_module
from typing import Any

from dynamo.common.token_budget import TokenBudget, publish_token_budget
from dynamo.common.utils.graceful_shutdown import graceful_shutdown_with_discovery

# Imports the module, not its names, because a function of it is replaced below.
_mocker: Any = import_module("dynamo.mocker.main")
_build_runtime_config = _mocker.build_runtime_config
_run_input = _mocker.run_input
_BREAK_SECONDS = 0.5


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


class _Workers:
    """The workers of this process, which end together."""

    def __init__(self) -> None:
        self._runtimes: list[Any] = []
        self._endpoints: list[Any] = []

    def run_input(self, runtime: Any, endpoint: str, engine: Any) -> Any:
        self._runtimes.append(runtime)
        self._endpoints.append(runtime.endpoint(endpoint.removeprefix("dyn://")))
        return _run_input(runtime, endpoint, engine)

    async def graceful_shutdown(self, _: list[Any]) -> None:
        runtimes: Any = self  # it only calls `shutdown`
        await graceful_shutdown_with_discovery(runtimes, self._endpoints)

    def shutdown(self) -> None:
        for runtime in self._runtimes:
            runtime.shutdown()
        # Without requests, the runtimes end sooner.
        asyncio.get_running_loop().call_later(_BREAK_SECONDS, os._exit, 0)


if __name__ == "__main__":
    _workers = _Workers()
    _mocker.run_input = _workers.run_input
    _mocker.graceful_shutdown = _workers.graceful_shutdown
    _mocker.build_runtime_config = _registering(_parsers())
    _mocker.main()
