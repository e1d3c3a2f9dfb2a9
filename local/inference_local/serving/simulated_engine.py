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

The mocker reads neither constraints on an answer nor ``n`` (``lib/llm/src/mocker.rs``). So each process also
registers the model under a second name, if ``structured_answers.NAME_VARIABLE`` has one. The relay sends
requests there that need it. Each answer takes the time of a request to the mocker of as many tokens. Other
requests do not pass through Python.

The mocker registers no aliases either (``make_engine`` has none for it), as Dynamo's workers do
(``model_aliases`` of ``register_model``). So the further names of the model are aliases of that second name:
the same endpoint answers them, and the frontend sends their requests to workers in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import runpy
import sys
import traceback
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from dynamo.common.token_budget import TokenBudget, publish_token_budget
from dynamo.common.utils.graceful_shutdown import graceful_shutdown_with_discovery
from dynamo.llm import ModelInput, ModelType, RouterConfig, RouterMode, WorkerType, register_model
from dynamo.llm.exceptions import InvalidArgument

# Imports the module, not its names, because a function of it is replaced below.
_mocker: Any = import_module("dynamo.mocker.main")
_build_runtime_config = _mocker.build_runtime_config
_run_input = _mocker.run_input
_BREAK_SECONDS = 0.5
# A file, not a module: this Python need not have the package.
_STRUCTURED = runpy.run_path(str(Path(__file__).with_name("structured_answers.py")))
_PREFILL = "prefill"
#: Name of the model for requests that demand a structure. Nothing answers them without it.
_SECOND_NAME = os.environ.get(_STRUCTURED["NAME_VARIABLE"])

_ALIASES = [
    name + end
    for name in os.environ.get(_STRUCTURED["ALIASES_VARIABLE"], "").split(",")
    if name
    for end in ("", _STRUCTURED["SUFFIX"])
]


@cache
def _model() -> argparse.Namespace:
    """Read the name of the model and the folder of its files in the command line."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--model-path")
    options.add_argument("--model-name")
    return options.parse_known_args()[0]


def _given() -> argparse.Namespace:
    """Take parsers and thinking out of the command line, which the mocker reads afterwards."""
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_argument("--dyn-reasoning-parser")
    options.add_argument("--dyn-tool-call-parser")
    options.add_argument("--dyn-default-thinking-mode")
    given, sys.argv[1:] = options.parse_known_args()
    return given


def _registering(given: argparse.Namespace, workers: _Workers) -> Any:
    def build_runtime_config(engine_args: Any) -> tuple[int, Any]:
        block_size, config = _build_runtime_config(engine_args)
        budget = TokenBudget(config.context_length, reject_prompt_overflow=True, reject_total_overflow=True)
        publish_token_budget(config, budget)
        if engine_args["engine"]["worker_type"] != _PREFILL:  # a prefill worker answers no request itself
            config.reasoning_parser = given.dyn_reasoning_parser
            config.tool_call_parser = given.dyn_tool_call_parser
            if given.dyn_default_thinking_mode:
                # As ``dynamo/vllm/main.py`` registers it.
                config.set_engine_specific(
                    "default_thinking_mode", json.dumps(given.dyn_default_thinking_mode)
                )
            workers.answering = block_size, config
        return block_size, config

    return build_runtime_config


class _StructuredAnswers:
    """Answers requests with a constraint or several choices, at the pace of the mocker.

    mocker: Endpoint of the mocker's workers.
    """

    def __init__(self, mocker: Any) -> None:
        self._endpoint = mocker
        self._client: Any = None

    async def _mocker(self) -> Any:
        """Return a client of the mocker. It watches folders, whose number Linux limits, so it starts late."""
        if self._client is None:
            self._client = await self._endpoint.client()
        await self._client.wait_for_instances()
        return self._client

    async def generate(self, request: Mapping[str, Any], context: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield the pieces of all choices as the mocker gives them. Dynamo calls this for each request."""
        options = request["sampling_options"]
        seed, constraint = hash(tuple(request["token_ids"])), options["guided_decoding"]
        numbers = range(options["n"] or 1)
        try:
            texts = [
                _STRUCTURED["structured_tokens"](constraint, seed + number) if constraint else None
                for number in numbers
            ]
        except _STRUCTURED["NoExampleError"] as error:
            raise InvalidArgument(str(error)) from None
        inners = [_without_structure(request, text) for text in texts]
        mocker = await self._mocker()
        asked = [context.detached(f"{context.id()}-{number}") for number in numbers]
        try:
            choices = [
                self._choice(number, text, await mocker.generate(inner, annotated=False, context=each))
                for number, text, inner, each in zip(numbers, texts, inners, asked, strict=True)
            ]
            while choices and not context.is_stopped():
                for choice in tuple(choices):
                    piece = await anext(choice, None)
                    if piece is None:
                        choices.remove(choice)
                    else:
                        yield piece
        finally:
            for each in asked:
                each.stop_generating()

    @staticmethod
    async def _choice(
        number: int, text: Sequence[str] | None, pieces: AsyncIterator[dict[str, Any]]
    ) -> AsyncIterator[dict[str, Any]]:
        written = 0
        async for piece in pieces:
            given = {**piece, "index": number}
            if text is not None and piece["token_ids"]:
                given["text"] = text[written]
                written += 1
            if text is not None and piece["finish_reason"] and written == len(text):
                given["finish_reason"] = "stop"
            yield given


def _without_structure(request: Mapping[str, Any], text: Sequence[str] | None) -> dict[str, Any]:
    """Return the request to the mocker for one choice, of the length of its text."""
    stops = request["stop_conditions"]
    if text is not None:
        stops = {**stops, "max_tokens": min(len(text), stops["max_tokens"] or len(text))}
    options = {**request["sampling_options"], "guided_decoding": None, "n": None}
    model = _model().model_name  # a label of the worker's metrics
    return {**request, "model": model, "sampling_options": options, "stop_conditions": stops}


class _Workers:
    """The workers of this process, which end together."""

    def __init__(self) -> None:
        self._runtimes: list[Any] = []
        self._endpoints: list[Any] = []
        self.answering: tuple[int, Any] | None = None
        """Block size and configuration of workers that answer. None for prefill workers."""

    def run_input(self, runtime: Any, endpoint: str, engine: Any) -> Any:
        served = runtime.endpoint(endpoint.removeprefix("dyn://"))
        if _SECOND_NAME and self.answering and not self._runtimes:
            structured = self._serve_structured(runtime, endpoint.removeprefix("dyn://"), *self.answering)
            self._structured = asyncio.get_running_loop().create_task(structured)
        self._runtimes.append(runtime)
        self._endpoints.append(served)
        return _run_input(runtime, endpoint, engine)

    async def _serve_structured(self, runtime: Any, mocker: str, block_size: int, config: Any) -> None:
        """Register the second name of the model, once for all workers of this process."""
        model = _model()
        endpoint = runtime.endpoint(f"{mocker.rpartition('.')[0]}.structured")
        self._endpoints.append(endpoint)
        try:
            answers = _StructuredAnswers(runtime.endpoint(mocker))
            await register_model(
                ModelInput.Tokens,
                ModelType.Chat | ModelType.Completions,
                endpoint,
                model.model_path,
                _SECOND_NAME,
                worker_type=WorkerType.Aggregated,
                runtime_config=config,
                kv_cache_block_size=block_size,
                router_config=RouterConfig(RouterMode.RoundRobin),
                model_aliases=_ALIASES or None,
            )
            await endpoint.serve_endpoint(answers.generate)
        except Exception:  # noqa: BLE001 - the log of the process shows it
            traceback.print_exc()
            os._exit(1)

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
    _mocker.build_runtime_config = _registering(_given(), _workers)
    _mocker.main()
