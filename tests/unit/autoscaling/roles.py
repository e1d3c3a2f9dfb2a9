"""A small elastic role for simulations: ten requests a worker at once, one request a second each."""

from __future__ import annotations

from typing import Any

from inference_blueprints.autoscaling.owners import AutoscaledRole, RoleState, Signal, always
from inference_blueprints.autoscaling.request_rates import RateWindow, RequestRates
from inference_blueprints.autoscaling.scaled_object import ScaledObject
from inference_blueprints.autoscaling.worker_model import WorkerModel
from tests.unit.autoscaling.scaled_objects import TOKENS, manifest

WORKER = WorkerModel(
    slots=10, prefill_seconds=0.5, answer_seconds=9.5, cold_start_seconds=120.0, objective_seconds=2.0
)
MOST = 12
#: Begins low, rises, falls, and flaps in the end: requests per second in windows of ten minutes.
DAY = (3.0, 3.0, 5.0, 8.0, 8.0, 4.0, 2.0, 9.0, 2.0, 9.0, 2.0, 2.0)


def rates(*values: float) -> RequestRates:
    """Rates of ten minutes each."""
    return RequestRates(tuple(RateWindow(600.0 * index, value) for index, value in enumerate(values)))


def in_flight(state: RoleState) -> float:
    """Requests of the role."""
    return state.running + state.waiting


def elastic(signal: Signal = in_flight, **changes: Any) -> AutoscaledRole:
    """A role whose workers should have eight requests each, with the pace and the fallback of our charts."""
    ignored = changes.pop("ignore_null_values", "false")
    keda_answers = changes.pop("keda_answers", always)
    trigger = {**TOKENS, "metadata": {**TOKENS["metadata"], "threshold": "8", "ignoreNullValues": ignored}}
    pace = {
        "stabilizationWindowSeconds": 300,
        "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}],
    }
    fallback = {"failureThreshold": 3, "replicas": 6, "behavior": "currentReplicasIfHigher"}
    rules = {"triggers": [trigger], "scale_down": pace, "fallback": fallback, **changes}
    return AutoscaledRole(
        ScaledObject.read(manifest(most=MOST, **rules)), {"tokens": signal}, keda_answers=keda_answers
    )
