"""The load of a run with controllers: a ramp alone, a ramp beside batch, and a worker that becomes slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.local.batch.batch_outcome import BatchOutcome
from inference_blueprints.local.controllers.controller_outcomes import (
    CapacityShiftOutcome,
    GpuHealthOutcome,
)
from inference_blueprints.local.local_platform import LocalPlatform
from inference_blueprints.local.measured_run import replay
from inference_blueprints.local.report.report_types import ModelRun
from inference_blueprints.local.run_state import RunningModel
from inference_blueprints.local.run_steps import Steps
from inference_blueprints.local.scaling.scaling_outcome import ScalingOutcome
from inference_blueprints.targets.local.engine_kind import EngineKind
from inference_blueprints.targets.local.platform_parts import PlatformPart

#: How long requests arrive in each of the two ramps.
CONTROLLED_RAMP_SECONDS = 100.0
#: Requests of the batch job, per second of a ramp: it runs through the ramp, and some time longer.
_BATCH_REQUESTS_PER_SECOND = 12.0


@dataclass(frozen=True, slots=True)
class ControlledLoad:
    """What clients and controllers did.

    Parameters
    ----------
    runs
        The ramp beside batch.
    parts
        Further rows of the table of parts.
    scaling, batch, capacity_shift, gpu_health
        Outcomes.
    """

    runs: list[ModelRun]
    parts: tuple[PlatformPart, ...]
    scaling: ScalingOutcome
    batch: tuple[BatchOutcome, ...]
    capacity_shift: CapacityShiftOutcome
    gpu_health: GpuHealthOutcome


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

    Parameters
    ----------
    platform
        A platform with controllers that was started.
    models
        Its models.
    kind
        Its engines.
    steps
        Where progress is shown: four steps.
    seconds
        How long requests arrive in each ramp. None for the default.

    Raises
    ------
    UserError
        If a step fails.
    """
    ramp = seconds or CONTROLLED_RAMP_SECONDS
    send = partial(replay, loaded, models, kind, steps=steps, seconds=ramp, follows_ramp=True)
    controlled, parts = platform.control(steps, ramp)
    with controlled:
        alone = send(title="Replay a ramp of interactive requests alone")
        with controlled.batch_beside(
            partial(platform.run_batch_beside, round(ramp * _BATCH_REQUESTS_PER_SECOND))
        ):
            beside = send(title="Replay it again beside a batch job")
            with steps.step("Slow a worker down until its node is replaced") as step:
                slowed = controlled.slow_a_worker(lambda what: step.update(detail=what))
                step.result = f"{slowed.case.get('state', 'not found')}, {slowed.streams} streams"
        shift, health = controlled.shift_outcome(alone, beside), controlled.health_outcome()
        batch = controlled.batch
    scaling = controlled.elastic.outcome([*alone, *beside])
    return ControlledLoad(beside, parts, scaling, batch, shift, health)
