"""How many streams the frontends have moved to another worker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import aiohttp

from inference_contracts.errors import UserError

# Streams that continued on another worker. `…_migration_total` also counts streams that could not move.
_MIGRATIONS = "dynamo_frontend_model_migration_duration_seconds_count{"
#: Kinds of streams: with and without a first token.
UNDER_WAY = "ongoing_request"
NOT_BEGUN = "new_request"


async def moved_streams(session: aiohttp.ClientSession, frontends: Sequence[str], kind: str) -> int:
    """Return how often Dynamo's frontends have moved streams of a kind to another worker.

    frontends: Their URLs, without ``/v1``.
    Raises UserError if a frontend does not answer.
    """
    pages = await asyncio.gather(*(_metrics(session, frontend) for frontend in frontends))
    wanted = (f'migration_type="{kind}"', 'outcome="success"')
    lines = [line for page in pages for line in page.splitlines() if line.startswith(_MIGRATIONS)]
    return sum(round(float(line.split()[-1])) for line in lines if all(word in line for word in wanted))


async def _metrics(session: aiohttp.ClientSession, frontend: str) -> str:
    try:
        async with session.get(f"{frontend}/metrics", raise_for_status=True) as response:
            return await response.text()
    except aiohttp.ClientError as error:
        raise UserError(f"{frontend}/metrics does not answer: {error}") from error
