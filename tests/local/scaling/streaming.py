"""A platform of simulated workers on this machine, and clients that stream from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from inference_blueprints.loading import load_blueprint
from inference_blueprints.local.moved_streams import UNDER_WAY, moved_streams
from inference_blueprints.local.scaling.counted_load import CountedLoad, StreamCount, StreamLengths
from inference_blueprints.local.scaling.scale_downs import ScaleDowns
from inference_blueprints.processes.child_processes import ProcessGroup
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.targets.local.local_serving import LocalServing
from inference_blueprints.targets.local.simulated_kind import SimulatedKind

#: Longest time of one stream. It bounds a hang, not a speed.
STREAM_SECONDS = 240.0


def aggregated(workers: int) -> Blueprint:
    """Return a blueprint with workers of one role behind two frontends."""
    return _scaled("quickstart-g6e", {"aggregated": workers})


def disaggregated(prefill: int, decode: int) -> Blueprint:
    """Return a blueprint with prefill and decode workers behind two frontends."""
    return _scaled("p5en-disaggregated", {"prefill": prefill, "decode": decode})


def _scaled(name: str, replicas: dict[str, int]) -> Blueprint:
    document = load_blueprint(name).blueprint.model_dump(by_alias=True, exclude_unset=True)
    deployment = document["spec"]["models"][0]["deployments"][0]
    roles = deployment.get("disaggregated") or deployment
    for role, count in replicas.items():
        roles[role]["replicas"] = count
    return Blueprint.model_validate(document)


@dataclass(frozen=True, slots=True)
class Streamed:
    """What clients counted, and how many of their streams moved to another worker."""

    count: StreamCount
    moved: int


Disturbance = Callable[[ScaleDowns, CountedLoad], Awaitable[None]]


@contextmanager
def serving(blueprint: Blueprint, directory: Path, *, finish_seconds: int) -> Iterator[LocalServing]:
    """Run a blueprint whose workers serve on for some seconds after SIGTERM."""
    kind = SimulatedKind(blueprint, finish_seconds=finish_seconds)
    plan = build_plan(blueprint)
    with ProcessGroup() as group, LocalServing(plan, blueprint, directory, group, engines=kind) as running:
        running.start(lambda _: None)
        yield running


def stream_while(
    running: LocalServing, disturb: Disturbance, *, clients: int = 12, answers: tuple[int, int] = (20, 60)
) -> Streamed:
    """Stream from every frontend of a platform while something happens to its workers.

    Parameters
    ----------
    disturb
        Called once every client has a stream. All streams under way after it end by themselves.
    answers
        Shortest and longest answer, in tokens.
    """

    async def run() -> Streamed:
        deployment = running.first_workers()[0].deployment
        urls = running.frontend_urls(deployment)
        load = CountedLoad(
            deployment.model.name,
            urls,
            clients,
            StreamLengths((50, 400), answers),
            timeout_seconds=STREAM_SECONDS,
            seed=1,
        )
        async with aiohttp.ClientSession() as session:
            before = await moved_streams(session, urls, UNDER_WAY)
            async with load:
                while load.count.running < clients:
                    await asyncio.sleep(0.02)
                await disturb(ScaleDowns(running, deployment, load), load)
            return Streamed(load.count, await moved_streams(session, urls, UNDER_WAY) - before)

    return asyncio.run(run())
