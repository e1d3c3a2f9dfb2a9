"""A worker of an elastic blueprint, as its plan computes it, and the ScaledObject that its chart renders."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness.timing import BenchmarkError
from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.estimates.request_estimates import prefill_seconds
from inference_blueprints.serving.performance import prefill_ms, speeds
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.scaling.worker_load import headroom, request_seconds, worker_load
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.tools import helm
from inference_catalog.charts import charts_directory, stage_chart
from inference_local.emulator.kubernetes import render
from inference_local.simulators.workers.fleet import WorkerModel


@dataclass(frozen=True, slots=True)
class PlannedWorker:
    """A worker of a blueprint."""

    model: WorkerModel
    """What it carries."""
    prompt_tokens: int
    """Tokens of a prompt."""
    scaled_object: dict[str, Any]
    """How it scales."""


def planned_worker(name: str) -> PlannedWorker:
    """Return the worker of a shipped blueprint with one aggregated deployment.

    Raises BenchmarkError if no latency profile says how long its requests take.
    """
    blueprint = load_blueprint(name).blueprint
    (planned,) = build_plan(blueprint).models
    (deployment,) = planned.deployments
    (worker,) = deployment.workers
    (role,) = resolve(blueprint, 0, 0)
    profile, seconds = speeds(role), request_seconds(role)
    if profile is None or seconds is None or worker.scaling is None:
        raise BenchmarkError(f"{name}: no latency profile for its workers, or they are not elastic")
    prefill = prefill_ms(profile, role.model.workload) / 1000.0
    start = headroom((role,), (worker.image,), worker.scaling.polling_seconds)
    model = WorkerModel(
        slots=worker_load(role).requests,
        prefill_seconds=prefill,
        answer_seconds=seconds - prefill,
        cold_start_seconds=start.start_seconds,
        objective_seconds=prefill_seconds(role.model.objectives),
    )
    return PlannedWorker(model, role.model.workload.input_tokens, _rendered(deployment))


def _rendered(deployment: DeploymentPlan) -> dict[str, Any]:
    """Return the ScaledObject as the chart renders it."""
    with tempfile.TemporaryDirectory() as folder:
        objects = render(
            helm(),
            stage_chart(charts_directory() / deployment.chart, Path(folder)),
            release=deployment.release,
            namespace="inference",
            values=deployment_values(deployment, weights_bucket="weights"),
            kubernetes_version="1.35",
        )
    (found,) = (each for each in objects if each["kind"] == "ScaledObject")
    return found
