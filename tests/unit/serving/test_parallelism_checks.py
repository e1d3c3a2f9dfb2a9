"""Ways of splitting a worker that no engine could start."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

Make = Callable[..., Blueprint]

MIXTURE = {"huggingFace": "Qwen/Qwen3-235B-A22B-FP8"}
DENSE = {"huggingFace": "Qwen/Qwen3-32B"}
PLACE = ("spec", "models", 0, "deployments", 0)


@pytest.fixture
def split(make_blueprint: Make) -> Make:
    """Return a maker of a model on p5en.48xlarge."""

    def make(**changes: Any) -> Blueprint:
        defaults = {"instance_types": ["p5en.48xlarge"], "nodes": 4, "weights": MIXTURE}
        return make_blueprint(**defaults | changes)

    return make


def one(blueprint: Blueprint) -> Finding:
    [finding] = serving_findings(blueprint)
    return finding


def errors(blueprint: Blueprint) -> list[Finding]:
    return [finding for finding in serving_findings(blueprint) if finding.severity == "error"]


@pytest.mark.parametrize(
    "sizes",
    [
        {"tensorParallelSize": 4, "pipelineParallelSize": 2},
        {"tensorParallelSize": 1, "dataParallelSize": 8, "expertParallel": True},
        {"tensorParallelSize": 2, "dataParallelSize": 2},
        {"tensorParallelSize": 8, "expertParallel": True},
    ],
)
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_fits_is_let_through(split: Make, sizes: dict[str, Any], engine: str) -> None:
    assert list(serving_findings(split(aggregated=sizes, engine={engine: {}}))) == []


@pytest.mark.parametrize(
    ("weights", "sizes", "key", "words"),
    [
        (
            DENSE,
            {"dataParallelSize": 2},
            "dataParallelSize",
            "got 2, but Qwen/Qwen3-32B has no experts that the ranks of a worker could share; raise replicas "
            "instead",
        ),
        (
            DENSE,
            {"expertParallel": True},
            "expertParallel",
            "got true, but Qwen/Qwen3-32B has no experts; leave it out",
        ),
        (
            MIXTURE,
            {"tensorParallelSize": 1, "dataParallelSize": 3, "expertParallel": True},
            "expertParallel",
            "got true, but the 128 experts of Qwen/Qwen3-235B-A22B-FP8 cannot be divided evenly among 3 "
            "accelerators (tensorParallelSize * dataParallelSize)",
        ),
        (
            MIXTURE,
            {"tensorParallelSize": 8},
            "tensorParallelSize",
            "got 8, but Qwen/Qwen3-235B-A22B-FP8 has FP8 experts of width 1536, and each device must "
            "hold whole blocks of 128; with expertParallel each device has whole experts; allowed are "
            "1, 2, 4",
        ),
        (
            MIXTURE,
            {"tensorParallelSize": 2, "dataParallelSize": 4},
            "tensorParallelSize",
            "got 2, but Qwen/Qwen3-235B-A22B-FP8 has FP8 experts of width 1536, and each device must "
            "hold whole blocks of 128; with expertParallel each device has whole experts; allowed are 1",
        ),
        (
            MIXTURE,
            {"tensorParallelSize": 1, "dataParallelSize": 8},
            "tensorParallelSize",
            "got 1, but Qwen/Qwen3-235B-A22B-FP8 has FP8 experts of width 1536, and each device must "
            "hold whole blocks of 128; with expertParallel each device has whole experts; lower "
            "dataParallelSize",
        ),
    ],
)
def test_what_does_not_divide_is_named(
    split: Make, weights: dict[str, str], sizes: dict[str, Any], key: str, words: str
) -> None:
    blueprint = split(weights=weights, aggregated=sizes)
    assert errors(blueprint) == [Finding((*PLACE, "aggregated", key), words)]


def test_ranks_of_tensorrt_llm_are_single_devices(split: Make) -> None:
    sizes = {"tensorParallelSize": 2, "dataParallelSize": 4, "expertParallel": True}
    finding = one(split(aggregated=sizes, engine={"tensorrtLlm": {}}))
    assert finding.path == (*PLACE, "aggregated", "dataParallelSize")
    assert finding.message.endswith("a rank of tensorrtLlm has only one device; set tensorParallelSize: 1")


def test_the_precise_scorer_knows_of_one_rank(split: Make) -> None:
    sizes = {"tensorParallelSize": 4, "dataParallelSize": 2, "expertParallel": True}
    for scorer, expected in (("precise", ["dataParallelSize"]), ("approximate", [])):
        blueprint = split(aggregated=sizes, stack={"llmD": {"prefixScorer": scorer}})
        assert [finding.path[-1] for finding in serving_findings(blueprint)] == expected


def test_kv_cache_beside_the_accelerators_is_of_one_rank(split: Make) -> None:
    sizes = {"tensorParallelSize": 4, "pipelineParallelSize": 2}
    finding = one(split(aggregated=sizes, kvCache={"hostMemoryGib": 400}))
    assert finding.path == ("spec", "models", 0, "kvCache")
    assert finding.message.startswith("is not supported for workers with several stages, ranks or nodes")


@pytest.mark.parametrize(("role", "refused"), [("prefill", True), ("decode", False)])
def test_decode_workers_keep_none_and_may_have_ranks(split: Make, role: str, *, refused: bool) -> None:
    workers = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 4}
    ranks = workers | {"dataParallelSize": 2, "expertParallel": True}
    roles = {"prefill": workers, "decode": workers} | {role: ranks}
    blueprint = split(deployments=[{"name": "main", "disaggregated": roles}], kvCache={"hostMemoryGib": 400})
    kept = [finding for finding in errors(blueprint) if finding.path == ("spec", "models", 0, "kvCache")]
    assert bool(kept) is refused


@pytest.mark.parametrize(
    ("role", "moving"), [("prefill", {"sglang", "tensorrtLlm"}), ("decode", {"tensorrtLlm"})]
)
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrtLlm"])
def test_stages_between_the_roles_are_the_engines_business(engine: str, role: str, moving: set[str]) -> None:
    path = resources.blueprints_directory() / "p5en-disaggregated.yaml"
    document = copy.deepcopy(yaml.safe_load(path.read_text(encoding="utf-8")))
    [model] = document["spec"]["models"]
    model |= {"engine": {engine: {}}, "weights": {"huggingFace": "Qwen/Qwen3-32B"}}
    model["deployments"][0]["disaggregated"][role]["pipelineParallelSize"] = 2
    found = errors(Blueprint.model_validate(document))
    if engine in moving:
        assert found == []
        return
    [finding] = found
    assert finding.path == (*PLACE, "disaggregated", role, "pipelineParallelSize")
    assert f"{engine} transfers the KV cache of {role} workers only if they have one stage" in finding.message


ACROSS = {"tensorParallelSize": 8, "pipelineParallelSize": 2}


@pytest.fixture
def across(split: Make) -> Make:
    """Return a maker of a worker over two nodes."""

    def make(**changes: Any) -> Blueprint:
        defaults = {"weights": {"huggingFace": "deepseek-ai/DeepSeek-R1"}, "aggregated": ACROSS}
        return split(**defaults | changes)

    return make


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    "sizes", [ACROSS, {"tensorParallelSize": 1, "dataParallelSize": 16, "expertParallel": True}]
)
def test_a_worker_may_span_nodes(across: Make, engine: str, sizes: dict[str, Any]) -> None:
    assert errors(across(engine={engine: {}}, aggregated=sizes)) == []


def test_tensorrt_llm_stays_on_a_node(across: Make) -> None:
    finding = one(across(engine={"tensorrtLlm": {}}))
    assert finding.message == (
        "a worker with 16 accelerators needs 2 nodes, but tensorrtLlm workers must fit on one; use fewer "
        "accelerators, or the engine vllm or sglang"
    )


def test_a_layer_across_nodes_is_warned_of(across: Make) -> None:
    finding = one(across(aggregated={"tensorParallelSize": 16}))
    assert (finding.path[-1], finding.severity) == ("tensorParallelSize", "warning")
    assert finding.message.endswith(
        "with tensorParallelSize 8 and pipelineParallelSize 2 they wait once per stage"
    )


def test_a_rank_stays_on_a_node(across: Make) -> None:
    sizes = {"tensorParallelSize": 16, "dataParallelSize": 2, "expertParallel": True}
    finding = one(across(aggregated=sizes, nodes=8))
    assert finding.message == (
        "got 2 ranks of 16 accelerators, but a node has 8, and a rank must fit on one; change "
        "tensorParallelSize or pipelineParallelSize"
    )


def test_grove_names_pods_by_graph_group_and_clique(across: Make) -> None:
    name = "m" * 25  # and `-main`
    assert one(across(name=name)).message == (
        f"the release name '{name}-main' is too long: at most 29 characters are allowed if workers span "
        "nodes; shorten the name of the deployment or of the model"
    )
    assert list(serving_findings(across(name=name[1:]))) == []
    assert list(serving_findings(across(name=name, stack={"llmD": {}}))) == []


def test_grove_has_always_one_worker_that_spans_nodes(across: Make) -> None:
    """Red if a graph is deployed that Grove's webhook refuses, so that no worker ever comes."""
    sizes = {"tensorParallelSize": 8, "pipelineParallelSize": 2}
    lent = {**sizes, "replicas": {"min": 0, "max": 2}, "scaledBy": {"capacityShift": {}}}
    finding = one(across(aggregated=lent))
    assert finding.path[-1] == "replicas"
    assert "Grove creates workers on 2 nodes, and refuses to have none of them" in finding.message
    assert errors(across(aggregated=lent, stack={"llmD": {}})) == []
    assert errors(across(aggregated={**lent, "replicas": {"min": 1, "max": 2}})) == []


def test_kv_cache_in_the_memory_of_one_node_is_not_that_of_two(across: Make) -> None:
    blueprint = across(aggregated={"tensorParallelSize": 16}, kvCache={"hostMemoryGib": 400})
    assert [finding.path[-1] for finding in errors(blueprint)] == ["kvCache"]


def test_a_model_too_large_for_a_node_is_told_of_several(across: Make) -> None:
    blueprint = across(instance_types=["p5.48xlarge"], aggregated={"tensorParallelSize": 8})
    pool = blueprint.spec.pools[0].model_copy(update={"efa": True})
    assert "several may" not in one(blueprint).message, "over TCP none does"
    spec = blueprint.spec.model_copy(update={"pools": [pool]})
    with_efa = blueprint.model_copy(update={"spec": spec})
    assert (
        "it does not fit on one node of this pool, but it may fit on several with pipelineParallelSize;"
        in (one(with_efa).message)
    )
