"""A platform whose models share a pool by the hour: two of real time, and one of batch alone."""

from __future__ import annotations

from typing import Any

POOL = "h100"
NODES, ACCELERATORS = 2, 16
#: Workers of real time in the order of their priority, and those of batch.
FIRST, SECOND, LENT = "live-main-server", "shop-main-server", "nightly-main-server"
_REVISION = "b968826d9c46dd6066d109eabc6255188de91218"
_RATES = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 0.5}


def document(action: str = "shift") -> dict[str, Any]:
    """Return the blueprint. Its workers may together ask for 12 + 8 + 16 of the 16 accelerators."""
    return {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": "shared"},
        "spec": {
            "environment": {"region": "us-west-2"},
            "cluster": {"eks": {"version": "1.35"}},
            "observability": {},
            "capacityShift": {"action": action},
            "pools": [
                {
                    "name": POOL,
                    "instanceTypes": ["p5.48xlarge"],
                    "purchase": {"reservation": {"id": "cr-0a1b2c3d4e5f60718"}},
                    "nodes": {"min": NODES, "max": NODES},
                    "availabilityZone": "us-west-2b",
                    "shared": {},
                }
            ],
            "models": [
                _model("live", 100, least=2, most=12, scaled_by={"load": {}}),
                _model("shop", 80, least=1, most=2, size=4, scaled_by={"load": {}}),
                _model("nightly", 10, least=0, most=16, scaled_by={"capacityShift": {}}),
            ],
            "teams": [
                {
                    "name": "ads",
                    "principals": ["arn:aws:iam::111122223333:role/ads"],
                    "monthlyBudgetUsd": 200_000,
                }
            ],
            "batch": {
                "queues": [
                    {
                        "name": "nightly",
                        "model": "nightly",
                        "rates": _RATES,
                        "load": {"requestsPerDay": 100_000},
                        "workload": {"inputTokens": 1000, "outputTokens": 100},
                    }
                ]
            },
        },
    }


def _model(
    name: str, priority: int, *, least: int, most: int, size: int = 1, scaled_by: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "priority": priority,
        "stack": {"direct": {}},
        "weights": {"huggingFace": "Qwen/Qwen3-8B", "revision": _REVISION},
        **(
            {"workload": {"inputTokens": 1000, "outputTokens": 100, "peakRequestsPerSecond": 1}}
            if least
            else {}
        ),
        "deployments": [
            {
                "name": "main",
                "aggregated": {
                    "pool": POOL,
                    "tensorParallelSize": size,
                    "replicas": {"min": least, "max": most},
                    "scaledBy": scaled_by,
                    **({"requestsAtOnce": 60} if size > 1 else {}),
                },
            }
        ],
    }
