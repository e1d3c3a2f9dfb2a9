"""Replays the public trace against running models, and writes the report."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.measure.replay.open_loop import ProgressCallback, ReplayProgress
from inference_blueprints.measure.replay.trace_replay import (
    DEFAULT_REQUEST_TIMEOUT_SECONDS,
    DEFAULT_SECONDS,
    POINTS,
    RampPoints,
    ReplayResult,
    replay_async,
)
from inference_blueprints.measure.statistics import amount
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec.types import Blueprint, StreamingJob
from inference_contracts.errors import UserError
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.controllers.controller_outcomes import (
    ControllerOutcomes,
)
from inference_local.front_door.front_door_outcome import FrontDoorOutcome
from inference_local.real_time.real_time_outcome import RealTimeOutcome
from inference_local.real_time.real_time_run import real_time_models, run_real_time
from inference_local.report.html import render_html
from inference_local.report.report_builder import as_dict, build_report
from inference_local.report.report_types import ModelRun, Report
from inference_local.run_state import RunningModel, StreamDoor
from inference_local.run_steps import REPLAY, Step, Steps
from inference_local.scaling.scaling_outcome import ScalingOutcome
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.streaming.streaming_outcome import StreamingOutcome
from inference_local.streaming.streaming_run import run_streaming
from inference_local.worker_kills import WorkerLoss


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
    door: Callable[[StreamingJob], StreamDoor] | None,
) -> CallerOutcomes:
    """Run ad servers for models with a deadline, then the streaming job.

    steps: Where progress is shown.
    seconds: How long pages and events arrive. None for the default.
    door: Returns the front door as a streaming job sees it. None without one.
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
            blueprint,
            models,
            run_directory / "streaming",
            engines=engines,
            steps=steps,
            seconds=seconds,
            door=door,
        )
        parts += further
    return CallerOutcomes(real_time, streaming, parts)


#: How long requests arrive in a run whose workers follow the load.
RAMP_SECONDS = 300.0


def replay(
    loaded: LoadedBlueprint,
    running: Sequence[RunningModel],
    engines: EngineKind,
    *,
    steps: Steps,
    seconds: float | None,
    follows_ramp: bool = False,
    ramp: RampPoints = POINTS,
    title: str = REPLAY,
) -> list[ModelRun]:
    """Replay the trace, scaled to each model's workload, against all models at once.

    loaded: The blueprint, which states the workloads.
    engines: Their engines. They bound the rate and the time of an answer.
    steps: Where progress is shown: one step.
    seconds: How long requests arrive. None for the default.
    follows_ramp: Whether the rate rises to the peak and falls again.
    ramp: How the rate rises and falls.
    title: What the step does.
    Raises UserError if the blueprint has a model that is not running, or an endpoint stops answering.
    """
    models = loaded.blueprint.spec.models
    by_name = {model.name: model for model in running}
    missing = [model.name for model in models if model.name not in by_name]
    if missing:
        raise UserError(
            f"{loaded.file}: models {', '.join(missing)} are not running; "
            f"running models are {', '.join(by_name)}"
        )
    with steps.step(title) as step:
        results = asyncio.run(
            _replay_all(
                loaded, by_name, engines, _Bar(step), seconds=seconds, ramp=ramp if follows_ramp else None
            )
        )
        failures = sum(sum(result.failure_reasons.values()) for result in results)
        sent = sum(len(result.outcomes) for result in results)
        step.result = f"{amount(sent, 'request')}, {amount(failures, 'failure')}"
    target = LocalTarget(loaded.blueprint, engines)
    deployments = {model.name: target.render(model) for model in build_plan(loaded.blueprint).models}
    return [
        ModelRun(
            endpoint=by_name[model.name].base_url,
            result=result,
            objectives=model.objectives.stated,
            # The latencies of several deployments behind one route match none of their profiles.
            profile=deployments[model.name][0].profile if len(deployments[model.name]) == 1 else None,
        )
        for model, result in zip(models, results, strict=True)
    ]


def write_report(
    loaded: LoadedBlueprint,
    runs: list[ModelRun],
    parts: Sequence[PlatformPart],
    run_directory: Path,
    *,
    engines: EngineKind,
    replacements: tuple[Replacement, ...],
    worker_losses: tuple[WorkerLoss, ...] | None = None,
    batch: tuple[BatchOutcome, ...] | None = None,
    scaling: ScalingOutcome | None = None,
    controllers: ControllerOutcomes | None = None,
    callers: CallerOutcomes = NO_CALLERS,
    front_door: FrontDoorOutcome | None = None,
) -> Report:
    """Write ``report.json`` and ``report.html``.

    runs: The result of `replay`.
    parts: Which parts of the platform are real, emulated, simulated or stubbed.
    engines: The engines that answered. They say whether times mean something, and what their replay changed.
    replacements: Settings of the plan that have another value on this machine.
    worker_losses: Outcomes of the streams whose worker was killed. None if no worker was killed.
    batch: Outcomes of the batch jobs. None if none ran.
    scaling: How workers followed the load. None if their number was fixed.
    controllers: What the controllers did. None if they did not run.
    callers: What callers with a deadline and streaming jobs got.
    front_door: What callers got through the front door. None without one.
    """
    report = build_report(
        blueprint=loaded.file,
        created_at=datetime.now(UTC),
        summary=summarise(loaded.blueprint, build_plan(loaded.blueprint)),
        runs=runs,
        parts=parts,
        replacements=(*engines.replay_replacements(), *replacements),
        timed=engines.has_times,
        worker_losses=worker_losses,
        batch=batch,
        scaling=scaling,
        controllers=controllers,
        real_time=callers.real_time,
        streaming=callers.streaming,
        front_door=front_door,
    )
    (run_directory / "report.json").write_text(json.dumps(as_dict(report), indent=2), encoding="utf-8")
    (run_directory / "report.html").write_text(render_html(report, runs), encoding="utf-8")
    return report


async def _replay_all(
    loaded: LoadedBlueprint,
    running: dict[str, RunningModel],
    engines: EngineKind,
    bar: _Bar,
    *,
    seconds: float | None,
    ramp: RampPoints | None,
) -> list[ReplayResult]:
    replays = (
        replay_async(
            running[model.name].base_url,
            model.name,
            engines.replayed_workload(model_traffic(loaded.blueprint.spec, model).means),
            running[model.name].context_length,
            seconds=seconds or (RAMP_SECONDS if ramp else DEFAULT_SECONDS),
            follows_ramp=ramp is not None,
            ramp=ramp or POINTS,
            on_progress=bar.of(model.name),
            request_timeout_seconds=max(DEFAULT_REQUEST_TIMEOUT_SECONDS, engines.answer_seconds),
        )
        for model in loaded.blueprint.spec.models
    )
    return await asyncio.gather(*replays)


class _Bar:
    """Adds up the progress of several replays."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._latest: dict[str, ReplayProgress] = {}

    def of(self, model: str) -> ProgressCallback:
        def show(progress: ReplayProgress) -> None:
            self._latest[model] = progress
            self._step.update(
                sum(each.done for each in self._latest.values()),
                sum(each.total for each in self._latest.values()),
                f"{sum(each.in_flight for each in self._latest.values())} in flight",
            )

        return show
