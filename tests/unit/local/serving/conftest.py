"""Blueprints with given deployments of models."""

from collections.abc import Callable

import pytest

from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.local_target import LocalTarget


@pytest.fixture
def blueprint_of() -> Callable[..., Blueprint]:
    def build(*deployments: tuple[str, int], model: str = "Qwen/Qwen3-8B") -> Blueprint:
        return Blueprint.model_validate(
            {
                "apiVersion": "inference-blueprints/v1alpha1",
                "kind": "Blueprint",
                "metadata": {"name": "here"},
                "spec": {
                    "environment": {"region": "us-west-2"},
                    "cluster": {"eks": {"version": "1.35"}},
                    "pools": [
                        {"name": "l40s", "instanceTypes": ["g6e.2xlarge"], "nodes": {"max": 900}},
                        {"name": "l4", "instanceTypes": ["g6.2xlarge"], "nodes": {"max": 900}},
                    ],
                    "models": [
                        {
                            "name": "answerer",
                            "weights": {"huggingFace": model},
                            "workload": {
                                "inputTokens": 500,
                                "outputTokens": 50,
                                "peakRequestsPerSecond": 1.0,
                            },
                            "deployments": [
                                {
                                    "name": f"{pool}-{index}",
                                    "aggregated": {
                                        "pool": pool,
                                        "replicas": replicas,
                                        "tensorParallelSize": 1,
                                    },
                                }
                                for index, (pool, replicas) in enumerate(deployments)
                            ],
                        }
                    ],
                },
            }
        )

    return build


@pytest.fixture
def deployments_of(
    blueprint_of: Callable[..., Blueprint],
) -> Callable[..., tuple[LocalDeployment, ...]]:
    def build(*deployments: tuple[str, int]) -> tuple[LocalDeployment, ...]:
        blueprint = blueprint_of(*deployments)
        return LocalTarget(blueprint).render(build_plan(blueprint).model("answerer"))

    return build
