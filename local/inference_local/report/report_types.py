"""The report of a run as data; its JSON keys are these names in camelCase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from inference_blueprints.measure.replay.replay_result import ReplayResult
from inference_blueprints.measure.replay.scaled_trace import ScalingFactors
from inference_blueprints.measure.statistics.request_statistics import Measurement
from inference_blueprints.spec.types import Objectives
from inference_catalog import LatencyProfile
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.controllers.controller_outcomes import (
    ControllerOutcomes,
)
from inference_local.real_time.real_time_outcome import RealTimeOutcome
from inference_local.scaling.scaling_outcome import ScalingOutcome
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.streaming.streaming_outcome import StreamingOutcome
from inference_local.worker_losses import WorkerLoss


@dataclass(frozen=True, slots=True)
class ModelRun:
    """The result of one model's replay.

    Parameters
    ----------
    endpoint
        Base URL of its OpenAI API, ending in ``/v1``.
    objectives
        Latency objectives of the blueprint.
    profile
        Profile of the model and accelerator that the simulated engine's latencies come from. None if the
        catalogue has none.
    """

    endpoint: str
    result: ReplayResult
    objectives: Objectives
    profile: LatencyProfile | None


@dataclass(frozen=True, slots=True)
class ObjectiveOutcome:
    """Whether a latency objective of the blueprint was met.

    Parameters
    ----------
    name
        The blueprint's key, such as ``timeToFirstTokenP90Ms``.
    limit_ms, measured_ms
        Limit and measured value, in milliseconds. None if nothing was measured.
    met
        Whether the measured value is within the limit. None without a measured value.
    """

    name: str
    limit_ms: float
    measured_ms: float | None
    met: bool | None


@dataclass(frozen=True, slots=True)
class Length:
    """Mean tokens of prompts or of answers.

    Parameters
    ----------
    stated
        Mean in the blueprint's workload.
    sent
        Mean that the replay requested.
    counted
        Mean that the endpoint counted over the answered requests. None if it returns no counts.
    """

    stated: int
    sent: float
    counted: float | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The replayed trace, and how it differs from the recorded one.

    Parameters
    ----------
    recorded_seconds, elapsed_seconds
        How much of the trace was replayed, and how long that took until the last answer ended.
    peak_requests_per_second, peak_window_seconds
        Rate in the busiest window of this length.
    stated_shared_prefix_ratio
        Ratio in the blueprint's workload. If the trace shares more, its own ratio is kept.
    template_tokens
        Tokens that the chat template adds to each prompt, part of ``input_tokens``.
    seed
        Seed of the text of the prompts.
    client_cpu_share, lateness_p99_ms
        Share of one processor that the client used, and how late it sent requests.
    images
        What each request for images asked for. None if requests asked for text.
    """

    trace: str
    source: str
    licence: str
    cut: str
    recorded_seconds: float
    elapsed_seconds: float
    peak_requests_per_second: float
    peak_window_seconds: float
    input_tokens: Length
    output_tokens: Length
    stated_shared_prefix_ratio: float
    template_tokens: int
    scaling: ScalingFactors
    seed: int
    client_cpu_share: float
    lateness_p99_ms: float
    images: str | None = None


@dataclass(frozen=True, slots=True)
class ModelReport:
    """The report of one model.

    Parameters
    ----------
    name, endpoint, curl
        How to send requests to it.
    objectives
        Outcomes of the stated objectives.
    replayed
        The replayed trace.
    failure_details
        Detail of the first failure, per reason.
    warnings
        Reasons to doubt its figures.
    """

    name: str
    endpoint: str
    curl: str
    measurement: Measurement
    objectives: tuple[ObjectiveOutcome, ...]
    replayed: Replayed
    failure_details: Mapping[str, str]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run.

    Parameters
    ----------
    created_at
        Time of the report, with time zone.
    simulated
        Whether latencies come from a simulated engine.
    timed
        Whether the times of answers say something about the planned hardware. If not, they are left out.
    parts
        Parts that are real, emulated, simulated or stubbed.
    replacements
        Settings of the plan that have another value on this machine.
    plan
        The plan's summary as JSON values: pools, accelerators, prices with their date, source and region.
    worker_losses
        Outcomes of the streams whose worker was killed. None if no worker was killed.
    batch
        Outcomes of the batch jobs. None if none ran.
    scaling
        How workers followed the load. None if their number was fixed.
    controllers
        What the controllers did. None if they did not run.
    real_time
        What callers with a deadline got. None if no model has any.
    streaming
        What came of a replayed stream. None without streaming jobs.
    """

    blueprint: str
    created_at: datetime
    simulated: bool
    timed: bool
    parts: tuple[PlatformPart, ...]
    replacements: tuple[Replacement, ...]
    measurement: Measurement
    models: tuple[ModelReport, ...]
    plan: Mapping[str, Any]
    worker_losses: tuple[WorkerLoss, ...] | None = None
    batch: tuple[BatchOutcome, ...] | None = None
    scaling: ScalingOutcome | None = None
    controllers: ControllerOutcomes | None = None
    real_time: RealTimeOutcome | None = None
    streaming: StreamingOutcome | None = None
