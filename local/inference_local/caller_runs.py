"""Programs that call the models of a run beside the replay: ad servers and streaming jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.spec.types import Blueprint
from inference_local.real_time.real_time_outcome import RealTimeOutcome
from inference_local.real_time.real_time_run import real_time_models, run_real_time
from inference_local.run_state import RunningModel
from inference_local.run_steps import Steps
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.platform_parts import PlatformPart
from inference_local.streaming.streaming_outcome import StreamingOutcome
from inference_local.streaming.streaming_run import run_streaming


@dataclass(frozen=True, slots=True)
class CallerOutcomes:
    """What the callers got."""

    real_time: RealTimeOutcome | None = None
    """What callers with a deadline got. None if no model has any."""
    streaming: StreamingOutcome | None = None
    """What came of a replayed stream. None without streaming jobs."""
    parts: tuple[PlatformPart, ...] = ()
    """Further rows of the table of parts."""


NO_CALLERS = CallerOutcomes()


def run_callers(
    blueprint: Blueprint,
    models: Sequence[RunningModel],
    run_directory: Path,
    *,
    engines: EngineKind,
    steps: Steps,
    seconds: float | None,
) -> CallerOutcomes:
    """Run ad servers for models with a deadline, then the streaming job.

    steps: Where progress is shown.
    seconds: How long pages and events arrive. None for the default.
    Raises UserError if a Java program cannot be built or does not start. Raises ProcessDied if a program ends
        that was not killed.
    """
    real_time, streaming = None, None
    parts: tuple[PlatformPart, ...] = ()
    if real_time_models(blueprint):
        real_time, parts = run_real_time(
            blueprint, models, run_directory / "real-time", engines=engines, steps=steps, seconds=seconds
        )
    if blueprint.spec.streaming:
        streaming, further = run_streaming(
            blueprint, models, run_directory / "streaming", engines=engines, steps=steps, seconds=seconds
        )
        parts += further
    return CallerOutcomes(real_time, streaming, parts)
