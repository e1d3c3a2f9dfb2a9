"""Disturbs a platform while clients stream: `python3 -m tests.local.discovery.faults FOLDER ETCD`.

Writes `result.json` with what each disturbance did. It runs in a network namespace, hence in a process of its
own.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from inference_contracts.discovery_roles import SHARED_CLIENT
from inference_contracts.discovery_store import DISCOVERY_LIVENESS_PATH, DISCOVERY_LIVENESS_PORT
from tests.local.counted_streams import Streams
from tests.local.discovery.platform import FRONTENDS, MEMBERS, MODEL, NAMESPACE, OTHER, Platform

_PATIENCE_SECONDS = 120.0
#: How long members are away: well below the lease of the workers, which nobody can renew meanwhile.
_AWAY_SECONDS = 20.0
#: Limit of one answer. It bounds a hang, not a speed.
_ANSWER_SECONDS = 60.0
OLD, NEW = 32_768, 16_384


async def status(url: str) -> int:
    """Return the status of a GET request, 0 if there is no answer."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS)) as session,
            session.get(url) as answer,
        ):
            return answer.status
    except (aiohttp.ClientError, TimeoutError):
        return 0


async def workers(host: str) -> int:
    """Return the number of workers that a frontend knows. -1 if it does not answer."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS)) as session,
            session.get(f"http://{host}:8000/health") as answer,
        ):
            known = await answer.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return -1
    return sum(each.get("endpoint") == "generate" for each in known.get("instances", []))


async def until(platform: Platform, count: int) -> None:
    """Wait until every frontend knows this many workers, and serves their model."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not all([await workers(host) == count and await serves(host) for host in FRONTENDS]):
        if time.monotonic() > deadline or platform.ended():
            raise TimeoutError(f"not {count} workers; ended: {platform.ended()}")
        await asyncio.sleep(0.25)


async def serves(host: str) -> bool:
    """Whether a frontend answers a question: it knows a worker somewhat earlier than the worker's model."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS)) as session,
            session.post(f"http://{host}:8000/v1/chat/completions", json=body) as answer,
        ):
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


def member_url(index: int) -> str:
    return f"http://{MEMBERS[index]}:{DISCOVERY_LIVENESS_PORT}{DISCOVERY_LIVENESS_PATH}"


async def first_member_alone(platform: Platform) -> dict[str, Any]:
    """The first member of a new store lives before the others start."""
    platform.start_member(0)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (found := await status(member_url(0))) != 200 and time.monotonic() < deadline:
        await asyncio.sleep(0.25)
    return {"alive": found}


async def roles_turned_on(platform: Platform, streams: Streams) -> dict[str, Any]:
    """Processes of an earlier release share one certificate, and run on when each deployment gets its own."""
    platform.start_roles()
    await lines(platform, "authentication is on")
    await asyncio.sleep(_AWAY_SECONDS / 4)
    alive = [await status(member_url(index)) for index in range(len(MEMBERS))]
    return {"alive": alive, "roles": platform.log("roles")}


async def replace_frontends(platform: Platform) -> None:
    """Start the frontends again with the certificate of their deployment, when nobody streams."""
    platform.shown = NAMESPACE
    for index in range(len(FRONTENDS)):
        platform.kill(f"frontend-{index}")
        platform.start_frontend(index)
    await until(platform, 2)


async def worker_of_another_deployment(platform: Platform, streams: Streams) -> dict[str, Any]:
    """A worker shows the certificate of another deployment, and registers for this one."""
    platform.shown = OTHER
    platform.start_worker("foreign", suffix="old", length=OLD)
    platform.shown = NAMESPACE
    code = await asyncio.to_thread(platform.running.pop("foreign").wait, _PATIENCE_SECONDS)
    return {
        "code": code,
        "log": platform.log("foreign"),
        "workers": [await workers(host) for host in FRONTENDS],
    }


async def lines(platform: Platform, text: str) -> None:
    """Wait until the task of the roles has printed a text."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while text not in platform.log("roles"):
        if time.monotonic() > deadline:
            raise TimeoutError(platform.log("roles"))
        await asyncio.sleep(0.25)


async def one_member_killed(platform: Platform, streams: Streams) -> dict[str, Any]:
    platform.kill("member-0")
    await asyncio.sleep(_AWAY_SECONDS / 2)
    platform.start_member(0)
    return {}


async def two_members_killed(platform: Platform, streams: Streams) -> dict[str, Any]:
    """The store has no majority; frontends stay alive for the load balancer."""
    for index in (0, 1):
        platform.kill(f"member-{index}")
    alive = []
    end = time.monotonic() + _AWAY_SECONDS
    while time.monotonic() < end:
        alive += [await status(f"http://{host}:8000/live") for host in FRONTENDS]
        await asyncio.sleep(1)
    for index in (0, 1):
        platform.start_member(index)
    await until(platform, 2)
    return {"alive": sorted(set(alive))}


async def worker_added_after_a_restart(platform: Platform, streams: Streams) -> dict[str, Any]:
    """All members end and start again with their data; then a worker registers."""
    for index in range(len(MEMBERS)):
        platform.kill(f"member-{index}")
    for index in range(len(MEMBERS)):
        platform.start_member(index)
    platform.start_worker("late", suffix="new", length=NEW)
    await until(platform, 3)
    return {}


async def worker_killed(platform: Platform, streams: Streams) -> dict[str, Any]:
    platform.kill("late")
    await streams.fresh()
    return {}


async def changed_configuration(platform: Platform, streams: Streams) -> dict[str, Any]:
    """New workers start beside the old ones, which then end as a deployment ends them."""
    old, new = ("old-0", "old-1"), ("new-0", "new-1")
    for name in new:
        platform.start_worker(name, suffix="new", length=NEW)
    await until(platform, len(old) + len(new))
    await streams.fresh()
    for name in old:
        platform.signal(name, signal.SIGTERM)
    await until(platform, len(new))
    # They serve on until their last stream has ended.
    await streams.fresh()
    for name in old:
        platform.kill(name)
    await streams.fresh()
    return {}


CASES: tuple[Callable[[Platform, Streams], Awaitable[dict[str, Any]]], ...] = (
    roles_turned_on,
    worker_of_another_deployment,
    # First: a worker asks the store once to forget it. A call to a member that was away during a call before
    # fails at once (the client of Dynamo 1.6.1), so after an outage some workers are known until they end.
    changed_configuration,
    one_member_killed,
    two_members_killed,
    worker_added_after_a_restart,
    # Last: the store knows a killed worker until its lease ends.
    worker_killed,
)


async def run(platform: Platform) -> dict[str, Any]:
    """Run every case and return what it did, by its name."""
    results = {"first_member_alone": await first_member_alone(platform)}
    for index in range(1, len(MEMBERS)):
        platform.start_member(index)
    # The client of earlier releases: the store has neither users nor roles yet.
    platform.shown = SHARED_CLIENT
    for index in range(len(FRONTENDS)):
        platform.start_frontend(index)
    for index in range(2):
        platform.start_worker(f"old-{index}", suffix="old", length=OLD)
    await until(platform, 2)
    results["ports"] = {name: platform.ports(name) for name in ("old-0", "old-1")}
    for case in CASES:
        streams = Streams([f"http://{host}:8000" for host in FRONTENDS], MODEL)
        streams.begin()
        await streams.fresh()
        found = await case(platform, streams)
        await streams.fresh()
        await streams.end()
        results[case.__name__] = {
            **found,
            "whole": streams.whole,
            "errors": streams.errors,
            "ended": platform.ended(),
        }
        print(case.__name__, results[case.__name__], flush=True)
        if case is roles_turned_on:
            await replace_frontends(platform)
    return results


def main(folder: Path, etcd: Path) -> None:
    """Run the platform and write the results."""
    platform = Platform(folder, etcd)
    try:
        results = asyncio.run(run(platform))
    finally:
        platform.stop()
    (folder / "result.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
