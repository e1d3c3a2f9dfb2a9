"""The report of a run as data; its JSON keys are these names in camelCase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from inference_blueprints.catalog import LatencyProfile
from inference_blueprints.local.batch.batch_outcome import BatchOutcome
from inference_blueprints.local.worker_losses import WorkerLoss
from inference_blueprints.measurement.replay.replay_result import ReplayResult
from inference_blueprints.measurement.replay.scaled_trace import ScalingFactors
from inference_blueprints.measurement.statistics.request_statistics import Measurement
from inference_blueprints.spec.types import Objectives
from inference_blueprints.targets.local.platform_parts import PlatformPart


@dataclass(frozen=True, slots=True)
class ModelRun:
    """What is known of one model after its replay.

    Parameters
    ----------
    endpoint
        Base URL of its OpenAI API, ending in ``/v1``.
    objectives
        Latencies that the blueprint asks for.
    profile
        What the simulated engine's latencies come from: the plan's own model and accelerator. None where the
        catalogue has no such profile.
    """

    endpoint: str
    result: ReplayResult
    objectives: Objectives
    profile: LatencyProfile | None


@dataclass(frozen=True, slots=True)
class ObjectiveOutcome:
    """Whether a latency that the blueprint asks for was kept.

    Parameters
    ----------
    name
        The blueprint's key, such as ``timeToFirstTokenP90Ms``.
    limit_ms, measured_ms
        In milliseconds; nothing may have been measured.
    met
        Whether the measured one is within the limit; None without a measured one.
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
        What the blueprint's workload says.
    sent
        What the replay asked for.
    counted
        What the endpoint counted over the answered requests; None where it counts nothing.
    """

    stated: int
    sent: float
    counted: float | None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was replayed, and how far it is from what was recorded.

    Parameters
    ----------
    recorded_seconds, elapsed_seconds
        How much of the trace was replayed, and how long that took until the last answer ended.
    peak_requests_per_second, peak_window_seconds
        Rate in the busiest window of this length.
    stated_shared_prefix_ratio
        What the blueprint's workload says; the trace's own sharing is kept where it is more.
    template_tokens
        Tokens that the chat template adds to each prompt, part of ``input_tokens``.
    seed
        Of the prompts' text.
    client_cpu_share, lateness_p99_ms
        How busy the client was, of one processor, and how late it sent requests.
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


@dataclass(frozen=True, slots=True)
class ModelReport:
    """One model.

    Parameters
    ----------
    name, endpoint, curl
        How to ask it.
    objectives
        Those that the blueprint states.
    replayed
        What it was asked.
    failure_details
        What was said about the first failure of each reason.
    warnings
        What makes its figures doubtful.
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
    """A whole run.

    Parameters
    ----------
    created_at
        When, with its time zone.
    simulated
        Whether latencies come from a simulated engine.
    parts
        What is real, emulated, simulated or stubbed.
    plan
        The plan's summary as JSON values: pools, accelerators, prices with their date, source and region.
    worker_losses
        What became of streams whose worker was killed; None where that was not tried.
    batch
        What became of batch jobs; None where none was run.
    """

    blueprint: str
    created_at: datetime
    simulated: bool
    parts: tuple[PlatformPart, ...]
    measurement: Measurement
    models: tuple[ModelReport, ...]
    plan: Mapping[str, Any]
    worker_losses: tuple[WorkerLoss, ...] | None = None
    batch: tuple[BatchOutcome, ...] | None = None
