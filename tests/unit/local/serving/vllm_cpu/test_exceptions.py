"""Only what a processor cannot take differs from the plan, and each difference has a reason."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import OwnAddress, Process, SecretValue, WeightsBucket
from inference_blueprints.spec.source import shipped
from inference_local.serving.vllm_cpu.exceptions import LocalSettings, local_settings

_MODEL, _ADDRESS = Path("/small/model"), "127.0.0.7"
_NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_consumer"}
_OVER_EFA = {**_NIXL, "kv_connector_extra_config": {"backends": ["LIBFABRIC"]}}
_HERE = {"kv_buffer_device": "cpu", "kv_connector_extra_config": {"num_threads": 0}}
_HOST = {"kv_connector": "OffloadingConnector", "kv_role": "kv_both", "kv_connector_extra_config": {"x": 1}}
_SERVER = "lmcache.mp.autostart.server_args"


def _lmcache(kind: str) -> dict[str, object]:
    """Return a plan's connector to LMCache with a tier of a kind."""
    tier = {"type": kind, "base_path": "/cache/kv", "max_capacity_gb": 3089, "use_odirect": True}
    words = ["--http-port", "5556", "--chunk-size", "64", "--l1-size-gb", "180", "--l2-adapter"]
    extra = {"lmcache.mp.port": 5555, _SERVER: shlex.join([*words, json.dumps(tier)])}
    return {"kv_connector": "LMCacheMPConnector", "kv_role": "kv_both", "kv_connector_extra_config": extra}


_LMCACHE = _lmcache("fs_native")


@cache
def planned_workers() -> tuple[Process, ...]:
    plans = [build_plan(load_blueprint(name).blueprint) for name in shipped()]
    return tuple(
        worker
        for plan in plans
        for model in plan.models
        for deployment in model.deployments
        for worker in deployment.workers
        if worker.engine is not None and worker.engine.engine == "vllm"
    )


def here(process: Process, *, latent: bool = False) -> LocalSettings:
    return local_settings(
        process, workers="some", model_directory=_MODEL, address=_ADDRESS, latent_attention=latent
    )


def with_arguments(arguments: Mapping[str, Argument]) -> LocalSettings:
    worker = planned_workers()[0]
    return here(replace(worker, arguments=command_line(arguments)))


def value(settings: LocalSettings, name: str) -> str | None:
    words = list(settings.arguments)
    return words[words.index(f"--{name}") + 1] if f"--{name}" in words else None


@pytest.mark.parametrize("worker", planned_workers(), ids=lambda worker: worker.name)
def test_every_difference_is_listed_and_every_listed_difference_is_one(worker: Process) -> None:
    settings = here(worker)
    listed = {each.setting for each in settings.replacements}
    planned, local = set(worker.arguments), set(settings.arguments)
    for word in planned ^ local:
        # A word that is not a flag belongs to a flag that is listed, or is the model.
        assert not word.startswith("--") or word in listed
    assert {
        name for name, kept in worker.environment.items() if settings.environment.get(name) != kept
    } <= listed
    assert set(settings.environment) - set(worker.environment) <= listed
    for each in settings.replacements:
        assert each.planned != each.here
        assert each.reason


@pytest.mark.parametrize(
    ("connectors", "told", "untold"),
    [
        ([_OVER_EFA], ["EFA"], ["host memory", "LMCache"]),
        ([_HOST], ["host memory"], ["EFA", "LMCache"]),
        ([_LMCACHE], ["LMCache", "ports and a folder"], ["EFA", "host memory", "bucket"]),
        ([_lmcache("s3")], ["LMCache", "bucket"], ["EFA", "host memory"]),
        ([_OVER_EFA, _LMCACHE], ["EFA", "LMCache"], ["host memory"]),
        ([_OVER_EFA, _HOST], ["EFA", "host memory"], ["LMCache"]),
    ],
)
def test_the_reason_of_a_connector_is_its_own(
    connectors: list[dict[str, object]], told: list[str], untold: list[str]
) -> None:
    several = {
        "kv_connector": "MultiConnector",
        "kv_connector_extra_config": {"connectors": connectors},
    }
    planned = connectors[0] if len(connectors) == 1 else several
    settings = with_arguments({"kv-transfer-config": json.dumps(planned)})
    [reason] = [each.reason for each in settings.replacements if each.setting == "--kv-transfer-config"]
    assert all(word in reason for word in told), reason
    assert not any(word in reason for word in untold), reason


def test_what_is_not_set_or_left_out_says_so() -> None:
    settings = with_arguments({"quantization": "fp8"})
    changes = {each.setting: (each.planned, each.here) for each in settings.replacements}
    assert changes["--quantization"] == ("fp8", "left out")
    assert changes["--dtype"] == ("not set", "float32")


@pytest.mark.parametrize("name", ["max-model-len", "max-num-seqs", "max-num-batched-tokens", "block-size"])
def test_sizes_are_those_of_the_plan(name: str) -> None:
    for worker in planned_workers():
        words = list(worker.arguments)
        assert value(here(worker), name) == words[words.index(f"--{name}") + 1]


def test_the_model_is_the_small_one_and_nothing_is_downloaded() -> None:
    for worker in planned_workers():
        settings = here(worker)
        assert str(_MODEL) in settings.arguments
        assert value(settings, "load-format") == "dummy"
        assert "--revision" not in settings.arguments
        assert not [word for word in settings.arguments if word.startswith("s3://")]


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        (_OVER_EFA, {**_NIXL, **_HERE}),
        (
            {**_OVER_EFA, "kv_load_failure_policy": "recompute"},
            {**_NIXL, "kv_load_failure_policy": "recompute", **_HERE},
        ),
        (
            {
                "kv_connector": "MultiConnector",
                "kv_role": "kv_both",
                "kv_connector_extra_config": {"connectors": [_OVER_EFA, _HOST]},
                "kv_load_failure_policy": "recompute",
            },
            {**_NIXL, "kv_load_failure_policy": "recompute", **_HERE},
        ),
        (_HOST, None),
    ],
)
def test_kv_cache_moves_between_roles_by_ucx_and_is_not_kept_in_host_memory(
    planned: Mapping[str, object], expected: Mapping[str, object] | None
) -> None:
    assert connector(planned) == expected


def connector(planned: Mapping[str, object], *, latent: bool = False) -> Mapping[str, Any] | None:
    """Return the connector of a worker on this machine."""
    worker = replace(
        planned_workers()[0], arguments=("--max-model-len", "9", "--kv-transfer-config", json.dumps(planned))
    )
    found = value(here(worker, latent=latent), "kv-transfer-config")
    return json.loads(found) if found else None


def test_lmcache_has_a_server_of_the_workers_own_that_a_cpu_can_use() -> None:
    found = connector({**_LMCACHE, "kv_load_failure_policy": "recompute"})
    assert found is not None
    extra = found["kv_connector_extra_config"]
    words = shlex.split(extra[_SERVER])
    server = dict(zip(words[::2], words[1::2], strict=True))
    tier = json.loads(server.pop("--l2-adapter"))
    assert (found["kv_connector"], found["kv_load_failure_policy"]) == ("LMCacheMPConnector", "recompute")
    assert extra["lmcache.mp.port"] == "5625"
    assert server == {
        "--http-port": "5626",
        "--chunk-size": "64",
        "--l1-size-gb": "1",
        "--supported-transfer-mode": "auto",
    }
    assert tier == {
        "type": "fs_native",
        "base_path": f"/small/kv-cache/{_ADDRESS}",
        "max_capacity_gb": 1,
        "use_odirect": True,
    }


def test_lmcache_keeps_nothing_in_a_bucket() -> None:
    found = connector(_lmcache("s3"))
    assert found is not None
    assert "--l2-adapter" not in found["kv_connector_extra_config"][_SERVER]


def test_lmcache_stays_beside_nixl_and_is_left_out_with_latent_attention() -> None:
    several = {
        "kv_connector": "MultiConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"connectors": [_OVER_EFA, _LMCACHE]},
    }
    found = connector(several)
    assert found is not None
    assert found["kv_connector"] == "MultiConnector"
    assert found["kv_connector_extra_config"]["connectors"] == [{**_NIXL, **_HERE}, connector(_LMCACHE)]
    assert connector(several, latent=True) == {**_NIXL, **_HERE}
    assert connector(_LMCACHE, latent=True) is None


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        ({"tensor-parallel-size": 8}, {"tensor-parallel-size": "2"}),
        ({"tensor-parallel-size": 1}, {"tensor-parallel-size": "1"}),
        ({"data-parallel-size": 16}, {"data-parallel-size": "2"}),
        ({"data-parallel-size": 16, "enable-expert-parallel": True}, {"data-parallel-size": None}),
        (
            {"kv-cache-dtype": "fp8", "quantization": "fp8_per_tensor"},
            {"kv-cache-dtype": None, "quantization": None},
        ),
        ({"speculative-config": '{"method":"ngram"}'}, {"speculative-config": '{"method":"ngram"}'}),
        ({"speculative-config": '{"method":"mtp"}'}, {"speculative-config": '{"method":"mtp"}'}),
        (
            {"speculative-config": '{"method":"eagle3","model":"a/b","revision":"0"}'},
            {"speculative-config": '{"method":"eagle3","model":"/small/draft"}'},
        ),
        ({"reasoning-parser": "qwen3"}, {"reasoning-parser": "qwen3"}),
    ],
)
def test_what_a_processor_cannot_take_is_replaced(
    planned: Mapping[str, Argument], expected: Mapping[str, str | None]
) -> None:
    settings = with_arguments({"model": "m", **planned})
    assert {name: value(settings, name) for name in expected} == expected


def test_each_worker_publishes_kv_events_on_its_own_port_and_transfers_from_its_own_address() -> None:
    """vLLM listens on `*` alone; to a stated address it would connect, and no event would arrive."""
    events = '{"publisher":"zmq","endpoint":"tcp://*:20080"}'
    settings = with_arguments({"model": "m", "kv-events-config": events})
    assert value(settings, "kv-events-config") == events.replace("20080", "20150")
    assert settings.environment["VLLM_NIXL_SIDE_CHANNEL_HOST"] == _ADDRESS


def test_variables_of_efa_weights_and_kernels_are_left_out_and_others_kept() -> None:
    worker = replace(
        planned_workers()[0],
        environment={
            "FI_PROVIDER": "efa",
            "WEIGHTS_BUCKET": WeightsBucket(),
            "TRITON_CACHE_DIR": "/compiled/triton",
            "DYN_SYSTEM_PORT": "9090",
            "DYN_TCP_RPC_HOST": OwnAddress(),
            "HF_TOKEN": SecretValue("arn:aws:secretsmanager:us-west-2:111122223333:secret:hub"),
        },
    )
    kept = here(worker).environment
    assert {"DYN_SYSTEM_PORT", "DYN_TCP_RPC_HOST", "HF_TOKEN"} <= set(kept)
    assert not {"FI_PROVIDER", "WEIGHTS_BUCKET", "TRITON_CACHE_DIR"} & set(kept)


def test_latent_attention_has_blocks_of_its_own_and_whole_prompts() -> None:
    worker, planned = next(
        (each, named)
        for each in planned_workers()
        for named in [dict(zip(each.arguments, each.arguments[1:], strict=False))]
        if int(named["--max-num-batched-tokens"]) < int(named["--max-model-len"])
    )
    latent, usual = here(worker, latent=True), here(worker)
    assert [value(each, "block-size") for each in (latent, usual)] == ["16", "64"]
    assert value(latent, "max-num-batched-tokens") == planned["--max-model-len"]
    assert value(usual, "max-num-batched-tokens") == planned["--max-num-batched-tokens"]
    assert value(latent, "kv-events-config") is None
    off = {"--no-enable-prefix-caching", "--no-enable-chunked-prefill"}
    assert off <= set(latent.arguments)
    assert "--enable-prefix-caching" not in latent.arguments
    assert not off & set(usual.arguments)
    assert off | {"--enable-prefix-caching"} <= {each.setting for each in latent.replacements}
