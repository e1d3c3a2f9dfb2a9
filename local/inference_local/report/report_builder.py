"""Builds the report from replays."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic.alias_generators import to_camel

from inference_blueprints.measure.completions.completion_client import TokenUsage
from inference_blueprints.measure.completions.image_client import image_body
from inference_blueprints.measure.replay.trace_replay import ReplayResult
from inference_blueprints.measure.statistics import (
    Basis,
    ServingCapacity,
    amount,
    capacity_of,
    measure,
    percentile_of,
)
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.processes import PROCESSES
from inference_blueprints.report.plan.sections.public_names import PUBLIC_NAMES
from inference_blueprints.report.plan.summary import as_dict as plan_as_dict
from inference_blueprints.spec.types import ImageRequests, Workload, judge
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.controllers.controller_outcomes import (
    ControllerOutcomes,
)
from inference_local.front_door.front_door_outcome import FrontDoorOutcome
from inference_local.real_time.real_time_outcome import RealTimeOutcome
from inference_local.report.report_types import (
    Length,
    ModelReport,
    ModelRun,
    ObjectiveOutcome,
    Replayed,
    Report,
)
from inference_local.scaling.scaling_outcome import ScalingOutcome
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.streaming.streaming_outcome import StreamingOutcome
from inference_local.worker_kills import WorkerLoss


def build_report(
    *,
    blueprint: str,
    created_at: datetime,
    summary: PlanSummary,
    runs: Sequence[ModelRun],
    parts: Sequence[PlatformPart],
    replacements: tuple[Replacement, ...] = (),
    timed: bool = True,
    worker_losses: tuple[WorkerLoss, ...] | None = None,
    batch: tuple[BatchOutcome, ...] | None = None,
    scaling: ScalingOutcome | None = None,
    controllers: ControllerOutcomes | None = None,
    real_time: RealTimeOutcome | None = None,
    streaming: StreamingOutcome | None = None,
    front_door: FrontDoorOutcome | None = None,
) -> Report:
    """Build the report of a run.

    created_at: Time of the report, with time zone.
    summary: Accelerators and prices of the plan.
    runs: One per model, at least one.
    parts: Parts that are real, emulated, simulated or stubbed. Figures are marked simulated if any part is
        simulated.
    replacements: Settings of the plan that have another value on this machine.
    timed: Whether the times of answers say something about the planned hardware. If not, they are left out.
    worker_losses: Outcomes of the streams whose worker was killed. None if no worker was killed.
    batch: Outcomes of the batch jobs. None if none ran.
    scaling: How workers followed the load. None if their number was fixed.
    controllers: What the controllers did. None if they did not run.
    real_time: What callers with a deadline got. None if no model has any.
    streaming: What came of a replayed stream. None without streaming jobs.
    front_door: What callers got through the front door. None without one.
    Returns: A figure that cannot be computed is None, with the reason.
    """
    simulated = any(part.state == "simulated" for part in parts)
    whole = Basis(
        elapsed_seconds=max(run.result.elapsed_seconds for run in runs),
        capacity=_capacity({run.result.model for run in runs}, summary, scaling),
        simulated=simulated,
        profiled=all(run.profile is not None for run in runs),
        timed=timed,
    )
    return Report(
        blueprint=blueprint,
        created_at=created_at,
        simulated=simulated,
        timed=timed,
        parts=tuple(parts),
        replacements=replacements,
        measurement=measure([outcome for run in runs for outcome in run.result.outcomes], whole),
        models=tuple(_model(run, summary, scaling, simulated=simulated, timed=timed) for run in runs),
        plan=plan_as_dict(summary),
        worker_losses=worker_losses,
        batch=batch,
        scaling=scaling,
        controllers=controllers,
        real_time=real_time,
        streaming=streaming,
        front_door=front_door,
    )


def as_dict(report: Report) -> dict[str, Any]:
    """Return a report as JSON values under camelCase keys.

    Returns: The measurement of all models together is at the top level, with the first model's endpoint.
    """
    first = report.models[0]
    models = [{"name": model.name, **_flat(model)} for model in report.models]
    return {
        "blueprint": report.blueprint,
        "createdAt": report.created_at.isoformat(),
        "simulated": report.simulated,
        "timed": report.timed,
        "endpoint": first.endpoint,
        "curl": first.curl,
        **_values(report.measurement),
        "objectivesMet": _all_met([objective for model in report.models for objective in model.objectives]),
        "models": models,
        "workerLosses": _values(report.worker_losses),
        "batch": _values(report.batch),
        "scaling": _values(report.scaling),
        "capacityShift": _values(report.controllers and report.controllers.shift),
        "gpuHealth": _values(report.controllers and report.controllers.health),
        "realTime": _values(report.real_time),
        "streaming": _values(report.streaming),
        "frontDoor": _values(report.front_door),
        "parts": _values(report.parts),
        "replacements": _values(report.replacements),
        "plan": dict(report.plan),
    }


def curl_line(endpoint: str, model: str, images: ImageRequests | None = None, key: str | None = None) -> str:
    """Return a POSIX shell command that requests a few tokens, or images, from a model.

    endpoint: Base URL ending in ``/v1``.
    images: What a request for images asks for. None for a model that writes text.
    key: An API key. None if the endpoint needs none.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 16,
    }
    path = "chat/completions"
    if images:
        body, path = image_body(model, "a red bridge in the fog", images), "images/generations"
    command = ["curl", "-s", f"{endpoint}/{path}", "-H", "Content-Type: application/json"]
    if key is not None:
        command += ["-H", f"Authorization: Bearer {key}"]
    return shlex.join([*command, "-d", json.dumps(body)])


def _capacity(
    models: Collection[str], summary: PlanSummary, scaling: ScalingOutcome | None
) -> ServingCapacity:
    """Return what served some models: of elastic workers, only what they held.

    Where nothing makes them follow the load, they run in their smallest number.
    """
    planned = capacity_of(models, summary)
    if scaling is None or scaling.clients is not None:  # the replay came before workers followed clients
        unused = float(
            sum(
                (process.replicas - process.replicas_least) * process.accelerators
                for process in summary[PROCESSES]
                if process.model in models
            )
        )
    else:
        unused = sum(scaling.unused_gpus.get(model, 0.0) for model in models)
    return planned.without(unused) if unused else planned


def _model(
    run: ModelRun, summary: PlanSummary, scaling: ScalingOutcome | None, *, simulated: bool, timed: bool
) -> ModelReport:
    """Report one model."""
    result = run.result
    basis = Basis(
        result.elapsed_seconds,
        _capacity({result.model}, summary, scaling),
        simulated,
        profiled=run.profile is not None,
        timed=timed,
    )
    measurement = measure(result.outcomes, basis)
    public = {each.model: each.public_name for each in summary[PUBLIC_NAMES]}
    beyond = _beyond_profile(run)
    details: dict[str, str] = {}
    for outcome in result.outcomes:
        if outcome.failure:
            details.setdefault(outcome.failure, outcome.failure_detail)
    return ModelReport(
        name=result.model,
        endpoint=run.endpoint,
        curl=curl_line(run.endpoint, public.get(result.model, result.model), result.workload.images),
        measurement=measurement,
        objectives=_objectives(run, beyond, timed=timed),
        replayed=_replayed(result),
        failure_details=details,
        warnings=(*result.warnings, *_beyond_warnings(run, beyond)),
    )


def _beyond_profile(run: ModelRun) -> int:
    """Return how many answered requests are longer than the latency profile of the simulated engines."""
    profile = run.profile
    usages = [outcome.usage for outcome in run.result.answered if outcome.usage] if profile else []
    return sum(
        not profile.covers(
            prompt_tokens=usage.prompt_tokens - (usage.cached_tokens or 0),
            context_tokens=usage.prompt_tokens + usage.completion_tokens,
        )
        for usage in usages
        if profile is not None
    )


def _beyond_warnings(run: ModelRun, beyond: int) -> Iterator[str]:
    """Yield what the simulated engines do with requests that are longer than their latency profile.

    `predict_prefill_time` in ``perf_model.rs`` of ai-dynamo 1.6.1 takes each step's tokens for a prompt of
    their own, and `from_npz` interpolates with ``extrapolate(true)``.
    """
    if run.profile is not None and beyond:
        profile, answered = run.profile, amount(len(run.result.answered), "answered request")
        yield (
            f"{beyond:,} of {answered} are longer than the latency profile of {profile.model} on "
            f"{profile.accelerator}, which ends at {profile.max_prompt_tokens:,.0f} tokens of a prompt and "
            f"contexts of {profile.max_context_tokens:,.0f}. Their times are unknown: the simulated engine "
            "leaves out the attention to earlier parts of a long prompt, and draws a line beyond its table."
        )


def _objectives(run: ModelRun, beyond: int, *, timed: bool) -> tuple[ObjectiveOutcome, ...]:
    """Compare the stated objectives with what was measured; without times, with nothing.

    beyond: Requests of which the times are unknown. A percentile that leaves out fewer is not judged.
    """
    answered = len(run.result.answered)
    judged = judge(run.objectives, percentile_of(run.result.outcomes if timed else ()))
    return tuple(
        ObjectiveOutcome(
            each.objective.key,
            each.objective.limit_ms,
            each.value_ms,
            None if beyond > answered * (100 - each.objective.percentile) / 100 else each.met,
        )
        for each in judged
    )


def _all_met(objectives: Sequence[ObjectiveOutcome]) -> bool | None:
    """Return whether all objectives are met. None if none is stated or one could not be measured."""
    if not objectives or any(objective.met is None for objective in objectives):
        return None
    return all(objective.met for objective in objectives)


def _replayed(result: ReplayResult) -> Replayed:
    """Describe the replayed trace."""
    scaled, trace, workload = result.scaled, result.trace, result.workload
    return Replayed(
        trace=trace.name,
        source=trace.source,
        licence=trace.licence,
        cut=trace.cut,
        recorded_seconds=scaled.recorded_seconds,
        elapsed_seconds=result.elapsed_seconds,
        peak_requests_per_second=scaled.peak_requests_per_second,
        peak_window_seconds=scaled.peak_window_seconds,
        input_tokens=Length(
            workload.input_tokens, scaled.mean_input_tokens, _mean(result, lambda usage: usage.prompt_tokens)
        ),
        output_tokens=Length(
            workload.output_tokens,
            scaled.mean_output_tokens,
            _mean(result, lambda usage: usage.completion_tokens),
        ),
        stated_shared_prefix_ratio=workload.shared_prefix_ratio,
        template_tokens=result.template_tokens,
        scaling=scaled.factors,
        seed=result.seed,
        client_cpu_share=result.client_cpu_share,
        lateness_p99_ms=result.lateness_p99_ms,
        images=_asked_images(workload),
    )


def _asked_images(workload: Workload) -> str | None:
    """Describe what each request for images asked for."""
    images = workload.images
    if images is None:
        return None
    return f"{amount(images.per_request, 'image')} of {images.size} in {amount(images.steps, 'step')}"


def _mean(result: ReplayResult, tokens: Callable[[TokenUsage], int]) -> float | None:
    """Return the mean of a token count over the answers that have one."""
    counted = [tokens(outcome.usage) for outcome in result.answered if outcome.usage]
    return sum(counted) / len(counted) if counted else None


def _flat(model: ModelReport) -> dict[str, Any]:
    """Return a model's values and its measurement on one level, as at the top of the report."""
    values: dict[str, Any] = _values(model)
    measurement = values.pop("measurement")
    return {**values, **measurement}


def _values(value: Any) -> Any:
    """Turn dataclasses into JSON values: field names in camelCase, mappings unchanged."""
    if dataclasses.is_dataclass(value):
        return {
            to_camel(field.name): _values(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | list):
        return [_values(item) for item in value]
    return value
