"""The blocks of KV cache that a KV-aware router knows.

A separate program: ``python -m tests.engines.comparison.router_view ENDPOINT BLOCK_SIZE FILE``. It runs
Dynamo's own router next to those of the frontends, and writes what it knows to a file whenever that changes.
The environment is that of a frontend.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from dynamo.common.utils.runtime import create_runtime
from dynamo.llm import KvRouter, KvRouterConfig

_PERIOD_SECONDS = 0.1


def known_blocks(file: Path) -> list[dict[str, Any]]:
    """Return the blocks of the file, with ``worker``, ``tokens_hash``, ``block_hash`` and ``root``."""
    known = []
    for event in json.loads(file.read_text(encoding="utf-8")):
        stored = event["event"]["data"]["stored"]
        for index, block in enumerate(stored["blocks"]):
            root = index == 0 and stored["parent_hash"] is None
            known.append({**block, "worker": event["worker_id"], "root": root})
    return known


async def _watch(endpoint: str, block_size: int, file: Path) -> None:
    """Write what the router knows until the process ends."""
    runtime, _ = create_runtime("file", "tcp", "zmq")
    router = KvRouter(runtime.endpoint(endpoint), block_size, KvRouterConfig())
    written = ""
    while True:
        known = await router.dump_events()
        if known != written:
            new = file.with_suffix(".new")
            new.write_text(known, encoding="utf-8")
            new.replace(file)
            written = known
        await asyncio.sleep(_PERIOD_SECONDS)


if __name__ == "__main__":
    asyncio.run(_watch(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
