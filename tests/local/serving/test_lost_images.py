"""A killed server of images loses what it had, the others answer on, and it is replaced."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from aiohttp import ClientSession

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.completions.completion_client import RequestOutcome
from inference_blueprints.measure.completions.image_client import ImageClient
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import ImageRequests
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.simulated_kind import SimulatedKind
from inference_local.worker_kills import kill_workers

_SMALL = ImageRequests(per_request=2, size="64x64", steps=1)
_TRIES = 100


def ask(url: str, model: str, count: int) -> list[RequestOutcome]:
    """Send requests for small images at once."""

    async def run() -> list[RequestOutcome]:
        async with ClientSession() as session:
            base_url = url.removesuffix("/v1")
            client = ImageClient(
                session, base_url, model, timeout_seconds=60, clock=time.perf_counter, images=_SMALL
            )
            return await asyncio.gather(*(client.complete(f"cup {each}", 1, 0.0) for each in range(count)))

    return asyncio.run(run())


def test_images_of_a_killed_server_are_lost_and_no_others(tmp_path: Path) -> None:
    blueprint = load_blueprint("image-generation").blueprint
    plan = build_plan(blueprint)
    with (
        ProcessGroup(grace_seconds=1) as group,
        LocalServing(plan, blueprint, tmp_path, group, engines=SimulatedKind(blueprint)) as serving,
    ):
        [endpoint] = serving.start(lambda _: None)
        assert {each.images for each in ask(endpoint.base_url, endpoint.model, 6)} == {2}
        [loss] = kill_workers(serving, lambda _: None)
        assert (loss.workers, loss.killed, loss.moved) == (2, 1, 0)
        assert loss.streams == 4
        assert loss.lost <= 2, "no more than the half that the killed server had"
        # Until the load balancer sees that the target is gone, it still sends requests to it.
        answers = (ask(endpoint.base_url, endpoint.model, 4) for _ in range(_TRIES))
        assert any(all(each.failure is None for each in four) for four in answers)
        serving.replace_killed(lambda _: None)
        assert {each.failure for each in ask(endpoint.base_url, endpoint.model, 6)} == {None}
