"""Stages, ranks and experts: how each engine is told of them, and what a worker of them is sized to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.nodes.node_share import pool_quota
from inference_blueprints.serving.performance import role_capacity
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]

#: 128 experts of width 1536 in FP8, 94 layers, 64 heads and 4 KV heads.
MIXTURE = "Qwen/Qwen3-235B-A22B-FP8"
RANKS = {"tensorParallelSize": 1, "dataParallelSize": 8, "expertParallel": True}
STAGES = {"tensorParallelSize": 4, "pipelineParallelSize": 2}


@pytest.fixture
def split(make_blueprint: Make) -> Make:
    """Return a maker of a mixture of experts on p5en.48xlarge, by sizes and engine."""

    def make(
        sizes: dict[str, Any],
        engine: str = "vllm",
        environment: dict[str, str] | None = None,
        **changes: Any,
    ) -> Blueprint:
        return make_blueprint(
            **{
                "instance_types": ["p5en.48xlarge"],
                "nodes": 4,
                "weights": {"huggingFace": MIXTURE},
                "aggregated": sizes,
                "engine": {engine: {"env": environment or {}}},
            }
            | changes
        )

    return make


def worker(blueprint: Blueprint) -> Process:
    [process] = build_plan(blueprint).models[0].deployments[0].workers
    return process


def resolved(blueprint: Blueprint) -> ResolvedWorkers:
    [workers] = resolve(blueprint, 0, 0)
    return workers


def told(process: Process) -> dict[str, str]:
    """Return what the engine is told of how it is split; a switch is empty."""
    words = [*process.arguments, "--"]
    given = {one: "" if two.startswith("--") else two for one, two in itertools.pairwise(words)}
    return {
        name: value
        for name, value in given.items()
        if name.startswith("--") and ("parallel" in name or "dp" in name)
    }


@pytest.mark.parametrize(
    ("engine", "sizes", "expected"),
    [
        ("vllm", STAGES, {"--tensor-parallel-size": "4", "--pipeline-parallel-size": "2"}),
        (
            "vllm",
            RANKS,
            {"--tensor-parallel-size": "1", "--data-parallel-size": "8", "--enable-expert-parallel": ""},
        ),
        ("sglang", STAGES, {"--tensor-parallel-size": "4", "--pipeline-parallel-size": "2"}),
        (
            "sglang",
            RANKS,
            {
                "--tensor-parallel-size": "8",
                "--data-parallel-size": "8",
                "--enable-dp-attention": "",
                "--expert-parallel-size": "8",
            },
        ),
        ("tensorrtLlm", STAGES, {"--tensor-parallel-size": "4", "--pipeline-parallel-size": "2"}),
        (
            "tensorrtLlm",
            RANKS,
            {"--tensor-parallel-size": "8", "--expert-parallel-size": "8", "--enable-attention-dp": ""},
        ),
    ],
)
def test_each_engine_is_told_in_its_own_words(
    split: Make, engine: str, sizes: dict[str, Any], expected: dict[str, str]
) -> None:
    assert told(worker(split(sizes, engine))) == expected


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrtLlm"])
def test_without_them_an_engine_is_told_of_its_tensor_size_alone(split: Make, engine: str) -> None:
    assert told(worker(split({"tensorParallelSize": 4}, engine))) == {"--tensor-parallel-size": "4"}


def test_sglang_divides_among_its_ranks_what_others_are_told_of_each(split: Make) -> None:
    ours, theirs = (worker(split(RANKS, engine)) for engine in ("sglang", "vllm"))
    assert ours.engine is not None
    given = dict(itertools.pairwise(ours.arguments))
    assert int(given["--max-running-requests"]) == 8 * ours.engine.max_num_seqs
    assert int(given["--chunked-prefill-size"]) == 8 * ours.engine.max_num_batched_tokens
    assert theirs.engine is not None
    assert dict(itertools.pairwise(theirs.arguments))["--max-num-seqs"] == str(theirs.engine.max_num_seqs)


@pytest.mark.parametrize("sizes", [STAGES, RANKS, {"tensorParallelSize": 2, "dataParallelSize": 2}])
def test_a_worker_holds_all_its_accelerators(split: Make, sizes: dict[str, Any]) -> None:
    blueprint = split(sizes)
    accelerators = worker(blueprint).resources.accelerators
    assert accelerators is not None
    workers = blueprint.spec.models[0].deployments[0].aggregated
    assert workers is not None
    assert accelerators.count == workers.accelerators
    assert build_plan(blueprint).models[0].deployments[0].accelerator_count == 2 * workers.accelerators


def test_the_stage_with_least_room_decides(split: Make) -> None:
    """94 layers on two stages are 47 each. vLLM's class holds embedding and output layer in both."""
    model = catalog.model(MIXTURE)
    whole = worker_memory(resolved(split({"tensorParallelSize": 4})))
    stage = worker_memory(resolved(split(STAGES)))
    tables = 2 * (2 * model.vocabulary_size * model.hidden_size // 4)
    assert stage.weights_bytes == pytest.approx((whole.weights_bytes - tables) / 2 + tables, rel=1e-6)
    assert stage.kv_bytes_per_token == whole.kv_bytes_per_token / 2
    assert stage.kv_tokens > 2 * whole.kv_tokens


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrtLlm"])
def test_an_odd_layer_is_on_some_stage(split: Make, engine: str) -> None:
    # 94 layers on 4 stages: 24 on the largest.
    blueprint = split({"tensorParallelSize": 2, "pipelineParallelSize": 4}, engine)
    whole = catalog.model(MIXTURE).kv_bytes_per_token("auto", 2)
    assert worker_memory(resolved(blueprint)).kv_bytes_per_token == whole * 24 / 94


def test_a_user_may_say_how_many_layers_each_stage_gets(split: Make) -> None:
    sizes = {"tensorParallelSize": 4, "pipelineParallelSize": 2}

    def given(text: str) -> Blueprint:
        return split(sizes, environment={VARIABLE: text} if text else {})

    even, uneven = (worker_memory(resolved(given(text))) for text in ("", "40,54"))
    assert uneven.kv_bytes_per_token == even.kv_bytes_per_token * 54 / 47
    assert uneven.weights_bytes > even.weights_bytes
    assert not stage_messages(given("40,54"))
    for wrong in ("40,50", "94", "40,54,0", "40,x54", "a,b"):
        [message] = stage_messages(given(wrong))
        assert f"got '{wrong}', must be the layers of each stage" in message
        assert "2 whole numbers that add up to 94" in message
        assert worker_memory(resolved(given(wrong))) == even


def stage_messages(blueprint: Blueprint) -> list[str]:
    return [each.message for each in serving_findings(blueprint) if VARIABLE in each.path]


VARIABLE = "VLLM_PP_LAYER_PARTITION"


def test_ranks_share_the_experts_and_nothing_else(split: Make) -> None:
    model = catalog.model(MIXTURE)
    memory = worker_memory(resolved(split(RANKS)))
    others = model.weight_bytes - model.expert_weight_bytes
    assert memory.weights_bytes == pytest.approx(others + model.expert_weight_bytes / 8, rel=1e-6)
    assert memory.kv_bytes_per_token == model.kv_bytes_per_token("auto", 1)
    alone = worker_memory(resolved(split({"tensorParallelSize": 1, "expertParallel": True})))
    sent = 2 * 2 * 8 * model.hidden_size * worker_sizing(resolved(split(RANKS))).max_num_batched_tokens
    assert memory.activation_bytes == alone.activation_bytes + sent


def test_slices_of_experts_take_as_much_as_whole_ones(split: Make) -> None:
    whole = worker_memory(resolved(split(RANKS)))
    sliced = worker_memory(resolved(split(RANKS | {"expertParallel": False})))
    assert (whole.weights_bytes, whole.kv_cache_bytes) == (sliced.weights_bytes, sliced.kv_cache_bytes)
    assert whole.kv_bytes_per_token == sliced.kv_bytes_per_token


def test_what_nobody_has_measured_has_no_capacity(split: Make) -> None:
    assert role_capacity(resolved(split({"tensorParallelSize": 4}))) is not None
    for sizes in (STAGES, {"tensorParallelSize": 4, "expertParallel": True}, RANKS):
        assert role_capacity(resolved(split(sizes))) is None


@pytest.fixture
def across(split: Make) -> Make:
    """Return a maker of two workers over two nodes each."""

    def make(**changes: Any) -> Blueprint:
        sizes = {"tensorParallelSize": 8, "pipelineParallelSize": 2}
        return split(sizes, weights={"huggingFace": "deepseek-ai/DeepSeek-R1"}, **changes)

    return make


def test_a_worker_across_nodes_takes_whole_ones(across: Make) -> None:
    blueprint = across()
    plan = build_plan(blueprint)
    process = worker(blueprint)
    accelerators = process.resources.accelerators
    assert accelerators is not None
    assert (process.nodes, process.pods, accelerators.count) == (2, 4, 8)
    assert plan.models[0].deployments[0].accelerator_count == 32
    assert plan.spanning_stacks == {"dynamo"}
    [pool] = blueprint.spec.pools
    left = pool_quota(pool, plan)
    assert left.accelerators is not None
    assert left.accelerators.count == 0, "four nodes are all there are"


def test_the_operator_tells_the_engine_where_the_nodes_are(across: Make) -> None:
    process = worker(across())
    assert process.follower_arguments == ()
    assert not {"--nnodes", "--master-addr", "--node-rank"} & set(process.arguments)


def test_on_llm_d_the_plan_does(across: Make) -> None:
    blueprint = across(stack={"llmD": {}})
    process = worker(blueprint)
    assert process.arguments[-2:] == ("--node-rank", "0")
    assert process.follower_arguments[-3:] == ("--node-rank", "$(LWS_WORKER_INDEX)", "--headless")
    assert process.arguments[:-1] == process.follower_arguments[: len(process.arguments) - 1]
    assert dict(itertools.pairwise(process.arguments))["--nnodes"] == "2"
    assert build_plan(blueprint).spanning_stacks == {"llmD"}


def test_layers_that_nodes_share_go_over_efa_and_say_so(across: Make) -> None:
    blueprint = across()
    pool = blueprint.spec.pools[0].model_copy(update={"efa": True})
    spec = blueprint.spec.model_copy(update={"pools": [pool]})
    process = worker(blueprint.model_copy(update={"spec": spec}))
    assert process.resources.efa_interfaces == 16
    assert process.environment["FI_PROVIDER"] == "efa"
    assert process.environment["NCCL_DEBUG_SUBSYS"] == "INIT,NET"
    assert process.capabilities == ("IPC_LOCK",)


def test_a_group_is_replaced_beside_the_old_one_only_where_there_are_nodes_for_all_of_it(
    across: Make,
) -> None:
    assert [worker(across(nodes=nodes)).rollout.max_surge for nodes in (4, 5, 6)] == [0, 0, 1]
