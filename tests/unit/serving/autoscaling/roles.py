"""A small elastic role for simulations: ten requests a worker at once, one request a second each."""

from __future__ import annotations

from typing import Any

from inference_blueprints.serving.autoscaling.request_rates import RateWindow, RequestRates
from inference_blueprints.serving.autoscaling.scaled_object import ScaledObject
from inference_local.simulators.workers.fleet import WorkerModel
from inference_local.simulators.workers.owners import AutoscaledRole, RoleState, Signal, always
from tests.unit.serving.autoscaling.scaled_objects import TOKENS, manifest

WORKER = WorkerModel(
    slots=10, prefill_seconds=0.5, answer_seconds=9.5, cold_start_seconds=120.0, objective_seconds=2.0
)
MAXIMUM = 12
#: Begins low, rises, falls, and flaps in the end: requests per second in windows of ten minutes.
DAY = (3.0, 3.0, 5.0, 8.0, 8.0, 4.0, 2.0, 9.0, 2.0, 9.0, 2.0, 2.0)


def rates(*values: float) -> RequestRates:
    """Rates of ten minutes each."""
    return RequestRates(tuple(RateWindow(600.0 * index, value) for index, value in enumerate(values)))


def in_flight(state: RoleState) -> float:
    """Requests of the role."""
    return state.running + state.waiting


#: The guard of our charts: a full worker, less the tolerance of the autoscaler.
GUARD = {
    **TOKENS,
    "name": "requests-in-flight",
    "metadata": {**TOKENS["metadata"], "query": "sum(requests)", "threshold": f"{WORKER.slots / 1.1:.2f}"},
}


def elastic(signal: Signal = in_flight, *, guard: Signal | None = None, **changes: Any) -> AutoscaledRole:
    """A role whose workers should have eight requests each, with the pace and the fallback of our charts.

    signal: What the load's trigger reads.
    guard: What the guard reads. None: there is no guard.
    changes: Of the ScaledObject.
    """
    ignored = changes.pop("ignore_null_values", "false")
    keda_answers = changes.pop("keda_answers", always)
    trigger = {**TOKENS, "metadata": {**TOKENS["metadata"], "threshold": "8", "ignoreNullValues": ignored}}
    pace = {
        "stabilizationWindowSeconds": 300,
        "policies": [{"type": "Percent", "value": 10, "periodSeconds": 60}],
    }
    fallback = {"failureThreshold": 3, "replicas": 6, "behavior": "currentReplicasIfHigher"}
    triggers = [trigger] if guard is None else [trigger, GUARD]
    signals = {"tokens": signal} | ({} if guard is None else {"requests-in-flight": guard})
    rules = {"triggers": triggers, "scale_down": pace, "fallback": fallback, **changes}
    return AutoscaledRole(
        ScaledObject.read(manifest(maximum=MAXIMUM, **rules)), signals, keda_answers=keda_answers
    )
