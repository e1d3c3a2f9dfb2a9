"""A worker of an elastic blueprint, as its plan computes it, and the ScaledObject that its chart renders."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.harness.figure import BenchmarkError
from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.autoscaling.request_rates import RequestRates
from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
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
from inference_local.simulators.workers.owners import (
    AutoscaledRole,
    ClairvoyantSchedule,
    FixedNumber,
    Owner,
    RoleState,
    Signal,
)


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
    prefill = prefill_ms(profile, role.traffic.means) / 1000.0
    start = headroom((role,), (worker.image,), worker.scaling.polling_seconds)
    model = WorkerModel(
        slots=worker_load(role).requests,
        prefill_seconds=prefill,
        answer_seconds=seconds - prefill,
        cold_start_seconds=start.start_seconds,
        objective_seconds=prefill_seconds(role.model.objectives),
    )
    return PlannedWorker(model, role.traffic.means.input_tokens, _rendered(deployment))


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


#: The smallest and largest number of workers.
MINIMUM: Final = 2
MAXIMUM: Final = 120

#: Makes an owner for rates: its settings are bound.
Setting = Callable[[RequestRates], Owner]
#: Settings from the cheapest to the most generous.
Ladder = Sequence[Setting]


@dataclass(frozen=True, slots=True)
class ScalingWays:
    """The ways for one kind of worker."""

    worker: PlannedWorker
    """The worker, and how it scales as planned."""

    def ladders(self) -> dict[str, list[Ladder]]:
        """Return the settings of each way by its name: ladders of one setting, for each value of another."""
        return {
            "elastic": [
                [self._elastic(share / 100, down) for share in range(95, 35, -5)] for down in (60, 300)
            ],
            "elastic as planned": [[self._elastic()]],
            "fixed": [[_fixed(number) for number in range(30, MAXIMUM + 1, 2)]],
            "CPU": [[self._on_cpu(target / 100) for target in range(90, 25, -5)]],
            "queue": [
                [self._on_queue(minimum, down) for minimum in range(20, MAXIMUM + 1, 5)]
                for down in (300, 1800)
            ],
            "unanswered": [[self._on_unanswered(share / 100) for share in range(95, 35, -5)]],
            "clairvoyant": [[self._clairvoyant(use / 100) for use in range(98, 60, -3)]],
        }

    def _elastic(self, share: float | None = None, down_seconds: int | None = None) -> Setting:
        """Return the rendered object of the blueprint, for another number of workers and without floors.

        share: The target, as a share of what a worker carries. None for the planned target.
        down_seconds: `scaleDownAfterSeconds`. None for the planned time.
        """
        found = copy.deepcopy(self.worker.scaled_object)
        specification = found["spec"]
        specification |= {"minReplicaCount": MINIMUM, "maxReplicaCount": MAXIMUM}
        specification["triggers"] = [each for each in specification["triggers"] if each["type"] != "cron"]
        (tokens,) = (each for each in specification["triggers"] if each["name"] == "tokens-in-flight")
        if share is not None:
            full = self.worker.model.slots * self.worker.prompt_tokens
            tokens["metadata"]["threshold"] = str(share * full)
        down = specification["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
        if down_seconds is not None:
            down["stabilizationWindowSeconds"] = down_seconds
        signals: dict[str, Signal] = {
            "tokens-in-flight": self._tokens,
            "queue-length": _unanswered,
            "requests-in-flight": _in_flight,
        }
        return lambda _: AutoscaledRole(ScaledObject.read(found), signals)

    def _clairvoyant(self, use: float) -> Setting:
        return lambda rates: ClairvoyantSchedule(rates, self.worker.model, use, MINIMUM, MAXIMUM)

    def _on_cpu(self, target: float) -> Setting:
        return _autoscaled({"cpu": ("Value", target, self._slots_in_use)}, MINIMUM, 300)

    def _on_queue(self, minimum: int, down_seconds: int) -> Setting:
        return _autoscaled({"queue": ("AverageValue", 1.0, _waiting)}, minimum, down_seconds)

    def _on_unanswered(self, share: float) -> Setting:
        full = self.worker.model.requests_per_second * self.worker.model.prefill_seconds
        return _autoscaled({"unanswered": ("AverageValue", share * full, _unanswered)}, MINIMUM, 300)

    def _tokens(self, state: RoleState) -> float:
        return _in_flight(state) * self.worker.prompt_tokens

    def _slots_in_use(self, state: RoleState) -> float | None:
        return state.running / (state.ready * self.worker.model.slots) if state.ready else None


def _fixed(number: int) -> Setting:
    return lambda _: FixedNumber(number)


def _autoscaled(
    triggers: Mapping[str, tuple[str, float, Signal]], minimum: int, down_seconds: int
) -> Setting:
    """Return a role with the chart's pace: up at once by default, down by a tenth a minute."""
    behaviour: dict[str, Any] = {
        "scaleDown": {
            "stabilizationWindowSeconds": down_seconds,
            "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}],
        }
    }
    manifest = {
        "metadata": {"name": "worker"},
        "spec": {
            "minReplicaCount": minimum,
            "maxReplicaCount": MAXIMUM,
            "pollingInterval": 15,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": behaviour}},
            "triggers": [
                {
                    "type": "prometheus",
                    "name": name,
                    "metricType": kind,
                    "metadata": {"query": name, "threshold": str(target), "ignoreNullValues": "false"},
                }
                for name, (kind, target, _) in triggers.items()
            ],
        },
    }
    signals = {name: signal for name, (_, _, signal) in triggers.items()}
    return lambda _: AutoscaledRole(ScaledObject.read(manifest), signals)


def _in_flight(state: RoleState) -> float:
    return state.running + state.waiting


def _unanswered(state: RoleState) -> float:
    return state.waiting + state.prefilling


def _waiting(state: RoleState) -> float:
    return state.waiting
