"""Lives of a platform on ECS: kinds of hosts, purchases, pools, tags and replicas, drawn for each deployment.

Other keys are the same on both targets, and `strategies` draws them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.templates.conftest import BASE

Document = dict[str, Any]
Draw = Callable[..., Any]

_PURCHASES: list[Document] = [{"onDemand": {}}, {"spot": {}}, {"spot": {"onDemandFallback": True}}]
#: Instance types, and the GPUs of a worker on them. Managed Instances run workers with one GPU only.
_SIZES = [
    (["g6e.2xlarge"], 1),
    (["g6e.2xlarge", "g6e.4xlarge"], 1),
    (["g6e.12xlarge"], 1),
    (["g6e.12xlarge"], 2),
]
_TAGS: list[dict[str, str]] = [{}, {"team": "search"}, {"Cost Center": "42", "team/owner": "search"}]
_MAX_REPLICAS = 3


@st.composite
def ecs_lives(draw: Draw, environment: Document, *, steps: int) -> list[Document]:
    """Return what one platform's file says one after the other: anything changes that may."""
    return [draw(ecs_blueprints(environment)) for _ in range(steps)]


@st.composite
def ecs_blueprints(draw: Draw, environment: Document) -> Document:
    """Return a valid blueprint for ECS."""
    document = copy.deepcopy(dict(BASE))
    spec = document["spec"]
    spec["environment"] = {**environment, "tags": draw(st.sampled_from(_TAGS))}
    spec["cluster"] = {
        "ecs": draw(st.sampled_from([{}, {"managedInstances": "never"}, {"executeCommand": True}]))
    }
    names = draw(st.lists(st.sampled_from(["blue", "green", "spare"]), min_size=1, max_size=2, unique=True))
    sizes = {name: draw(st.sampled_from(_SIZES)) for name in names}
    spec["pools"] = [
        {
            "name": name,
            "instanceTypes": sizes[name][0],
            "nodes": {"min": draw(st.integers(0, 1)), "max": 2 * _MAX_REPLICAS + draw(st.integers(0, 1))},
            "purchase": draw(st.sampled_from(_PURCHASES)),
        }
        for name in names
    ]
    [model] = spec["models"]
    spec["models"] = [
        {**copy.deepcopy(model), "name": name, "deployments": [_deployment(draw, names, sizes)]}
        for name in draw(st.sampled_from([["chat"], ["chat", "code"], ["code"]]))
    ]
    return document


def _deployment(draw: Draw, names: list[str], sizes: dict[str, tuple[list[str], int]]) -> Document:
    pool = draw(st.sampled_from(names))
    workers = {
        "pool": pool,
        "replicas": draw(st.integers(1, _MAX_REPLICAS)),
        "tensorParallelSize": sizes[pool][1],
    }
    return {"name": "main", "aggregated": workers}
