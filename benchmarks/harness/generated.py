"""Generates blueprints of any size, to measure how work grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

#: Instance types and devices per worker, assigned to the pools in turn.
_POOL_KINDS = (("g6e.2xlarge", 1), ("g6e.12xlarge", 4), ("g6e.48xlarge", 2), ("p5.48xlarge", 4))
_REPLICAS = 2


def generated_blueprint(pools: int, models: int) -> dict[str, Any]:
    """Return a valid blueprint of a size.

    pools, models: Number of pools and models. Each model runs on one pool that has room for it.
    Returns: The blueprint, as parsed from YAML.
    """
    kinds = [_POOL_KINDS[index % len(_POOL_KINDS)] for index in range(pools)]
    return {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": f"generated-{pools}-{models}"},
        "spec": {
            "environment": {"region": "us-west-2"},
            "cluster": {"eks": {"version": "1.35"}},
            "pools": [
                {
                    "name": f"pool-{index}",
                    "instanceTypes": [instance_type],
                    "nodes": {"max": _REPLICAS * -(-models // pools)},
                }
                for index, (instance_type, _) in enumerate(kinds)
            ],
            "models": [_model(index, index % pools, kinds[index % pools][1]) for index in range(models)],
        },
    }


def write_generated(directory: Path, pools: int, models: int) -> Path:
    """Write a generated blueprint and return its path."""
    document = generated_blueprint(pools, models)
    path = directory / f"{document['metadata']['name']}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def _model(index: int, pool: int, tensor_parallel_size: int) -> dict[str, Any]:
    return {
        "name": f"model-{index}",
        "weights": {"huggingFace": "Qwen/Qwen3-8B"},
        "workload": {"inputTokens": 3000, "outputTokens": 200, "peakRequestsPerSecond": 2},
        "deployments": [
            {
                "name": "main",
                "aggregated": {
                    "pool": f"pool-{pool}",
                    "replicas": _REPLICAS,
                    "tensorParallelSize": tensor_parallel_size,
                },
            }
        ],
    }
