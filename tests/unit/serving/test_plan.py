from __future__ import annotations

import json
from collections.abc import Callable
from ipaddress import ip_network

import pytest

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import UnresolvedError
from inference_blueprints.serving.types import DeploymentPlan, OwnAddress, Process, SecretValue
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint, Network, Purchase

#: Where eight devices do not share the model evenly: FP8 blocks of 128, heads.
SIZES = {
    "MiniMaxAI/MiniMax-M2": 4,
    "MiniMaxAI/MiniMax-M2.5": 4,
    "MiniMaxAI/MiniMax-M2.7": 4,
    "Qwen/Qwen3-235B-A22B-FP8": 4,
    "Qwen/Qwen3-30B-A3B-FP8": 2,
    "Qwen/Qwen3-VL-30B-A3B-Instruct-FP8": 2,
    "nvidia/Gemma-4-26B-A4B-NVFP4": 4,
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4": 4,
    "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4": 4,
}
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"

Make = Callable[..., Blueprint]


def deployment_of(blueprint: Blueprint) -> DeploymentPlan:
    return build_plan(blueprint).models[0].deployments[0]


def worker_of(blueprint: Blueprint) -> Process:
    return deployment_of(blueprint).processes[1]


def argument(process: Process, flag: str) -> str:
    return process.arguments[process.arguments.index(flag) + 1]


def test_the_same_blueprint_gives_the_same_plan(make_blueprint: Make) -> None:
    assert build_plan(make_blueprint()) == build_plan(make_blueprint())


def test_prefill_and_decode_agree_on_all_that_the_cache_between_them_depends_on() -> None:
    deployment = deployment_of(load_blueprint("p5en-disaggregated").blueprint)
    prefill, decode = deployment.workers
    assert (prefill.role, decode.role) == ("prefill", "decode")
    assert prefill.image == decode.image
    assert prefill.command == decode.command
    assert prefill.environment == decode.environment
    assert deployment.kv_transfer == "libfabric"
    for flag in ("--model", "--block-size", "--max-model-len"):
        assert argument(prefill, flag) == argument(decode, flag)
    sender, receiver = (json.loads(argument(each, "--kv-transfer-config")) for each in (prefill, decode))
    assert (sender.pop("kv_role"), receiver.pop("kv_role")) == ("kv_producer", "kv_consumer")
    assert sender == receiver
    assert receiver["kv_connector_extra_config"] == {"backends": ["LIBFABRIC"]}


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_worker_with_efa_has_the_image_that_holds_libfabric(name: str) -> None:
    for model in build_plan(load_blueprint(name).blueprint).models:
        for deployment in model.deployments:
            for process in deployment.processes:
                has_efa = process.resources.efa_interfaces > 0
                assert process.image.endswith("-efa") == has_efa, process.name


def test_each_role_is_told_what_it_does() -> None:
    prefill, decode = deployment_of(load_blueprint("p5en-disaggregated").blueprint).workers
    assert argument(prefill, "--disaggregation-mode") == "prefill"
    assert argument(decode, "--disaggregation-mode") == "decode"
    assert "--kv-events-config" in prefill.arguments
    assert "--kv-events-config" not in decode.arguments, "requests are routed by what prefill workers hold"


@pytest.mark.parametrize("name", sorted(catalog.models()))
def test_every_model_has_a_length_within_context_and_cache(name: str, make_blueprint: Make) -> None:
    blueprint = make_blueprint(
        instance_types=["p6-b300.48xlarge"],
        nodes=8,
        weights={"s3": "s3://weights/model/", "catalog": name},
        workload={"inputTokens": 1500, "outputTokens": 100, "peakRequestsPerSecond": 1.0},
        aggregated={"tensorParallelSize": SIZES.get(name, 8)},
    )
    assert list(serving_findings(blueprint)) == []
    worker = worker_of(blueprint)
    assert worker.engine is not None
    length = int(argument(worker, "--max-model-len"))
    assert length == worker.engine.max_model_len
    assert 1600 <= length <= catalog.model(name).context_length
    assert length <= worker.engine.kv_blocks * worker.engine.block_size


def test_the_length_stops_at_what_the_cache_holds(make_blueprint: Make) -> None:
    arguments = {"gpu-memory-utilization": 0.5}
    blueprint = make_blueprint(
        engine={"vllm": {"args": arguments}},
        workload={"inputTokens": 8000, "peakRequestsPerSecond": 0.05},
    )
    engine = worker_of(blueprint).engine
    assert engine is not None
    # vLLM keeps one block of its pool for itself.
    assert engine.max_model_len == (engine.kv_blocks - 1) * engine.block_size
    assert 8200 <= engine.max_model_len < 4 * 8200


def test_arguments_of_the_user_are_merged_and_win_where_the_plan_leaves_them_open(
    make_blueprint: Make,
) -> None:
    arguments = {
        "max-model-len": 8192,
        "max-num-seqs": 16,
        "enforce-eager": True,
        "enable-chunked-prefill": False,
        "kv-cache-dtype": "fp8",
    }
    plain = worker_of(make_blueprint())
    worker = worker_of(make_blueprint(engine={"vllm": {"args": arguments}}))
    assert argument(worker, "--max-model-len") == "8192"
    assert argument(worker, "--max-num-seqs") == "16"
    assert "--enforce-eager" in worker.arguments
    assert "--no-enable-chunked-prefill" in worker.arguments
    assert not {"true", "false", "True", "False"} & set(worker.arguments)
    assert worker.engine is not None
    assert plain.engine is not None
    assert (worker.engine.max_model_len, worker.engine.max_num_seqs) == (8192, 16)
    assert worker.engine.kv_blocks == pytest.approx(2 * plain.engine.kv_blocks, abs=1)


def test_a_default_of_the_plan_gives_way_to_the_user(make_blueprint: Make) -> None:
    engine = {"vllm": {"args": {"enable-prefix-caching": False}}}
    blueprint = make_blueprint(engine=engine, routing={"roundRobin": {}})
    assert list(serving_findings(blueprint)) == []
    arguments = worker_of(blueprint).arguments
    assert "--no-enable-prefix-caching" in arguments
    assert "--enable-prefix-caching" not in arguments


def test_no_argument_is_given_twice(make_blueprint: Make) -> None:
    worker = worker_of(make_blueprint(engine={"vllm": {"args": {"max-model-len": 8192, "block-size": 32}}}))
    flags = [word for word in worker.arguments if word.startswith("--")]
    assert len(flags) == len(set(flags))


def test_weights_in_s3_are_streamed(make_blueprint: Make) -> None:
    worker = worker_of(make_blueprint(weights={"s3": "s3://weights/qwen/", "catalog": "Qwen/Qwen3-8B"}))
    downloaded = worker_of(make_blueprint())
    assert argument(worker, "--model") == "s3://weights/qwen/"
    assert argument(worker, "--load-format") == "runai_streamer"
    assert json.loads(argument(worker, "--model-loader-extra-config"))["distributed"] is True
    assert worker.resources.ephemeral_storage_mib < downloaded.resources.ephemeral_storage_mib


def test_a_revision_and_a_token_reach_the_worker_alone(make_blueprint: Make) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-8B", "revision": "b968826", "tokenSecretArn": HUB_ARN}
    frontend, worker = deployment_of(make_blueprint(weights=weights)).processes
    assert argument(worker, "--revision") == "b968826"
    assert worker.environment["HF_TOKEN"] == SecretValue(HUB_ARN)
    assert "HF_TOKEN" not in frontend.environment


@pytest.mark.parametrize(
    ("routing", "mode", "events"), [("kvAware", "kv", True), ("roundRobin", "round-robin", False)]
)
def test_routing_decides_the_router_and_whether_workers_publish(
    routing: str, mode: str, *, events: bool, make_blueprint: Make
) -> None:
    frontend, worker = deployment_of(make_blueprint(routing={routing: {}})).processes
    assert argument(frontend, "--router-mode") == mode
    assert ("--router-replica-sync" in frontend.arguments) is events
    assert ("--kv-events-config" in worker.arguments) is events


def test_a_full_pool_is_updated_without_surge_and_a_roomy_one_with(make_blueprint: Make) -> None:
    assert worker_of(make_blueprint()).rollout.max_surge == 0
    assert worker_of(make_blueprint(nodes=3)).rollout.max_surge == 1


@pytest.mark.parametrize("replicas", [1, 2, 40])
def test_a_disruption_may_always_take_at_least_one(replicas: int, make_blueprint: Make) -> None:
    blueprint = make_blueprint(nodes=50, aggregated={"replicas": replicas})
    for process in deployment_of(blueprint).processes:
        assert 1 <= process.rollout.max_unavailable <= process.replicas


def test_workers_share_a_node_evenly_and_leave_room_for_the_system(make_blueprint: Make) -> None:
    node = catalog.instance_type("g6e.12xlarge")
    share = worker_of(make_blueprint(instance_types=["g6e.12xlarge"])).resources
    assert share.accelerators is not None
    replicas = node.accelerator_count // share.accelerators.count
    assert 0.8 * node.memory_mib < replicas * share.memory_mib < 0.93 * node.memory_mib
    assert replicas * share.cpu < node.vcpu
    assert share.shared_memory_mib < share.memory_mib


def test_a_pool_of_several_types_gives_the_share_of_the_smallest(make_blueprint: Make) -> None:
    small = worker_of(make_blueprint(instance_types=["g6e.2xlarge"])).resources
    assert worker_of(make_blueprint(instance_types=["g6e.8xlarge", "g6e.2xlarge"])).resources == small


def test_startup_waits_for_the_weights(make_blueprint: Make) -> None:
    def seconds(process: Process) -> int:
        return process.probes.startup.period_seconds * process.probes.startup.failure_threshold

    small = worker_of(make_blueprint())
    large = worker_of(
        make_blueprint(
            weights={"huggingFace": "deepseek-ai/DeepSeek-R1"}, instance_types=["p6-b200.48xlarge"]
        )
    )
    assert seconds(small) >= 900
    assert seconds(large) - seconds(small) > 5000


def test_a_frontend_reaches_workers_and_nothing_that_a_request_names(make_blueprint: Make) -> None:
    """In an existing VPC pods may have any address; that of a host by its name is matched by no range."""
    existing = {
        "vpcId": "vpc-0a1b2c3d",
        "vpcCidr": "25.0.0.0/16",
        "privateSubnetIds": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"],
    }
    blueprint = make_blueprint()
    network = Network.model_validate({"existing": existing})
    elsewhere = blueprint.model_copy(update={"spec": blueprint.spec.model_copy(update={"network": network})})
    for each, known in ((blueprint, "10.0.0.0/8"), (elsewhere, "25.0.0.0/16")):
        environment = deployment_of(each).entry_point.environment
        assert environment["HTTP_PROXY"] == environment["HTTPS_PROXY"] == "http://127.0.0.1:9"
        assert ip_network(known) in map(ip_network, str(environment["NO_PROXY"]).split(","))


def test_streams_may_end_before_a_process_is_killed(make_blueprint: Make) -> None:
    blueprint = make_blueprint(workload={"outputTokens": 1000, "peakRequestsPerSecond": 0.5})
    frontend, worker = deployment_of(blueprint).processes
    drain = int(str(frontend.environment["DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS"]))
    assert drain >= 4 * 1000 * 0.05
    assert frontend.pre_stop_seconds > 0
    assert frontend.termination_grace_seconds > frontend.pre_stop_seconds + drain
    # Dynamo's workers cancel what runs when the grace period is over, so it is the longest stream's time.
    finish = int(str(worker.environment["DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS"]))
    assert finish == drain
    move = int(str(worker.environment["DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS"]))
    assert worker.termination_grace_seconds > finish + move > finish


@pytest.mark.parametrize(
    ("purchase", "seconds"),
    [({"spot": {}}, 120), ({"capacityBlock": {"tags": {"team": "ads"}}}, 600)],
    ids=["spot", "capacity block"],
)
def test_a_worker_ends_before_its_instance(
    make_blueprint: Make, purchase: dict[str, object], seconds: int
) -> None:
    kept = make_blueprint(workload={"outputTokens": 6000, "peakRequestsPerSecond": 0.1})
    pools = [
        pool.model_copy(update={"purchase": Purchase.model_validate(purchase)}) for pool in kept.spec.pools
    ]
    going = kept.model_copy(update={"spec": kept.spec.model_copy(update={"pools": pools})})
    finish, end = {}, {}
    for name, blueprint in (("kept", kept), ("going", going)):
        worker = deployment_of(blueprint).processes[1]
        finish[name] = int(str(worker.environment["DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS"]))
        end[name] = worker.termination_grace_seconds
    assert finish["kept"] == 600
    assert end["kept"] > seconds
    assert end["going"] == seconds
    assert finish["going"] >= seconds / 2


def test_a_prefill_worker_of_tensorrt_llm_has_time_for_its_transfers(make_blueprint: Make) -> None:
    """It waits up to 30 s for them once the time for streams is over."""
    document = make_blueprint().model_dump(by_alias=True, exclude_unset=True)
    (model,) = document["spec"]["models"]
    model["engine"] = {"tensorrtLlm": {}}
    (deployment,) = model["deployments"]
    workers = deployment.pop("aggregated")
    deployment["disaggregated"] = {"prefill": workers, "decode": workers}
    seconds = {}
    for worker in deployment_of(Blueprint.model_validate(document)).workers:
        finish = int(str(worker.environment["DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS"]))
        seconds[worker.role] = worker.termination_grace_seconds - finish
    assert seconds == {"prefill": 60, "decode": 30}


def test_probes_name_ports_that_the_process_has(make_blueprint: Make) -> None:
    for process in deployment_of(make_blueprint()).processes:
        ports = {port.name for port in process.ports}
        for probe in (process.probes.startup, process.probes.readiness, process.probes.liveness):
            assert probe.port in ports
            assert probe.timeout_seconds < probe.period_seconds


def test_addresses_are_left_to_the_target(make_blueprint: Make) -> None:
    for process in deployment_of(make_blueprint()).processes:
        assert process.environment["DYN_TCP_RPC_HOST"] == OwnAddress()


def test_a_name_that_leads_nowhere_is_an_error_of_its_own(make_blueprint: Make) -> None:
    with pytest.raises(UnresolvedError, match="absent"):
        build_plan(make_blueprint(aggregated={"pool": "absent"}))
