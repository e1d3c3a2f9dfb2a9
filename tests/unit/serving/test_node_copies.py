"""Workers of a node share a copy of a commit's weights, and their release's kernels, if the disk has room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from benchmarks.harness.generated import generated_blueprint
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.estimates import node_copies
from inference_blueprints.serving.estimates.node_copies import hub_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.types import ModelPlan, Process, SecretValue, WeightsBucket
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import BlueprintError, Finding

Make = Callable[..., Blueprint]

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
PINNED: dict[str, Any] = {"huggingFace": "Qwen/Qwen3-8B", "revision": COMMIT}
MIRRORED: dict[str, Any] = {**PINNED, "mirror": {}}
NAME = f"Qwen--Qwen3-8B@{COMMIT}"
PATH = "/models/Qwen/Qwen3-8B"
GIB = 2**30
MODEL_FLAGS = {"vllm": "--model", "sglang": "--model-path", "tensorrtLlm": "--model"}


def model_of(blueprint: Blueprint) -> ModelPlan:
    return build_plan(blueprint).models[0]


def worker_of(blueprint: Blueprint) -> Process:
    [worker] = model_of(blueprint).deployments[0].workers
    return worker


def value_of(worker: Process, flag: str) -> str:
    return worker.arguments[worker.arguments.index(flag) + 1]


def errors(blueprint: Blueprint) -> list[Finding]:
    return [each for each in serving_findings(blueprint) if each.severity == "error"]


@pytest.mark.parametrize("engine", MODEL_FLAGS)
@pytest.mark.parametrize("weights", [PINNED, {**PINNED, "tokenSecretArn": HUB_ARN}])
def test_workers_load_the_copy_and_keep_the_name_of_the_model(
    make_blueprint: Make, engine: str, weights: dict[str, Any]
) -> None:
    worker = worker_of(make_blueprint(weights=weights, engine={engine: {}}))
    assert value_of(worker, MODEL_FLAGS[engine]) == PATH
    assert value_of(worker, "--served-model-name") == "qwen3-8b"
    assert not [each for each in worker.arguments if each.endswith("revision")]
    cache = worker.node_cache
    assert cache is not None
    assert (cache.weights, cache.weights_path) == (NAME, PATH)
    assert cache.environment["NODE_CACHE_WEIGHTS"] == NAME
    assert cache.environment["WEIGHTS_REVISION"] == COMMIT


def test_only_the_program_that_downloads_gets_the_token(make_blueprint: Make) -> None:
    blueprint = make_blueprint(weights={**PINNED, "tokenSecretArn": HUB_ARN})
    worker = worker_of(blueprint)
    assert worker.node_cache is not None
    assert worker.node_cache.environment["HF_TOKEN"] == SecretValue(HUB_ARN)
    assert "HF_TOKEN" not in worker.environment
    assert sum("HF_TOKEN" in each for each in build_plan(blueprint).environments) == 1


@pytest.mark.parametrize("engine", ["sglang", "tensorrtLlm"])
def test_other_engines_than_vllm_read_the_mirror_through_the_copy(make_blueprint: Make, engine: str) -> None:
    blueprint = make_blueprint(weights=MIRRORED, engine={engine: {}})
    assert errors(blueprint) == []
    model = model_of(blueprint)
    worker = worker_of(blueprint)
    assert value_of(worker, MODEL_FLAGS[engine]) == PATH
    assert worker.awaits_weights is None
    assert worker.node_cache is not None
    assert worker.node_cache.environment["WEIGHTS_BUCKET"] == WeightsBucket()
    assert worker.node_cache.environment["WEIGHTS_PREFIX"] == f"huggingface/Qwen/Qwen3-8B/{COMMIT}"
    assert model.weights_mirror is not None
    # SGLang's and TensorRT-LLM's images lack the S3 client that the copy job needs.
    assert "vllm" in model.weights_mirror.image


@pytest.mark.parametrize("engine", ["sglang", "tensorrtLlm"])
def test_a_mirror_that_nothing_could_read_is_refused(make_blueprint: Make, engine: str) -> None:
    [finding] = errors(make_blueprint(weights=MIRRORED, engine={engine: {}}, node_cache_gib=0))
    assert finding.path == ("spec", "models", 0, "weights", "mirror")
    assert f"{engine} reads mirrored weights from the node's copy" in finding.message


@pytest.mark.parametrize(
    "weights",
    [
        {"huggingFace": "Qwen/Qwen3-8B"},
        {"huggingFace": "Qwen/Qwen3-8B", "revision": "main"},
    ],
)
def test_without_a_commit_nothing_is_shared(make_blueprint: Make, weights: dict[str, Any]) -> None:
    worker = worker_of(make_blueprint(weights=weights))
    assert worker.node_cache is None
    assert "VLLM_CACHE_ROOT" not in worker.environment


@pytest.mark.parametrize("weights", [MIRRORED, {"s3": "s3://acme/qwen/", "catalog": "Qwen/Qwen3-8B"}])
def test_workers_that_have_their_nodes_to_themselves_stream_and_keep_only_kernels(
    make_blueprint: Make, weights: dict[str, Any]
) -> None:
    worker = worker_of(make_blueprint(weights=weights))
    assert worker.node_cache is not None
    assert worker.node_cache.weights is None
    assert "WEIGHTS_REPOSITORY" not in worker.node_cache.environment
    assert worker.environment["VLLM_CACHE_ROOT"] == "/compiled/vllm"
    assert value_of(worker, "--model").startswith("s3://")
    assert bool(worker.awaits_weights) == ("mirror" in weights)


def test_workers_that_share_a_node_read_the_mirror_through_the_copy(make_blueprint: Make) -> None:
    worker = worker_of(make_blueprint(weights=MIRRORED, instance_types=["g6e.12xlarge"]))
    assert value_of(worker, "--model") == PATH
    assert "--load-format" not in worker.arguments
    assert worker.awaits_weights is None
    assert worker.node_cache is not None
    assert worker.node_cache.environment["WEIGHTS_BUCKET"] == WeightsBucket()


def test_workers_that_share_a_node_without_a_cache_stream_each_for_itself(make_blueprint: Make) -> None:
    blueprint = make_blueprint(weights=MIRRORED, instance_types=["g6e.12xlarge"], node_cache_gib=0)
    worker = worker_of(blueprint)
    assert errors(blueprint) == []
    assert worker.node_cache is None
    assert value_of(worker, "--model").startswith("s3://")


def test_zero_switches_it_off(make_blueprint: Make) -> None:
    worker = worker_of(make_blueprint(weights=PINNED, node_cache_gib=0))
    assert worker.node_cache is None
    assert value_of(worker, "--model") == "Qwen/Qwen3-8B"
    assert value_of(worker, "--revision") == COMMIT


def test_the_bound_holds_two_commits_and_the_kernels(make_blueprint: Make) -> None:
    worker = worker_of(make_blueprint(weights=PINNED))
    assert worker.node_cache is not None
    weights_gib = catalog.model("Qwen/Qwen3-8B").weight_bytes / GIB
    bound = int(str(worker.node_cache.environment["NODE_CACHE_GIB"]))
    assert 2 * weights_gib + 20 <= bound <= 2 * weights_gib + 23


def test_a_disk_without_room_leaves_each_worker_its_own_files(make_blueprint: Make) -> None:
    # EBS only: g5g has no NVMe. Images and one worker's files fit 90 GiB, a second copy does not.
    small, large = (
        worker_of(make_blueprint(weights=PINNED, instance_types=["g5g.16xlarge"], disk_gib=gib))
        for gib in (90, 300)
    )
    assert small.node_cache is None
    assert large.node_cache is not None


@pytest.mark.parametrize(("gib", "severity"), [(30, "error"), (40, "warning"), (60, None)])
def test_a_bound_that_is_too_small_is_reported(make_blueprint: Make, gib: int, severity: str | None) -> None:
    found = list(serving_findings(make_blueprint(weights=PINNED, node_cache_gib=gib)))
    of_pool = [each for each in found if each.path[-1] == "pool"]
    assert [each.severity for each in of_pool] == ([severity] if severity else [])


def test_a_pool_that_does_not_share_decides_for_the_whole_model(make_blueprint: Make) -> None:
    blueprint = make_blueprint(weights=PINNED)
    second = blueprint.spec.pools[0].model_copy(update={"name": "second"})
    off = second.model_copy(update={"disk": second.disk.model_copy(update={"node_cache_gib": 0})})
    for pool, shared in ((second, True), (off, False)):
        blueprint.spec.pools[1:] = [pool]
        [deployment] = blueprint.spec.models[0].deployments[:1]
        assert deployment.aggregated is not None
        workers = deployment.aggregated.model_copy(update={"pool": "second"})
        other = deployment.model_copy(update={"name": "other", "aggregated": workers})
        blueprint.spec.models[0].deployments[1:] = [other]
        plans = [each.workers[0] for each in model_of(blueprint).deployments]
        assert [each.node_cache is not None for each in plans] == [shared, shared]
        paths = {each.arguments[each.arguments.index("--model") + 1] for each in plans}
        assert paths == {PATH if shared else "Qwen/Qwen3-8B"}


def test_releases_images_and_accelerators_have_kernels_of_their_own(make_blueprint: Make) -> None:
    def folder(**changes: Any) -> str:
        cache = worker_of(make_blueprint(weights=PINNED, **changes)).node_cache
        assert cache is not None
        return cache.compiled

    deployments = [{"name": "b", "aggregated": {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}}]
    names = [
        folder(),
        folder(engine={"sglang": {}}),
        folder(instance_types=["g6.4xlarge"]),
        folder(deployments=deployments),
    ]
    assert len(set(names)) == 4
    assert [name.partition("@")[0] for name in names] == ["qwen3-8b-main"] * 3 + ["qwen3-8b-b"]


@pytest.mark.parametrize("engine", MODEL_FLAGS)
def test_every_kernel_folder_lies_in_the_shared_one(make_blueprint: Make, engine: str) -> None:
    worker = worker_of(make_blueprint(weights=PINNED, engine={engine: {}}))
    assert worker.node_cache is not None
    names = {"TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "FLASHINFER_WORKSPACE_BASE"}
    own = {"vllm": "VLLM_CACHE_ROOT", "sglang": "SGLANG_DG_CACHE_DIR", "tensorrtLlm": "TRTLLM_DG_CACHE_DIR"}
    for name in names | {own[engine]}:
        assert str(worker.environment[name]).startswith(f"{worker.node_cache.compiled_path}/")


def test_the_sidecar_and_the_worker_fit_the_share_of_the_worker(make_blueprint: Make) -> None:
    shared, own = (worker_of(make_blueprint(weights=PINNED, node_cache_gib=gib)) for gib in (None, 0))
    assert shared.node_cache is not None
    assert shared.resources.memory_mib + shared.node_cache.memory_mib == own.resources.memory_mib
    assert shared.resources.cpu + shared.node_cache.cpu == own.resources.cpu
    assert own.resources.ephemeral_storage_mib - shared.resources.ephemeral_storage_mib > 15 * 1024


def test_kv_cache_on_nvme_takes_what_the_shared_copy_leaves(make_blueprint: Make) -> None:
    def disk_gib(gib: int | None) -> int:
        blueprint = make_blueprint(
            weights=PINNED,
            node_cache_gib=gib,
            instance_types=["g6e.12xlarge"],
            kvCache={"hostMemoryGib": 40, "nvme": {}},
            deployments=[
                {"name": "main", "aggregated": {"pool": "l40s", "replicas": 4, "tensorParallelSize": 1}}
            ],
        )
        return worker_of(blueprint).resources.ephemeral_storage_mib // 1024

    # A share of the bound: 4 workers give up 15 GiB each, and no longer have 4 copies.
    assert disk_gib(200) == pytest.approx(disk_gib(140) - 15, abs=1)


def hub_warnings(blueprint: Blueprint) -> list[str]:
    return [
        each.message
        for index, _ in enumerate(blueprint.spec.models[0].deployments)
        for resolved in resolve(blueprint, 0, index)
        for each in hub_findings(resolved)
    ]


def test_many_workers_on_the_hub_are_a_warning_with_what_to_write(make_blueprint: Make) -> None:
    """Red if a fleet starts at once from the Hub, most of its workers get 429, and nobody said so before."""
    many = {
        "instance_types": ["p5.48xlarge"],
        "nodes": 60,
        "aggregated": {"tensorParallelSize": 8, "replicas": 40},
    }
    large = {"huggingFace": "Qwen/Qwen3-Coder-480B-A35B-Instruct"}
    [found] = hub_warnings(make_blueprint(weights=large, **many))
    # 960,310,124,544 bytes are 193 files of 5 GB, with two requests each; three zones have three gateways.
    assert "40 workers download 960 GB each from the Hub, 38,412 GB if all start" in found
    assert "at least 15,440 requests, 5,147 through each of 3 NAT gateways; the Hub answers 3,000" in found
    assert "set 'mirror: {}' with a commit" in found
    pinned = {"revision": "0" * 40, "mirror": {}}
    assert hub_warnings(make_blueprint(weights=large | pinned, **many)) == []
    token = {"tokenSecretArn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"}
    [found] = hub_warnings(make_blueprint(weights=large | token, **many))
    assert "the Hub answers 5,000 in 5 minutes to the user of a token" in found


def test_few_workers_on_the_hub_are_none(make_blueprint: Make) -> None:
    assert hub_warnings(make_blueprint()) == []


def test_a_region_that_is_misspelt_is_reported_by_its_rule_alone() -> None:
    """Red if the count of the gateways of an unknown region ends the command."""
    shipped = (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    with pytest.raises(BlueprintError) as refused:
        parse_blueprint(shipped.replace("us-west-2", "us-wst-2"), "own.yaml")
    assert "spec.environment.region: got 'us-wst-2'" in str(refused.value)


def test_the_plan_looks_up_as_many_workers_per_model_in_a_large_blueprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Red if a question about one pool looks up the workers of all: synthesis then grows by the square."""
    counts = []
    for models in (8, 16):
        blueprint, looked_up = Blueprint.model_validate(generated_blueprint(models, models)), list[int]()

        def counted(blueprint: Blueprint, model: int, deployment: int) -> Any:
            looked_up.append(model)  # noqa: B023 -- called within this round
            return resolve(blueprint, model, deployment)

        monkeypatch.setattr(node_copies, "resolve", counted)
        build_plan(blueprint)
        list(serving_findings(blueprint))
        counts.append(len(looked_up))
    assert counts[1] == 2 * counts[0] > 0
