from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.spec.types import Blueprint

Document = dict[str, Any]


@pytest.fixture(scope="session")
def _quickstart_document() -> Document:
    path = resources.blueprints_directory() / "quickstart-g6e.yaml"
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.fixture
def make_blueprint(_quickstart_document: Document) -> Callable[..., Blueprint]:
    """Return a function that changes the pool, model, workload or deployment of quickstart."""

    def make(
        *,
        instance_types: list[str] | None = None,
        nodes: int | None = None,
        disk_gib: int | None = None,
        node_cache_gib: int | None = None,
        aggregated: Document | None = None,
        workload: Document | None = None,
        **model: Any,
    ) -> Blueprint:
        document = copy.deepcopy(_quickstart_document)
        [pool] = document["spec"]["pools"]
        [section] = document["spec"]["models"]
        pool["instanceTypes"] = instance_types or pool["instanceTypes"]
        pool["nodes"]["max"] = nodes or pool["nodes"]["max"]
        if disk_gib:
            pool["disk"] = {"sizeGib": disk_gib}
        if node_cache_gib is not None:
            pool.setdefault("disk", {})["nodeCacheGib"] = node_cache_gib
        section["workload"] |= workload or {}
        section["deployments"][0]["aggregated"] |= aggregated or {}
        section |= model
        return Blueprint.model_validate(document)

    return make
