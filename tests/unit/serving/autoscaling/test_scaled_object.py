"""What a manifest must contain to be evaluated."""

from __future__ import annotations

import pytest

from inference_blueprints.serving.autoscaling.scaled_object import Fallback, MetricTrigger, ScaledObject
from inference_contracts.errors import UserError
from tests.unit.serving.autoscaling.scaled_objects import TOKENS, WORKDAY, manifest


def test_reads_what_charts_write() -> None:
    fallback = {"failureThreshold": 3, "replicas": 6, "behavior": "currentReplicasIfHigher"}
    found = ScaledObject.read(manifest(triggers=[TOKENS, WORKDAY], fallback=fallback))
    assert found.triggers[0] == MetricTrigger(
        name="tokens", query="sum(tokens)", target=100.0, metric_type="AverageValue", empty_is_zero=False
    )
    assert found.fallback == Fallback(failure_threshold=3, replicas=6, behaviour="currentReplicasIfHigher")
    assert (found.minimum, found.maximum, found.polling_seconds) == (2, 12, 15)


def test_names_of_triggers_without_a_name() -> None:
    unnamed = [{key: each[key] for key in each if key != "name"} for each in (TOKENS, WORKDAY)]
    found = ScaledObject.read(manifest(triggers=unnamed))
    assert [trigger.name for trigger in found.triggers] == ["s0-prometheus", "s1-cron"]


def test_other_targets_and_fewer_workers_of_a_smaller_machine() -> None:
    found = ScaledObject.read(manifest(triggers=[TOKENS, WORKDAY])).with_limits(5, {"tokens": 7.0})
    [tokens, workday] = found.triggers
    assert isinstance(tokens, MetricTrigger)
    assert tokens.target == 7.0
    assert workday.name == "workday"
    assert (found.minimum, found.maximum) == (2, 5)
    assert found.with_limits(9, {}) == found


def test_all_problems_at_once() -> None:
    broken = manifest(
        minimum=0,
        triggers=[
            {"type": "cpu", "metadata": {}},
            {"type": "prometheus", "metadata": {"query": "up"}},
            {"type": "prometheus", "metadata": {"query": "up", "threshold": "0"}},
            {**WORKDAY, "metadata": {**WORKDAY["metadata"], "start": "0 25 * * *"}},
        ],
    )
    broken["spec"] |= {"advanced": {}, "idleReplicaCount": 0}
    with pytest.raises(UserError) as caught:
        ScaledObject.read(broken)
    lines = str(caught.value).splitlines()
    assert [line.removeprefix("ScaledObject worker: ") for line in lines] == [
        "spec.triggers[0].type is 'cpu'; allowed are prometheus and cron",
        "spec.triggers[1].metadata has no threshold",
        "spec.triggers[2].metadata: threshold is 0; it must be above 0",
        "spec.triggers[3].metadata: '25' is not a hour; allowed are 0 to 23",
        "spec.advanced.horizontalPodAutoscalerConfig.behavior is missing; write scaleDown",
        "spec.idleReplicaCount is not evaluated; leave it out",
        "spec.minReplicaCount is 0; allowed is 1 to maxReplicaCount (12)",
    ]
