"""The report of a run as data; its JSON keys are these names in camelCase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from inference_blueprints.measure.replay.scaled_trace import ScalingFactors
from inference_blueprints.measure.replay.trace_replay import ReplayResult
from inference_blueprints.measure.statistics import Measurement
from inference_blueprints.spec.types import Objective
from inference_catalog import LatencyProfile
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.controllers.controller_outcomes import (
    ControllerOutcomes,
)
from inference_local.front_door.front_door_outcome import FrontDoorOutcome
from inference_local.real_time.real_time_outcome import RealTimeOutcome
from inference_local.scaling.scaling_outcome import ScalingOutcome
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.streaming.streaming_outcome import StreamingOutcome
from inference_local.worker_kills import WorkerLoss


@dataclass(frozen=True, slots=True)
class ModelRun:
    """The result of one model's replay."""

    endpoint: str
    """Base URL of its OpenAI API, ending in ``/v1``."""
    result: ReplayResult
    objectives: tuple[Objective, ...]
    """Latency objectives of the blueprint."""
    profile: LatencyProfile | None
    """Profile of the model and accelerator that the simulated engine's latencies come from. None if the
    catalogue has none."""


@dataclass(frozen=True, slots=True)
class ObjectiveOutcome:
    """Whether a latency objective of the blueprint was met."""

    name: str
    """The blueprint's key, such as ``timeToFirstTokenP90Ms`` or ``requestMs.p99``."""
    limit_ms: float
    measured_ms: float | None
    """`limit_ms`, `measured_ms`: Limit and measured value, in milliseconds. None if nothing was measured."""
    met: bool | None
    """Whether the measured value is within the limit. None without a measured value, and if more
    requests than the percentile leaves out are longer than the simulated engine's latency profile."""


@dataclass(frozen=True, slots=True)
class Length:
    """Mean tokens of prompts or of answers."""

    stated: int
    """Mean in the blueprint's workload."""
    sent: float
    """Mean that the replay requested."""
    counted: float | None
    """Mean that the endpoint counted over the answered requests. None if it returns no counts."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The replayed trace, and how it differs from the recorded one."""

    trace: str
    source: str
    licence: str
    cut: str
    recorded_seconds: float
    """How much of the trace was replayed."""
    elapsed_seconds: float
    """How long that took until the last answer ended."""
    peak_requests_per_second: float
    peak_window_seconds: float
    """`peak_requests_per_second`, `peak_window_seconds`: Rate in the busiest window of this length."""
    input_tokens: Length
    output_tokens: Length
    stated_shared_prefix_ratio: float
    """Ratio in the blueprint's workload. If the trace shares more, its own ratio is kept."""
    template_tokens: int
    """Tokens that the chat template adds to each prompt, part of ``input_tokens``."""
    scaling: ScalingFactors
    seed: int
    """Seed of the text of the prompts."""
    client_cpu_share: float
    """Share of one processor that the client used."""
    lateness_p99_ms: float
    """How late it sent requests."""
    images: str | None = None
    """What each request for images asked for. None if requests asked for text."""


@dataclass(frozen=True, slots=True)
class ModelReport:
    """The report of one model."""

    name: str
    endpoint: str
    curl: str
    """`name`, `endpoint`, `curl`: How to send requests to it."""
    measurement: Measurement
    objectives: tuple[ObjectiveOutcome, ...]
    """Outcomes of the stated objectives."""
    replayed: Replayed
    """The replayed trace."""
    failure_details: Mapping[str, str]
    """Detail of the first failure, per reason."""
    warnings: tuple[str, ...]
    """Reasons to doubt its figures."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run."""

    blueprint: str
    created_at: datetime
    """Time of the report, with time zone."""
    simulated: bool
    """Whether latencies come from a simulated engine."""
    timed: bool
    """Whether the times of answers say something about the planned hardware. If not, they are left out."""
    parts: tuple[PlatformPart, ...]
    """Parts that are real, emulated, simulated or stubbed."""
    replacements: tuple[Replacement, ...]
    """Settings of the plan that have another value on this machine."""
    measurement: Measurement
    models: tuple[ModelReport, ...]
    plan: Mapping[str, Any]
    """The plan's summary as JSON values: pools, accelerators, prices with their date, source and region."""
    worker_losses: tuple[WorkerLoss, ...] | None = None
    """Outcomes of the streams whose worker was killed. None if no worker was killed."""
    batch: tuple[BatchOutcome, ...] | None = None
    """Outcomes of the batch jobs. None if none ran."""
    scaling: ScalingOutcome | None = None
    """How workers followed the load. None if their number was fixed."""
    controllers: ControllerOutcomes | None = None
    """What the controllers did. None if they did not run."""
    real_time: RealTimeOutcome | None = None
    """What callers with a deadline got. None if no model has any."""
    streaming: StreamingOutcome | None = None
    """What came of a replayed stream. None without streaming jobs."""
    front_door: FrontDoorOutcome | None = None
    """What callers got through the front door. None without one."""
