"""Protects a task of Amazon ECS while it holds a shard, so that scale-in stops idle tasks first.

A task that is stopped gives its shards back and loses no result, but others have to take them up again. The
worker asks the ECS agent (Amazon ECS Developer Guide, "Amazon ECS task scale-in protection endpoint").
Protection holds off service auto scaling and deployments, but not Spot or the draining of a host.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

import aiohttp

from batch.worker.metrics import log

#: Variable with the address of the agent. Only tasks of ECS have it.
AGENT: Final = "ECS_AGENT_URI"
#: A worker with a long queue always holds a shard. After this time it may be replaced, as a deployment must
#: not wait for the end of the queue.
_LONGEST_MINUTES: Final = 120
_PERIOD_SECONDS: Final = 2.0
_AGAIN_SECONDS: Final = 30.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)


async def keep_protected(is_working: Callable[[], bool]) -> None:
    """Protect the task when it begins to work, and end the protection when it is idle, until cancelled.

    is_working: Returns whether the worker holds a shard.
    """
    protected = False
    async with aiohttp.ClientSession(os.environ[AGENT].rstrip("/") + "/", timeout=_TIMEOUT) as session:
        while True:
            wanted = is_working()
            if wanted != protected:
                if await _protect(session, wanted=wanted):
                    protected = wanted
                else:
                    await asyncio.sleep(_AGAIN_SECONDS)
            await asyncio.sleep(_PERIOD_SECONDS)


async def _protect(session: aiohttp.ClientSession, *, wanted: bool) -> bool:
    """Ask the agent; return whether it did so. Without protection, the worker works all the same."""
    body = {"ProtectionEnabled": wanted} | ({"ExpiresInMinutes": _LONGEST_MINUTES} if wanted else {})
    try:
        async with session.put("task-protection/v1/state", json=body) as answer:
            # The agent answers 200 with `protection`, or with `failure` or `error` and the reason.
            found = await answer.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        log("task_not_protected", reason=f"{type(error).__name__}: {error}")
        return False
    if "protection" not in found:
        log("task_not_protected", reason=str(found)[:500])
        return False
    return True
