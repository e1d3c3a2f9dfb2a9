"""Serves the arms of a comparison on this machine and sends requests to them in turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp

from benchmarks.harness.figure import BenchmarkError
from inference_blueprints.measure.completions.completion_client import CompletionClient, RequestOutcome
from inference_blueprints.measure.replay.open_loop import OpenLoop, Pacing
from inference_blueprints.measure.replay.prompt_writer import PromptWriter
from inference_blueprints.measure.replay.scaled_trace import ScaledRequest
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.serving.types import Process, ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.local_serving import LocalServing

_REQUEST_SECONDS = 120.0
_IN_FLIGHT = 512


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison."""

    blueprint: Blueprint
    plan: ServingPlan


def with_kv_blocks(plan: ServingPlan, blocks: int) -> ServingPlan:
    """Return a plan whose workers have caches of another size.

    blocks: KV cache blocks per worker.
    """

    def changed(process: Process) -> Process:
        engine = process.engine
        return process if engine is None else replace(process, engine=replace(engine, kv_blocks=blocks))

    models = tuple(
        replace(
            model,
            deployments=tuple(
                replace(deployment, processes=tuple(map(changed, deployment.processes)))
                for deployment in model.deployments
            ),
        )
        for model in plan.models
    )
    return replace(plan, models=models)


@contextmanager
def served(arms: Mapping[str, Arm], directory: Path) -> Iterator[dict[str, LocalEndpoint]]:
    """Serve all arms at the same time. Arms without requests are idle.

    arms: By name, each with one model.
    directory: Folder for logs and profiles.
    """
    with ExitStack() as resources:
        endpoints = {}
        for name, arm in arms.items():
            group = resources.enter_context(ProcessGroup())
            serving = LocalServing(arm.plan, arm.blueprint, directory / name, group)
            (endpoints[name],) = resources.enter_context(serving).start(lambda _: None)
        yield endpoints


def ask_in_turns(
    endpoints: Mapping[str, LocalEndpoint], turns: Sequence[Sequence[ScaledRequest]]
) -> dict[str, list[RequestOutcome]]:
    """Send each turn's requests to every arm, one arm after the other, and return the outcomes.

    turns: Requests with arrivals counted from the start of their turn; equal prefixes across turns.
    Raises BenchmarkError if a request fails.
    """
    outcomes: dict[str, list[RequestOutcome]] = {name: [] for name in endpoints}
    for turn in turns:
        for name, endpoint in endpoints.items():
            outcomes[name] += asyncio.run(_ask(endpoint, turn))
    failed = [outcome for each in outcomes.values() for outcome in each if outcome.failure]
    if failed:
        raise BenchmarkError(f"{len(failed)} requests failed, the first: {failed[0].failure}")
    return outcomes


async def _ask(endpoint: LocalEndpoint, requests: Sequence[ScaledRequest]) -> list[RequestOutcome]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        client = CompletionClient(
            session,
            endpoint.base_url.removesuffix("/v1"),
            endpoint.model,
            timeout_seconds=_REQUEST_SECONDS,
            clock=time.perf_counter,
        )
        open_loop = OpenLoop(
            client,
            PromptWriter(random_text, 0),
            in_flight_limit=_IN_FLIGHT,
            pacing=Pacing(),
            on_progress=None,
        )
        return await open_loop.send(requests)
