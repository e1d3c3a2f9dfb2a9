"""One blueprint of every kind of pool: each row is a pool and the accelerators that a worker splits over."""

from __future__ import annotations

from typing import Any

REPLICAS = 2
#: As many as a model may have.
_DEPLOYMENTS_OF_A_MODEL = 5
#: The fields of a pool beside its name and node count, and the tensor parallel size of its workers.
POOLS: dict[str, tuple[dict[str, Any], int]] = {
    "g6": ({"instanceTypes": ["g6.12xlarge"]}, 2),
    "g6e": ({"instanceTypes": ["g6e.2xlarge"]}, 1),
    "g6e-mixed": ({"instanceTypes": ["g6e.12xlarge", "g6e.24xlarge"]}, 2),
    "g6e-spot": ({"instanceTypes": ["g6e.4xlarge"], "purchase": {"spot": {}}}, 1),
    "g6e-spot-first": (
        {"instanceTypes": ["g6e.xlarge", "g6e.2xlarge"], "purchase": {"spot": {"onDemandFallback": True}}},
        1,
    ),
    "g7e": ({"instanceTypes": ["g7e.2xlarge"]}, 1),
    "p4d": ({"instanceTypes": ["p4d.24xlarge"]}, 4),
    "p5": ({"instanceTypes": ["p5.48xlarge"]}, 4),
    "p5-one": ({"instanceTypes": ["p5.4xlarge"]}, 1),
    "p5e": ({"instanceTypes": ["p5e.48xlarge"]}, 4),
    "p5en": ({"instanceTypes": ["p5en.48xlarge"]}, 4),
    "p5en-snapshot": (
        {
            "instanceTypes": ["p5en.48xlarge"],
            "imageAcceleration": {"ebsSnapshot": {"id": "snap-0a1b2c3d4e5f60718"}},
        },
        4,
    ),
    "p6-b200": ({"instanceTypes": ["p6-b200.48xlarge"]}, 4),
    "p6-b300": ({"instanceTypes": ["p6-b300.48xlarge"]}, 4),
}


def document() -> dict[str, Any]:
    """The blueprint: a deployment of workers on every pool."""
    return {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": "matrix"},
        "spec": {
            "environment": {"region": "us-west-2"},
            "cluster": {"eks": {"version": "1.35"}},
            "queueing": {"kueue": {"borrowing": {}}},
            "pools": [
                {"name": name, "nodes": {"max": REPLICAS}, **fields} for name, (fields, _) in POOLS.items()
            ],
            "models": [
                _model(number, list(POOLS)[number : number + _DEPLOYMENTS_OF_A_MODEL])
                for number in range(0, len(POOLS), _DEPLOYMENTS_OF_A_MODEL)
            ],
        },
    }


def _model(number: int, pools: list[str]) -> dict[str, Any]:
    """A model with a deployment on each of some pools."""
    return {
        "name": f"model-{number}",
        "weights": {"huggingFace": "Qwen/Qwen3-8B"},
        "workload": {"inputTokens": 3000, "outputTokens": 200, "peakRequestsPerSecond": 2},
        "deployments": [
            {
                "name": name,
                "aggregated": {"pool": name, "replicas": REPLICAS, "tensorParallelSize": POOLS[name][1]},
            }
            for name in pools
        ],
    }
