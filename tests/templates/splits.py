"""Ways in which the accelerators of a worker hold a model, beside tensor parallelism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import inference_catalog as catalog

Document = dict[str, Any]
Draw = Callable[..., Any]

#: Share of a device that weights may take: what is left holds one short request on every device of the
#: catalogue, whatever activations and the engine's own reserve come to.
WEIGHT_SHARE = 0.6
#: What KV cache that moves between the roles depends on, by the engine.
_APART = {"vllm": {"tensorParallelSize"}, "sglang": {"pipelineParallelSize"}}


def topology(workers: list[Document]) -> Document:
    """Return the key of a deployment that says who does prefill and decode."""
    if len(workers) == 1:
        return {"aggregated": workers[0]}
    return {"disaggregated": dict(zip(("prefill", "decode"), workers, strict=True))}


@st.composite
def split(
    draw: Draw, section: Document, entry: str, pools: dict[str, list[catalog.InstanceType]]
) -> Document:
    """Return a model with some of its workers split over as many accelerators in another way."""
    if "kvCache" in section:
        return section
    deployments = []
    for deployment in section["deployments"]:
        roles = deployment.get("disaggregated")
        if roles:
            drawn = {
                role: draw(_workers(section, entry, each, pools, _APART)) for role, each in roles.items()
            }
            deployments.append(deployment | {"disaggregated": drawn})
        else:
            alone = draw(_workers(section, entry, deployment["aggregated"], pools, {}))
            deployments.append(deployment | {"aggregated": alone})
    return section | {"deployments": deployments}


def _workers(
    section: Document,
    entry: str,
    workers: Document,
    pools: dict[str, list[catalog.InstanceType]],
    kept: dict[str, set[str]],
) -> st.SearchStrategy[Document]:
    """Return workers in any of their ways that leave some keys of an engine's as they are."""
    [engine] = section.get("engine", {"vllm": {}})
    ways = _ways(section, catalog.models()[entry], workers, pools[workers["pool"]])
    others = [workers | way for way in ways if not kept.get(engine, set()) & way.keys()]
    # Few models have experts: what only they have comes last, and oftener.
    return st.sampled_from([workers, *others, *others[1:] * 4])


def _ways(
    section: Document, model: catalog.Model, workers: Document, types: list[catalog.InstanceType]
) -> list[Document]:
    """Return the other ways in which a worker's accelerators hold the model."""
    size = workers["tensorParallelSize"]
    if size == 1:
        return [{"pipelineParallelSize": 1, "dataParallelSize": 1}]
    memory = min(each.accelerator.memory_bytes for each in types if each.accelerator)
    ways: list[Document] = []
    # The first or last stage holds the vocabulary too.
    if model.weight_bytes / size <= 0.75 * WEIGHT_SHARE * memory:
        ways.append({"tensorParallelSize": size // 2, "pipelineParallelSize": 2})
    if not model.experts or model.experts % size:
        return ways
    ways.append({"expertParallel": True})
    others = model.weight_bytes - model.expert_weight_bytes
    each = others + model.expert_weight_bytes / size
    precise = section.get("stack") == {"llmD": {"prefixScorer": "precise"}}
    if each <= 0.75 * WEIGHT_SHARE * memory and not precise:
        ways.append({"tensorParallelSize": 1, "dataParallelSize": size, "expertParallel": True})
    return ways
