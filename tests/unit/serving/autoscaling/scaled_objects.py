"""A ScaledObject as the charts render it, with changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TOKENS: Mapping[str, Any] = {
    "type": "prometheus",
    "name": "tokens",
    "metricType": "AverageValue",
    "metadata": {
        "serverAddress": "http://prometheus",
        "query": "sum(tokens)",
        "threshold": "100",
        "ignoreNullValues": "false",
    },
}
WORKDAY: Mapping[str, Any] = {
    "type": "cron",
    "name": "workday",
    "metadata": {
        "timezone": "Europe/Berlin",
        "start": "0 7 * * 1-5",
        "end": "0 21 * * 1-5",
        "desiredReplicas": "6",
    },
}


def manifest(
    *,
    minimum: int = 2,
    maximum: int = 12,
    triggers: Sequence[Mapping[str, Any]] = (TOKENS,),
    scale_up: Mapping[str, Any] | None = None,
    scale_down: Mapping[str, Any] | None = None,
    fallback: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a manifest. Without other rules, numbers change at once and by any step."""
    free = {"policies": [{"type": "Percent", "value": 1000, "periodSeconds": 15}]}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
        "pollingInterval": 15,
        "minReplicaCount": minimum,
        "maxReplicaCount": maximum,
        "triggers": [dict(trigger) for trigger in triggers],
        "advanced": {
            "horizontalPodAutoscalerConfig": {
                "behavior": {
                    "scaleUp": {"stabilizationWindowSeconds": 0, **free, **(scale_up or {})},
                    "scaleDown": {
                        "stabilizationWindowSeconds": 0,
                        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                        **(scale_down or {}),
                    },
                }
            }
        },
        **({"fallback": fallback} if fallback else {}),
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "worker"},
        "spec": spec,
    }
