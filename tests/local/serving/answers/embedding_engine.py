"""A worker that answers every input with a vector that contains the length of the input.

A program: ``python embedding_engine.py DIRECTORY NAME``. It registers as Dynamo's own embedding worker of
vLLM does (``_create_embedding_worker`` in ``dynamo/vllm/worker_factory.py`` of ai-dynamo 1.6.1).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from dynamo.llm import ModelInput, ModelType, WorkerType, register_model
from dynamo.runtime import DistributedRuntime


async def answer(request: Any) -> AsyncIterator[dict[str, object]]:
    data = [
        {"object": "embedding", "index": index, "embedding": [0.5, float(len(text))]}
        for index, text in enumerate(request["input"])
    ]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    yield {"object": "list", "model": request["model"], "data": data, "usage": usage}


async def serve(directory: str, name: str) -> None:
    runtime = DistributedRuntime(asyncio.get_running_loop(), "file", "tcp")
    endpoint = runtime.endpoint("dynamo.backend.generate")
    await register_model(
        ModelInput.Text,
        ModelType.Embedding,
        endpoint,
        directory,
        name,
        worker_type=WorkerType.Aggregated,
    )
    await endpoint.serve_endpoint(answer)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
