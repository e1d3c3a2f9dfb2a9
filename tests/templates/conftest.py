"""Templates of shipped blueprints and of variants, each synthesised once for all tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from inference_blueprints.spec.source import shipped
from tests.templates.support import Templates
from tests.templates.synthesis import write_templates

#: Shipped blueprints that have little in common: Kubernetes with the defaults, batch, ECS, and operations.
UNLIKE = ("batch-g6e", "capacity-and-health", "ecs-g6e", "quickstart-g6e")

BASE: Mapping[str, Any] = {
    "apiVersion": "inference-blueprints/v1alpha1",
    "kind": "Blueprint",
    "metadata": {"name": "try"},
    "spec": {
        "environment": {"region": "us-west-2"},
        "cluster": {"eks": {"version": "1.35"}},
        "pools": [{"name": "l40s", "instanceTypes": ["g6e.2xlarge"], "nodes": {"max": 4}}],
        "models": [
            {
                "name": "qwen3-8b",
                "weights": {"huggingFace": "Qwen/Qwen3-8B", "revision": "main"},
                "workload": {"inputTokens": 3000, "outputTokens": 200, "peakRequestsPerSecond": 2},
                "deployments": [
                    {"name": "main", "aggregated": {"pool": "l40s", "replicas": 2, "tensorParallelSize": 1}}
                ],
            }
        ],
    },
}

Change = Callable[[dict[str, Any]], object]
Synthesise = Callable[..., Templates]
SynthesiseShipped = Callable[[str], Templates]


@pytest.fixture(scope="session")
def base() -> dict[str, Any]:
    """The base document of variants. Copy it before changing it."""
    return copy.deepcopy(dict(BASE))


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Synthesise:
    """Synthesise the base document after a change of its spec. Equal documents are synthesised once."""
    done: dict[str, Templates] = {}

    def build(change: Change | None = None, *, again: bool = False) -> Templates:
        document = copy.deepcopy(dict(BASE))
        if change:
            change(document["spec"])
        text = yaml.safe_dump(document)
        if again or text not in done:
            folder = tmp_path_factory.mktemp("variant")
            (folder / "blueprint.yaml").write_text(text)
            done[text] = write_templates(folder / "blueprint.yaml", folder / "cdk.out")
        return done[text]

    return build


@pytest.fixture(scope="session")
def base_templates(synthesise: Synthesise) -> Templates:
    """Templates of the unchanged base document."""
    return synthesise()


@pytest.fixture(scope="session")
def synthesise_shipped(tmp_path_factory: pytest.TempPathFactory) -> SynthesiseShipped:
    """Synthesise a shipped blueprint, once in the session."""
    return cache(lambda name: write_templates(shipped()[name], tmp_path_factory.mktemp(name) / "cdk.out"))


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(name, marks=() if name in UNLIKE else pytest.mark.thorough) for name in sorted(shipped())
    ],
)
def shipped_name(request: pytest.FixtureRequest) -> str:
    """Each shipped blueprint in turn, in the first tier only unlike ones."""
    return str(request.param)


@pytest.fixture(scope="session")
def shipped_templates(shipped_name: str, synthesise_shipped: SynthesiseShipped) -> Templates:
    """Templates of a shipped blueprint."""
    return synthesise_shipped(shipped_name)
