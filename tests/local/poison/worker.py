"""A worker of Dynamo that ends when it is asked for exactly `DEADLY` tokens, and notes what it is asked for.

``python -m tests.local.poison.worker MODEL_FOLDER NOTES``
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvloop
from dynamo.common.utils.graceful_shutdown import install_signal_handlers
from dynamo.llm import ModelInput, ModelType, WorkerType, register_model
from dynamo.runtime import DistributedRuntime

MODEL = "model"
DEADLY = 13
_STEP_SECONDS = 0.05
_FIRST_TOKEN = 1000


async def _serve(folder: str, notes: Path) -> None:
    def note(text: str) -> None:
        with notes.open("a") as file:
            file.write(f"{os.getpid()} {text}\n")

    async def generate(request: dict[str, Any], context: Any) -> AsyncIterator[dict[str, Any]]:
        tokens = request["stop_conditions"]["max_tokens"]
        note(f"asked {tokens}")
        if tokens == DEADLY:
            os._exit(1)
        for place in range(tokens):
            if context.is_stopped() or context.is_killed():
                note(f"stopped {tokens}")
                return
            yield {"token_ids": [_FIRST_TOKEN + place]}
            await asyncio.sleep(_STEP_SECONDS)
        yield {"token_ids": [], "finish_reason": "length"}

    runtime = DistributedRuntime(asyncio.get_running_loop(), "file", "tcp")
    endpoint = runtime.endpoint("dynamo.backend.generate")
    # Dynamo's workers of every engine end so: they leave discovery, and answer on.
    install_signal_handlers(asyncio.get_running_loop(), runtime, [endpoint])
    kinds = ModelType.Chat | ModelType.Completions
    await register_model(
        ModelInput.Tokens, kinds, endpoint, folder, MODEL, worker_type=WorkerType.Aggregated, needs=[]
    )
    await endpoint.serve_endpoint(generate, graceful_shutdown=True)


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1], Path(sys.argv[2])))
