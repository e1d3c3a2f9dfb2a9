"""The load of a run with controllers: two ramps, batch beside the second, and a worker that becomes slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import TypeVar

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.measure.replay import trace_replay as ramps
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.controllers.controller_outcomes import (
    ControllerOutcomes,
)
from inference_local.local_platform import LocalPlatform
from inference_local.measured_run import replay
from inference_local.report.report_types import ModelRun
from inference_local.run_state import RunningModel
from inference_local.run_steps import BATCH_BESIDE, SLOW_WORKER, TWO_RAMPS, Steps
from inference_local.scaling.scaling_outcome import ScalingOutcome
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.platform_parts import PlatformPart

#: How long requests arrive in each of the two ramps.
CONTROLLED_RAMP_SECONDS = 90.0
#: Requests of the batch job, per second of a ramp: it runs through the ramp, and some time longer.
_BATCH_REQUESTS_PER_SECOND = 12.0
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True)
class ControlledLoad:
    """What clients and controllers did."""

    runs: list[ModelRun]
    """Both ramps."""
    parts: tuple[PlatformPart, ...]
    """Further rows of the table of parts."""
    scaling: ScalingOutcome
    batch: tuple[BatchOutcome, ...]
    controllers: ControllerOutcomes


def run_controlled(
    loaded: LoadedBlueprint,
    platform: LocalPlatform,
    models: Sequence[RunningModel],
    kind: EngineKind,
    *,
    steps: Steps,
    seconds: float | None,
) -> ControlledLoad:
    """Send the load while the controllers run.

    platform: A platform with controllers that was started.
    steps: Where progress is shown: four steps.
    seconds: How long requests arrive in each ramp. None for the default.
    Raises UserError if a step fails.
    """
    ramp = seconds or CONTROLLED_RAMP_SECONDS
    controlled, parts = platform.control(steps, ramp)
    requests = round(ramp * _BATCH_REQUESTS_PER_SECOND)
    with controlled, ThreadPoolExecutor(2, thread_name_prefix="beside the load") as pool:
        stopped = Event()
        job = pool.submit(_after, ramp, stopped, partial(platform.run_batch_beside, requests))
        slow = pool.submit(_after, 2 * ramp, stopped, controlled.slow_a_worker)
        try:
            runs = replay(
                loaded,
                models,
                kind,
                steps=steps,
                seconds=2 * ramp,
                follows_ramp=True,
                ramp=ramps.TWO_RAMPS,
                title=TWO_RAMPS,
            )
            with steps.step(SLOW_WORKER) as step:
                slowed = slow.result()
                step.result = f"{slowed.case.get('state', 'not found')}, {slowed.streams} streams"
            with steps.step(BATCH_BESIDE) as step:
                batch = (job.result(),)
                step.result = f"{batch[0].completed} of {batch[0].requests} requests answered"
        finally:
            stopped.set()
        outcomes = ControllerOutcomes(
            controlled.shift_outcome(runs, batch[0], ramp), controlled.health_outcome(slowed)
        )
    return ControlledLoad(runs, parts, controlled.elastic.outcome(runs), batch, outcomes)


def _after(seconds: float, stopped: Event, act: Callable[[], _Done]) -> _Done:
    """Wait, and act unless the run was stopped meanwhile."""
    if stopped.wait(seconds):
        raise RuntimeError("the run was stopped")
    return act()
