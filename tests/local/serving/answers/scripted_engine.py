"""A worker that answers every request to a model with the same tokens, or with the request itself.

A program: ``python scripted_engine.py FILE``. The file lists models in JSON, each with name, directory,
parsers as on the command line of Dynamo's worker, and the tokens; with ``first_byte``, the token of the first
byte, a model answers with its request. Workers publish parsers in the same way (``dynamo/sglang/register.py``
of ai-dynamo 1.6.1).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from dynamo.common.configuration.groups.runtime_args import DynamoRuntimeArgGroup
from dynamo.llm import ModelInput, ModelRuntimeConfig, ModelType, WorkerType, register_model
from dynamo.runtime import DistributedRuntime

# Few, so that marks of reasoning and tool calls are divided over chunks of a stream.
_TOKENS_PER_CHUNK = 3
_CONTEXT_LENGTH = 4096


def answer(tokens: list[int], first_byte: int | None) -> Callable[[Any], AsyncIterator[dict[str, object]]]:
    async def generate(request: Any) -> AsyncIterator[dict[str, object]]:
        if first_byte is not None:
            yield {"token_ids": [first_byte + byte for byte in json.dumps(request).encode()]}
        for start in range(0, len(tokens), _TOKENS_PER_CHUNK):
            yield {"token_ids": tokens[start : start + _TOKENS_PER_CHUNK]}
        yield {"token_ids": [], "finish_reason": "stop"}

    return generate


def runtime_configuration(arguments: list[str]) -> ModelRuntimeConfig:
    """Read the parsers as Dynamo's workers do, with their own parser of arguments."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    DynamoRuntimeArgGroup().add_arguments(parser)
    parsed = parser.parse_args(arguments)
    configuration = ModelRuntimeConfig()
    configuration.context_length = _CONTEXT_LENGTH
    configuration.reasoning_parser = parsed.dyn_reasoning_parser
    configuration.tool_call_parser = parsed.dyn_tool_call_parser
    return configuration


async def serve(models: list[dict[str, Any]]) -> None:
    runtime = DistributedRuntime(asyncio.get_running_loop(), "file", "tcp")
    served = []
    for index, model in enumerate(models):
        endpoint = runtime.endpoint(f"dynamo.model{index}.generate")
        await register_model(
            ModelInput.Tokens,
            ModelType.Chat | ModelType.Completions,
            endpoint,
            model["directory"],
            model["name"],
            worker_type=WorkerType.Aggregated,
            runtime_config=runtime_configuration(model["arguments"]),
        )
        served.append(endpoint.serve_endpoint(answer(model["tokens"], model.get("first_byte"))))
    await asyncio.gather(*served)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
