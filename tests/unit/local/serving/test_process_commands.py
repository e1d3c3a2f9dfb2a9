"""Local commands carry the plan's figures, and only the target's own things differ."""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dynamo.mocker.args import parse_args
from dynamo.mocker.config import build_mocker_engine_args

from inference_blueprints.serving.command_line import command_line
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.types import (
    EnvironmentValue,
    FilePath,
    OwnAddress,
    PeerAddress,
    SecretValue,
)
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.process_commands import (
    SimulatedEngine,
    environment,
    frontend_command,
    worker_command,
)
from inference_local.serving.simulated_kind import SimulatedRole


def _value(command: list[str], option: str) -> str:
    """Return what an option ends up with: of several the last."""
    return command[len(command) - 1 - command[::-1].index(option) + 1]


def test_the_frontend_has_every_argument_of_the_plan(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    (deployment,) = deployments_of(("l40s", 2))
    process = deployment.frontend.process
    command = frontend_command(process, 4321)
    start = 1 + len(process.command[1:])
    assert command[:start] == [sys.executable, *process.command[1:]]
    assert tuple(command[start : start + len(process.arguments)]) == process.arguments


def test_address_and_discovery_are_this_machines(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    process = deployments_of(("l40s", 2))[0].frontend.process
    command = frontend_command(process, 4321)
    assert _value(command, "--http-host") == "127.0.0.1"
    assert _value(command, "--http-port") == "4321"
    assert _value(command, "--discovery-backend") == "file"


def test_variables_of_the_plan_count_where_this_machine_has_none(tmp_path: Path) -> None:
    given = environment({"DYN_LOG": "debug", "MINE": "1", "HF_HUB_OFFLINE": "0"}, tmp_path)
    assert (given["DYN_LOG"], given["MINE"], given["HF_HUB_OFFLINE"]) == ("debug", "1", "1")


def test_a_file_of_the_plan_is_written_and_named(tmp_path: Path) -> None:
    home = tmp_path / "not-there-yet"
    given = environment({"POLICY": FilePath("policy.yaml", "classes: []")}, home)
    assert Path(given["POLICY"]).read_text(encoding="utf-8") == "classes: []"


def read_by_mocker(command: list[str]) -> argparse.Namespace:
    """Return what the mocker reads: our program takes the names of the parsers out before."""
    own = argparse.ArgumentParser(allow_abbrev=False)
    own.add_argument("--dyn-reasoning-parser")
    own.add_argument("--dyn-tool-call-parser")
    return parse_args(own.parse_known_args(command[3:])[1])


def engine_of(workers: SimulatedRole, profile: Path | None = None, **arguments: int) -> SimulatedEngine:
    """Return the simulated engine of a role, with further arguments, which replace the plan's."""
    replaced = command_line({name.replace("_", "-"): value for name, value in arguments.items()})
    planned = (*workers.planned.arguments, *replaced)
    return SimulatedEngine("answerer", Path("/model"), planned, workers.simulated, profile)


def simulated_role(deployment: LocalDeployment) -> SimulatedRole:
    role = deployment.workers[0]
    assert isinstance(role, SimulatedRole)
    return role


def simulating(workers: SimulatedRole, **changes: Any) -> SimulatedRole:
    settings = replace(workers.simulated.settings, **changes)
    return replace(workers, simulated=replace(workers.simulated, settings=settings))


def planning(workers: SimulatedRole, arguments: tuple[str, ...]) -> SimulatedRole:
    return replace(workers, planned=replace(workers.planned, arguments=arguments))


def test_the_engine_has_the_arguments_of_the_plan(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    (deployment,) = deployments_of(("l40s", 2))
    workers = simulated_role(deployment)
    settings = workers.simulated.settings
    command = worker_command(engine_of(workers, Path("/latencies.npz")), 3)
    assert {option: _value(command, option) for option in command if option.startswith("--")} == {
        "--model-path": "/model",
        "--model-name": "answerer",
        "--num-workers": "3",
        "--engine-type": "vllm",
        "--block-size": str(settings.block_size),
        "--max-model-len": str(settings.max_model_len),
        "--max-num-seqs": str(settings.max_num_seqs),
        "--max-num-batched-tokens": str(settings.max_num_batched_tokens),
        "--num-gpu-blocks-override": str(settings.kv_blocks),
        "--kv-bytes-per-token": "147456",
        "--planner-profile-data": "/latencies.npz",
        "--dyn-reasoning-parser": "qwen3",
        "--dyn-tool-call-parser": "hermes",
        "--discovery-backend": "file",
    }


def test_parsers_that_download_a_vocabulary_are_left_out(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    workers = simulated_role(deployments_of(("l40s", 1))[0])
    planned = planning(workers, (*workers.planned.arguments, "--dyn-reasoning-parser", "gpt_oss"))
    command = worker_command(engine_of(planned), 1)
    assert "--dyn-reasoning-parser" not in command
    assert _value(command, "--dyn-tool-call-parser") == "hermes"


@pytest.mark.parametrize(("engine", "blocks"), [("vllm", "699"), ("sglang", None)])
def test_the_users_kv_blocks_count_without_the_one_that_vllm_keeps_empty(
    engine: str, blocks: str | None, deployments_of: Callable[..., tuple[LocalDeployment, ...]]
) -> None:
    workers = simulating(simulated_role(deployments_of(("l40s", 1))[0]), engine=engine)
    sizes = command_line(dict(zip(ENGINES[engine].argument_names.counts, (777, 5, 4096, 32), strict=True)))
    planned = planning(workers, (*sizes, "--num-gpu-blocks-override", "700"))
    estimated = str(workers.simulated.settings.kv_blocks)
    assert _value(worker_command(engine_of(planned), 1), "--num-gpu-blocks-override") == (blocks or estimated)


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("vllm", {"--engine-type": "vllm"}),
        ("sglang", {"--engine-type": "sglang", "--sglang-chunked-prefill-size": "4096"}),
        ("tensorrtLlm", {"--engine-type": "trtllm"}),
    ],
)
def test_the_simulator_reads_the_plans_arguments(
    engine: str, options: Mapping[str, str], deployments_of: Callable[..., tuple[LocalDeployment, ...]]
) -> None:
    """A size that is computed anew, or read under another engine's name, differs from the plan's argument."""
    workers = simulating(simulated_role(deployments_of(("l40s", 1))[0]), engine=engine)
    planned = command_line(dict(zip(ENGINES[engine].argument_names.counts, (777, 5, 4096, 32), strict=True)))
    command = worker_command(engine_of(planning(workers, planned)), 1)
    assert {name: _value(command, name) for name in options} == options
    parsed = read_by_mocker(command)
    assert (parsed.max_model_len, parsed.max_num_seqs) == (777, 5)
    assert (parsed.max_num_batched_tokens, parsed.block_size) == (4096, 32)
    read = build_mocker_engine_args(parsed)["engine"]
    assert read["backend"] == options["--engine-type"]
    assert engine != "sglang" or read["sglang"]["chunked_prefill_size"] == 4096


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrtLlm"])
def test_a_prefix_cache_that_the_user_switches_off_is_not_simulated(
    engine: str, deployments_of: Callable[..., tuple[LocalDeployment, ...]]
) -> None:
    workers = simulating(simulated_role(deployments_of(("l40s", 1))[0]), engine=engine)
    names = ENGINES[engine].argument_names
    sizes = dict(zip(names.counts, (777, 5, 4096, 32), strict=True))
    for changes, cached in (({}, True), (dict([names.without_prefix_cache]), False)):
        planned = command_line({**sizes, **changes})
        parsed = read_by_mocker(worker_command(engine_of(planning(workers, planned)), 1))
        assert parsed.enable_prefix_caching is cached


def test_blocks_in_the_nodes_memory_are_simulated_too(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    workers = simulating(simulated_role(deployments_of(("l40s", 1))[0]), host_kv_blocks=7)
    command = worker_command(engine_of(workers), 1)
    assert _value(command, "--num-host-blocks") == "7"
    read = build_mocker_engine_args(read_by_mocker(command))["engine"]
    assert read["native_host_offload"]["num_host_blocks"] == 7
    assert read["kv_cache_bytes_per_token"] == 147_456


def test_the_ranks_of_a_worker_are_simulated_too(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    workers = simulated_role(deployments_of(("l40s", 1))[0])
    ranked = simulating(workers, data_parallel_size=8)
    assert read_by_mocker(worker_command(engine_of(ranked, data_parallel_size=8), 1)).dp_size == 8
    assert "--data-parallel-size" not in worker_command(engine_of(workers), 1)


def test_totals_over_ranks_are_divided_as_sglang_divides_them(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    workers = simulating(
        simulated_role(deployments_of(("l40s", 1))[0]), engine="sglang", data_parallel_size=4
    )
    sizes = zip(ENGINES["sglang"].argument_names.counts, (777, 32, 4096, 64), strict=True)
    planned = command_line({**dict(sizes), "data-parallel-size": 4})
    parsed = read_by_mocker(worker_command(engine_of(planning(workers, planned)), 1))
    assert (parsed.max_num_seqs, parsed.max_num_batched_tokens, parsed.dp_size) == (8, 1024, 4)
    assert (parsed.sglang_chunked_prefill_size, parsed.max_model_len, parsed.block_size) == (1024, 777, 64)


def test_roles_apart_are_told_what_they_do_and_how_fast_the_cache_moves(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    workers = simulated_role(deployments_of(("l40s", 1))[0])
    prefill = replace(workers.simulated, role="prefill", transfer_bytes_per_second=50e9)
    command = worker_command(engine_of(replace(workers, simulated=prefill)), 1)
    assert _value(command, "--disaggregation-mode") == "prefill"
    assert _value(command, "--kv-transfer-bandwidth") == "50.0"


def test_without_a_profile_the_simulator_is_given_none(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    workers = simulated_role(deployments_of(("l4", 1))[0])
    assert "--planner-profile-data" not in worker_command(engine_of(workers), 1)


def test_planned_variables_are_kept_addresses_become_loopback_and_secrets_stay_away(tmp_path: Path) -> None:
    planned: dict[str, EnvironmentValue] = {
        "PLAIN": "kept",
        "OWN": OwnAddress(),
        "PEER": PeerAddress("frontend", "http"),
        "HF_TOKEN": SecretValue("arn:aws:secretsmanager:us-west-2:111122223333:secret:hub"),
        "DYN_TCP_RPC_HOST": OwnAddress(),
    }
    variables = environment(planned, tmp_path)
    assert (variables["PLAIN"], variables["OWN"], variables["PEER"]) == ("kept", "127.0.0.1", "127.0.0.1")
    assert "HF_TOKEN" not in variables


def test_two_deployments_do_not_find_each_other(tmp_path: Path) -> None:
    one, other = environment({}, tmp_path / "one"), environment({}, tmp_path / "other")
    assert one["DYN_FILE_KV"] != other["DYN_FILE_KV"]
    assert one["HOME"] != other["HOME"]


def test_a_plan_with_another_command_is_another_program(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    process = dataclasses.replace(
        deployments_of(("l40s", 1))[0].frontend.process, command=("python3", "-m", "x.y")
    )
    assert frontend_command(process, 1)[:3] == [sys.executable, "-m", "x.y"]
