"""Workers on AWS's accelerators. Bugs: wrong cores, memory, buckets or flags, and pools that cannot work."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.serving.checks.neuron_checks import neuron_findings
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.serving.types import Process
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.types import Blueprint
from inference_catalog.neuron import compile_times, device_groups, neuron_route, neuron_routes

Make = Callable[..., Blueprint]

LLAMA_8B = {"huggingFace": "meta-llama/Llama-3.1-8B-Instruct"}
LLAMA_70B = {"huggingFace": "meta-llama/Llama-3.3-70B-Instruct"}
FP8_70B = {"huggingFace": "nvidia/Llama-3.1-70B-Instruct-FP8"}
COMMIT = "0e9e39f249a16976918f6564b8830bc894c89659"
#: A load that one worker of each test holds.
LIGHT = {"inputTokens": 1000, "outputTokens": 200, "peakRequestsPerSecond": 0.1}


@pytest.fixture
def on_neuron(make_blueprint: Make) -> Make:
    """Return a function that makes a blueprint with the engine on one kind of node."""

    def make(instance_type: str, devices: int, **changes: Any) -> Blueprint:
        workers = {"tensorParallelSize": devices, "replicas": 1, **changes.pop("workers", {})}
        section = {"args": changes.pop("args", {})}
        return make_blueprint(
            instance_types=[instance_type],
            disk_gib=500,
            aggregated=workers,
            workload={**LIGHT, "sharedPrefixRatio": 0, **changes.pop("workload", {})},
            engine={"vllmNeuron": section},
            **{"weights": LLAMA_8B, **changes},
        )

    return make


def worker_of(blueprint: Blueprint) -> Process:
    [deployment] = build_plan(blueprint).models[0].deployments
    [process] = deployment.processes
    return process


def arguments_of(worker: Process) -> dict[str, str]:
    """Return the arguments with their values; switches with an empty one."""
    words, options = worker.arguments, {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            value = words[index + 1] if index + 1 < len(words) else "--"
            options[word.removeprefix("--")] = "" if value.startswith("--") else value
    return options


def errors(blueprint: Blueprint) -> list[str]:
    return [each.message for each in serving_findings(blueprint) if each.severity == "error"]


@pytest.mark.parametrize(
    ("instance_type", "devices", "cores", "sdk"),
    [
        ("inf2.8xlarge", 1, 2, "sdk2.31.1"),
        ("inf2.48xlarge", 4, 8, "sdk2.31.1"),
        ("trn1.32xlarge", 4, 8, "sdk2.31.1"),
        ("trn2.48xlarge", 1, 4, "sdk2.32.0"),
        ("trn2.48xlarge", 8, 32, "sdk2.32.0"),
    ],
)
def test_a_worker_splits_layers_over_cores_and_requests_devices(
    instance_type: str, devices: int, cores: int, sdk: str, on_neuron: Make
) -> None:
    """vLLM counts NeuronCores (Trn2: 64 with LNC=2), and pods request devices."""
    blueprint = on_neuron(instance_type, devices, args={"max-model-len": 4096})
    assert errors(blueprint) == []
    worker = worker_of(blueprint)
    assert arguments_of(worker)["tensor-parallel-size"] == str(cores)
    assert worker.resources.accelerators is not None
    assert worker.resources.accelerators.count == devices
    assert worker.resources.accelerators.resource_name == "aws.amazon.com/neuron"
    assert command_behind_filter(worker) == ("vllm", "serve")
    assert sdk in worker.image


def test_memory_is_that_of_a_core(on_neuron: Make) -> None:
    """A core of Trainium2 has 24 of the device's 96 GiB, and holds its part of the weights of TP 16."""
    [workers] = resolve(on_neuron("trn2.48xlarge", 4, weights=LLAMA_70B), 0, 0)
    memory = worker_memory(workers)
    whole = workers.accelerator
    assert whole.core.memory_mib * 4 == whole.memory_mib == 98304
    assert memory.total_bytes == int(whole.core.memory_bytes * 0.9)
    assert memory.weights_bytes == pytest.approx(workers.shape.rank_weight_bytes(16), rel=0.001)
    # Half of the cores hold a copy of a KV head.
    assert memory.weights_bytes > workers.shape.weight_bytes / 16


def test_the_plug_in_caps_the_kv_cache(on_neuron: Make) -> None:
    """``VLLM_NEURON_KV_GMU_BUDGET_CAP_FRACTION`` is 0.30 of the memory that the engine may use."""
    [workers] = resolve(on_neuron("trn2.48xlarge", 4), 0, 0)
    memory = worker_memory(workers)
    assert memory.kv_cache_bytes == int(0.3 * memory.total_bytes)
    assert memory.kv_tokens == int(memory.kv_cache_bytes // memory.kv_bytes_per_token)


def test_kv_heads_are_copied_to_cores_beyond_their_number(on_neuron: Make) -> None:
    """Llama has 8 KV heads: each of 16 cores holds one, so a token takes twice the memory per worker."""
    few, many = (
        worker_memory(resolve(on_neuron("trn2.48xlarge", devices, weights=LLAMA_70B), 0, 0)[0])
        for devices in (4, 8)
    )
    assert few.kv_bytes_per_token == many.kv_bytes_per_token


def test_prefill_has_one_segment_size_and_decode_a_bucket_per_power_of_two(on_neuron: Make) -> None:
    """``reference-configuration.md``: both lists are identical, the largest buckets equal the flags."""
    options = arguments_of(worker_of(on_neuron("trn2.48xlarge", 4, args={"max-num-seqs": 24})))
    settings = json.loads(options["additional-config"])["neuron_config"]
    assert settings == {
        "num_batched_tokens_buckets": [2048],
        "kv_segment_size_buckets": [2048],
        "num_seqs_buckets": [1, 2, 4, 8, 16, 24],
    }
    assert options["max-num-batched-tokens"] == "2048"
    assert options["block-size"] == "128"
    assert "enable-prefix-caching" in options


def test_fp8_weights_bring_a_packed_cache(on_neuron: Make) -> None:
    """Without it the server fails: "FP8 segmented prefill requires a packed KV cache"."""
    options = arguments_of(worker_of(on_neuron("trn2.48xlarge", 4, weights=FP8_70B)))
    assert json.loads(options["additional-config"])["neuron_config"]["fp8_packed_kv"] is True


def test_nxd_inference_has_a_place_per_sequence_and_no_prefix_cache(on_neuron: Make) -> None:
    """``num_gpu_blocks_override`` is exactly ``max_num_seqs`` if blocks are whole sequences."""
    options = arguments_of(worker_of(on_neuron("inf2.8xlarge", 1, args={"max-model-len": 4096})))
    assert options["block-size"] == options["max-model-len"] == "4096"
    assert options["num-gpu-blocks-override"] == options["max-num-seqs"] == "4"
    assert int(options["max-num-batched-tokens"]) >= 4096
    assert "no-enable-prefix-caching" in options
    overrides = json.loads(options["additional-config"])["override_neuron_config"]
    assert overrides["on_device_sampling_config"] == {"dynamic": True}, "else temperature has no effect"


def test_places_follow_from_the_memory(on_neuron: Make) -> None:
    [workers] = resolve(on_neuron("inf2.8xlarge", 1, args={"max-model-len": 8192}), 0, 0)
    sizing = worker_sizing(workers)
    assert sizing.max_num_seqs * 8192 <= sizing.kv_tokens < 2 * sizing.max_num_seqs * 8192


@pytest.mark.parametrize(
    ("instance_type", "variable"),
    [("inf2.8xlarge", "NEURON_COMPILED_ARTIFACTS"), ("trn2.48xlarge", "VLLM_CACHE_ROOT")],
)
def test_artefacts_have_the_folder_of_the_image_s_vllm(
    instance_type: str, variable: str, on_neuron: Make
) -> None:
    environment = worker_of(on_neuron(instance_type, 1)).environment
    assert environment[variable] == "/artefacts"
    assert ("NEURON_LOGICAL_NC_CONFIG" in environment) == (instance_type == "trn2.48xlarge")


@pytest.mark.parametrize("instance_type", ["inf2.8xlarge", "trn2.48xlarge"])
def test_every_argument_is_a_flag_of_the_image_s_vllm(instance_type: str, on_neuron: Make) -> None:
    blueprint = on_neuron(instance_type, 1, args={"max-model-len": 4096})
    [workers] = resolve(blueprint, 0, 0)
    known = {*workers.engine.flags, *workers.engine.server_flags}
    negated = {f"--no-{name.removeprefix('--')}" for name in known}
    given = {f"--{name}" for name in arguments_of(worker_of(blueprint))}
    assert given <= known | negated
    assert workers.accelerator.name in workers.engine.accelerators


def test_images_are_those_of_aws_s_list() -> None:
    """AWS names an image per accelerator; each accelerator of its own has exactly one here."""
    releases = catalog.catalogue.shipped().engine_releases["vllmNeuron"].values()
    served = [name for each in releases for name in each.accelerators]
    ours = {each.name for each in catalog.accelerators().values() if each.manufacturer == "aws"}
    assert sorted(served) == sorted(ours)
    for each in releases:
        assert "aws-neuron/deep-learning-containers at 2be9ed1d5da9d7c8e15d7abac1eb7f550ed3a723" in (
            each.image_source
        )
        assert each.engine_version in each.version


@pytest.mark.parametrize("route", sorted(neuron_routes()))
def test_every_route_has_its_accelerators_models_and_reasons(route: str) -> None:
    known = neuron_routes()[route]
    for name in known.accelerators:
        assert neuron_route(catalog.accelerator(name)) == known
    assert not known.architectures.keys() & known.left_out.keys()
    assert known.read_from_files.keys() <= known.architectures.keys()
    assert known.prefix_caching_reason
    assert compile_times(route)


def test_devices_that_are_connected() -> None:
    assert device_groups(catalog.instance_type("trn2.48xlarge")) == (1, 4, 8, 16)
    assert device_groups(catalog.instance_type("inf2.48xlarge")) == ()
    assert device_groups(catalog.instance_type("trn1.2xlarge")) == ()


REFUSED: list[tuple[str, int, dict[str, Any], str]] = [
    ("trn2.48xlarge", 2, {}, "got 2 devices, but on trn2.48xlarge only 1 or 4 or 8 or 16 are connected"),
    ("inf2.48xlarge", 12, {}, "got 12 devices with 24 NeuronCores, but meta-llama/Llama-3.1-8B-Instruct has"),
    (
        "inf2.8xlarge",
        1,
        {"weights": LLAMA_70B},
        "got 1, but meta-llama/Llama-3.3-70B-Instruct does not fit: each NeuronCore of inferentia2 needs",
    ),
    (
        "trn2.48xlarge",
        1,
        {"weights": {"huggingFace": "Qwen/Qwen3-8B"}},
        "got Qwen/Qwen3-8B (Qwen3ForCausalLM) on trainium2: AWS's documentation does not list it",
    ),
    (
        "trn2.48xlarge",
        4,
        {"weights": {"huggingFace": "openai/gpt-oss-20b"}},
        "got openai/gpt-oss-20b (GptOssForCausalLM) on trainium2: on Trainium2 the plug-in turns",
    ),
    (
        "inf2.48xlarge",
        4,
        {"weights": FP8_70B},
        "got weights in fp8, which vLLM does not load on inferentia2; serve a repository in bf16",
    ),
    (
        "inf2.8xlarge",
        1,
        {"weights": {"huggingFace": "Qwen/Qwen3-8B"}},
        "got Qwen/Qwen3-8B by its name on the Hub, which fails on inferentia2",
    ),
    (
        "trn2.48xlarge",
        4,
        {"workers": {"pipelineParallelSize": 2}},
        "got 2, but vLLM on Neuron has no pipeline parallelism",
    ),
    ("inf2.8xlarge", 1, {"kvCacheType": "fp8"}, "got 'fp8', inferentia2 has only 'auto' here; remove it"),
    (
        "inf2.8xlarge",
        1,
        {"args": {"enable-prefix-caching": True}},
        "it is off on inferentia2: the compiler failed on the graphs of this vLLM",
    ),
    ("trn2.48xlarge", 4, {"args": {"block-size": 32}}, "the plan sets 'block-size' itself"),
    (
        "inf2.8xlarge",
        1,
        {"workload": {"peakRequestsPerSecond": 1}, "args": {"max-model-len": 4096}},
        "got 1, but at the peak each worker",
    ),
    (
        "inf2.8xlarge",
        1,
        {"args": {"num-gpu-blocks-override": 4}},
        "the plan sets 'num-gpu-blocks-override' itself",
    ),
    # Eight devices do not divide the twelve of inf2.48xlarge.
    ("inf2.8xlarge", 1, {"weights": LLAMA_70B}, "the cheapest types on which it fits: trn1.32xlarge with 8"),
    ("inf2.8xlarge", 1, {"args": {"max-num-seqs": 4000}}, "got 4000, but the cache of a worker holds "),
    ("inf2.8xlarge", 1, {"stack": {"dynamo": {}}}, "got 'dynamo' with the engine 'vllmNeuron', which runs"),
]


@pytest.mark.parametrize(("instance_type", "devices", "changes", "message"), REFUSED)
def test_what_cannot_work_is_refused(
    instance_type: str, devices: int, changes: dict[str, Any], message: str, on_neuron: Make
) -> None:
    found = errors(on_neuron(instance_type, devices, **changes))
    assert any(message in each for each in found), found


@pytest.mark.parametrize(
    ("instance_type", "devices", "scheduler"),
    [
        ("inf2.8xlarge", 1, None),
        ("inf2.48xlarge", 4, "neuron-scheduler"),
        ("trn2.48xlarge", 1, "neuron-scheduler"),
        ("trn2.48xlarge", 16, None),
    ],
)
def test_pods_with_a_part_of_a_node_have_the_scheduler_that_chooses_devices(
    instance_type: str, devices: int, scheduler: str | None, on_neuron: Make
) -> None:
    """``deploy/infrastructure/scheduler.rst`` of aws-neuron/aws-neuron-sdk: all devices need none."""
    blueprint = on_neuron(instance_type, devices, args={"max-model-len": 4096})
    assert worker_of(blueprint).scheduler == scheduler
    assert build_plan(blueprint).schedulers == ({scheduler} if scheduler else frozenset())


def test_pools_with_efa_run_the_same_image(on_neuron: Make) -> None:
    """AWS publishes one image of vLLM per SDK release; Dynamo's images have a second one for EFA."""
    blueprint = on_neuron("trn2.48xlarge", 16, weights=LLAMA_70B)
    pool = blueprint.spec.pools[0].model_copy(update={"efa": True})
    changed = blueprint.spec.model_copy(update={"pools": [pool]})
    with_efa = worker_of(blueprint.model_copy(update={"spec": changed}))
    assert with_efa.resources.efa_interfaces > 0
    assert with_efa.image == worker_of(blueprint).image


def test_health_says_that_slow_devices_are_not_found(on_neuron: Make) -> None:
    def warnings(health: spec.GpuHealth | None) -> list[str]:
        blueprint = on_neuron("inf2.8xlarge", 1, args={"max-model-len": 4096})
        changed = blueprint.spec.model_copy(update={"gpu_health": health})
        found = serving_findings(blueprint.model_copy(update={"spec": changed}))
        return [each.message for each in found if "slowGpus" in each.path]

    assert len(warnings(spec.GpuHealth())) == 1
    assert warnings(spec.GpuHealth(slow_gpus=False)) == warnings(None) == []


def test_a_pool_of_gpus_is_refused(on_neuron: Make) -> None:
    [message] = errors(on_neuron("g6e.2xlarge", 1))
    assert "the engine 'vllmNeuron' needs accelerators of aws" in message


def test_the_plug_in_needs_a_gibibyte_for_the_kv_cache(on_neuron: Make) -> None:
    """Below ``VLLM_NEURON_MIN_KV_BUDGET_GIB`` the server fails fast."""
    args = {"gpu-memory-utilization": 0.58, "max-model-len": 2048}
    found = errors(on_neuron("trn2.48xlarge", 4, weights=LLAMA_70B, args=args))
    assert any("the plug-in starts with 1 or more" in each for each in found), found


def test_prefill_and_decode_stay_together_for_the_true_reason(make_blueprint: Make, on_neuron: Make) -> None:
    document = on_neuron("trn2.48xlarge", 4, weights=LLAMA_70B).model_dump(by_alias=True, exclude_none=True)
    workers = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 4}
    [model] = document["spec"]["models"]
    model["deployments"] = [{"name": "main", "disaggregated": {"prefill": workers, "decode": workers}}]
    found = errors(Blueprint.model_validate(document))
    reason = neuron_routes()["plugin"].disaggregation
    assert any(reason in each for each in found), found


def test_qwen_is_served_from_its_files(on_neuron: Make) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-8B", "revision": COMMIT, "mirror": {}}
    blueprint = on_neuron("inf2.8xlarge", 1, weights=weights, args={"max-model-len": 4096})
    assert errors(blueprint) == []
    assert worker_of(blueprint).arguments[0] == "/models/Qwen/Qwen3-8B"


def test_one_model_has_one_image(on_neuron: Make) -> None:
    """Two deployments on accelerators of two images would run one of them on the wrong one."""
    [workers] = resolve(on_neuron("trn2.48xlarge", 4), 0, 0)
    other = dataclasses.replace(workers, accelerator=catalog.accelerator("inferentia2"))
    [finding] = [each for each in neuron_findings(other) if each.path[-1] == "engine"]
    assert "make one model per image" in finding.message


def test_the_engine_is_not_nvidia_s() -> None:
    assert ENGINES["vllmNeuron"].manufacturer == "aws"
