"""KV cache in a bucket that a model's workers share: where it lies, whose it is, and what is doubted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import KvCacheBucket, ModelPlan, Process
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

Make = Callable[..., Blueprint]
RECORD = json.loads((Path(__file__).parent / "lmcache_flags.json").read_text(encoding="utf-8"))
PLACE = ("spec", "models", 0, "kvCache", "shared")
WORKERS = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
TOGETHER = [{"name": "main", "aggregated": WORKERS}]
APART = [{"name": "main", "disaggregated": {"prefill": WORKERS, "decode": WORKERS}}]
PINNED = {"huggingFace": "Qwen/Qwen3-8B", "revision": "v1"}


def sharing(make_blueprint: Make, **model: Any) -> Blueprint:
    changes: dict[str, Any] = {
        "instance_types": ["g6e.8xlarge"],
        "weights": PINNED,
        "deployments": TOGETHER,
        "kvCache": {"hostMemoryGib": 40, "shared": {"s3": {"expireDays": 5}}},
    }
    return make_blueprint(**(changes | model))


def model_of(blueprint: Blueprint) -> ModelPlan:
    return build_plan(blueprint).models[0]


def server_words(process: Process) -> list[str]:
    value = json.loads(process.arguments[process.arguments.index("--kv-transfer-config") + 1])
    for each in value["kv_connector_extra_config"].get("connectors", [value]):
        if each["kv_connector"] == "LMCacheMPConnector":
            return shlex.split(each["kv_connector_extra_config"]["lmcache.mp.autostart.server_args"])
    return []


def adapters(process: Process) -> list[dict[str, Any]]:
    words = server_words(process)
    return [json.loads(words[at + 1]) for at, word in enumerate(words) if word == "--l2-adapter"]


def of_sharing(blueprint: Blueprint) -> list[Finding]:
    return [each for each in serving_findings(blueprint) if each.path == PLACE]


def test_the_bucket_is_found_by_a_variable_in_the_blueprints_region(make_blueprint: Make) -> None:
    [worker] = model_of(sharing(make_blueprint)).deployments[0].workers
    [adapter] = adapters(worker)
    assert set(adapter) <= set(RECORD["adapters"]["s3"])
    assert adapter["s3_endpoint"] == "$(KV_CACHE_BUCKET).s3.us-west-2.amazonaws.com"
    assert worker.environment["KV_CACHE_BUCKET"] == KvCacheBucket()


def test_what_is_on_the_node_comes_before_what_is_not(make_blueprint: Make) -> None:
    cache = {"hostMemoryGib": 40, "nvme": {"gib": 200}, "shared": {"s3": {}}}
    [worker] = model_of(sharing(make_blueprint, kvCache=cache)).deployments[0].workers
    assert [each["type"] for each in adapters(worker)] == ["fs_native", "s3"]


@pytest.mark.parametrize(("block_size", "tokens"), [(64, 256), (96, 288)])
def test_an_object_is_of_whole_blocks_and_as_large_as_it_is_billed(
    block_size: int, tokens: int, make_blueprint: Make
) -> None:
    engine = {"vllm": {"args": {"block-size": block_size}}}
    [worker] = model_of(sharing(make_blueprint, engine=engine)).deployments[0].workers
    words = server_words(worker)
    assert words[words.index("--chunk-size") + 1] == str(tokens)


def test_decode_workers_share_nothing(make_blueprint: Make) -> None:
    prefill, decode = model_of(sharing(make_blueprint, deployments=APART)).deployments[0].workers
    assert adapters(prefill)
    assert "KV_CACHE_BUCKET" not in decode.environment


@pytest.mark.parametrize(
    "change",
    [
        {"weights": PINNED | {"revision": "v2"}},
        {"engine": {"vllm": {"args": {"kv-cache-dtype": "fp8"}}}},
    ],
    ids=str,
)
def test_what_makes_other_numbers_makes_another_bucket(change: dict[str, Any], make_blueprint: Make) -> None:
    first, same, other = (
        model_of(sharing(make_blueprint, **each)).shared_kv_cache
        for each in ({}, {"workload": {"peakRequestsPerSecond": 1}}, change)
    )
    assert first is not None
    assert other is not None
    assert first == same
    assert first.content != other.content
    assert first.expire_days == 5


def test_without_sharing_there_is_no_bucket(make_blueprint: Make) -> None:
    assert model_of(sharing(make_blueprint, kvCache={"hostMemoryGib": 40})).shared_kv_cache is None


@pytest.mark.parametrize("stack", [{"dynamo": {}}, {"llmD": {}}], ids=str)
def test_the_chart_is_told_the_bucket(stack: dict[str, Any], make_blueprint: Make) -> None:
    [deployment] = model_of(sharing(make_blueprint, stack=stack)).deployments
    values = deployment_values(deployment, kv_cache_bucket="blocks")
    assert values["kvCacheBucket"] == "blocks"
    worker = values["processes"][1]
    assert {"name": "KV_CACHE_BUCKET", "kvCacheBucket": True} in worker["environment"]


def test_blocks_of_an_unpinned_commit_are_not_shared(make_blueprint: Make) -> None:
    [finding] = of_sharing(sharing(make_blueprint, weights={"huggingFace": "Qwen/Qwen3-8B"}))
    assert finding.severity == "error"
    assert finding.message.endswith("set weights.revision")
    assert of_sharing(sharing(make_blueprint)) == []


def test_more_than_the_network_carries_is_doubted(make_blueprint: Make) -> None:
    # g6e.8xlarge: 25 Gbit/s, of which half is 1.56 GB/s, or 10,597 tokens of 147,456 bytes.
    def found(tokens_per_second: int) -> list[Finding]:
        workload = {"inputTokens": tokens_per_second, "peakRequestsPerSecond": 1, "sharedPrefixRatio": 0.0}
        return of_sharing(sharing(make_blueprint, workload=workload))

    assert found(10_500) == []
    [finding] = found(10_700)
    assert finding.severity == "warning"
    assert "would write 1.6 GB/s at the peak (147 kB per unshared token)" in finding.message
