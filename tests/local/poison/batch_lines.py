"""Sends the lines of a job to an entry point as two processes of batch do, one line of them deadly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final, cast

from batch.contracts.request import JobDescription
from batch.contracts.shard import ShardLine
from batch.worker.concurrency_limit import ConcurrencyLimit
from batch.worker.drain import Drain
from batch.worker.image_loader import Images
from batch.worker.line_run import LineRunner, ShardTerms
from batch.worker.metrics import Metrics
from batch.worker.model_endpoint import ModelEndpoint, Requests
from batch.worker.retry_budget import RetryBudget
from batch.worker.rows import RowIdentifier

_PATH: Final = "/v1/chat/completions"
_SECONDS: Final = 300.0
_IN_FLIGHT: Final = 25


async def run_shares(url: str, model: str, shares: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Run a process for each share, and return the rows of all lines.

    url: The entry point.
    shares: Tokens that each line of a process asks for.
    """
    rows = await asyncio.gather(
        *(_run_lines(url, model, str(number), share) for number, share in enumerate(shares))
    )
    return [row for each in rows for row in each]


async def _run_lines(url: str, model: str, shard: str, share: Sequence[int]) -> list[dict[str, Any]]:
    limit = ConcurrencyLimit(start=_IN_FLIGHT, minimum=1, maximum=_IN_FLIGHT)
    description = JobDescription("job", "ads", model, _PATH, 0)
    async with ModelEndpoint(url, connect_seconds=5) as endpoint:
        runner = LineRunner(endpoint, limit, RetryBudget(0.1), Metrics("chat", model), 5, _SECONDS)
        terms = ShardTerms(
            identifier=RowIdentifier("job", shard),
            requests=Requests(description, cast("Images", None)),
            path=_PATH,
            deadline=asyncio.get_running_loop().time() + _SECONDS,
            order=0,
            drain=Drain(),
        )

        async def one(number: int, tokens: int) -> dict[str, Any]:
            messages = [{"role": "user", "content": f"line {shard}/{number}"}]
            body = {"model": "any", "messages": messages, "max_tokens": tokens}
            line = ShardLine(number, number + 1, f"{shard}/{number}", 3, body)
            permit = limit.acquire_now() or await limit.acquire(0)
            row: dict[str, Any] = json.loads((await runner.run(line, terms, permit)).row)
            return row

        return await asyncio.gather(*(one(number, tokens) for number, tokens in enumerate(share)))
