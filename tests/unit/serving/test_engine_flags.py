"""Arguments and variables of the plan exist in the pinned releases, and take a value where those do."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from dynamo.frontend.frontend_args import FrontendArgGroup, FrontendConfig

import inference_catalog as catalog
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint
from inference_contracts.request_filter import PROGRAM_VARIABLE, SETTINGS_VARIABLE

#: Read by the engines, whose wheels are not installed here: ``vllm/envs.py`` of vLLM 0.31.0,
#: ``sglang/srt/environ.py`` of SGLang 0.5.21; TensorRT-LLM's documentation.
ENGINE_VARIABLES = {
    # Read by the filter before the frontend, which does not see them.
    PROGRAM_VARIABLE,
    SETTINGS_VARIABLE,
    "VLLM_NO_USAGE_STATS",
    "SGLANG_DISAGGREGATION_NIXL_BACKEND",
    "TLLM_LOG_LEVEL",
    "TRTLLM_NIXL_KVCACHE_BACKEND",
    "TRTLLM_NO_USAGE_STATS",
}
#: Read by libfabric.
EFA_VARIABLES = {"FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_ENABLE_SHM_TRANSFER"}
#: Flags with ``nargs="+"``.
SEVERAL_WORDS = {"--allowed-media-domains"}
Deployment = tuple[str, Sequence[Process]]

#: Read by huggingface_hub and by Dynamo's own downloader.
HUB_VARIABLES = {"HF_TOKEN"}

HUB = {"huggingFace": "Qwen/Qwen3-8B", "revision": "main"}
S3 = {"s3": "s3://weights/qwen/", "catalog": "Qwen/Qwen3-8B"}
ROUTINGS: tuple[dict[str, Any], ...] = ({"kvAware": {}}, {"roundRobin": {}})
#: Arguments of a user's that the plan has no opinion on.
OPEN: dict[str, dict[str, bool | int | str]] = {
    "vllm": {"enforce-eager": True, "enable-chunked-prefill": False, "seed": 7},
    "sglang": {"disable-overlap-schedule": True, "random-seed": 7, "stream-interval": 4},
    "tensorrtLlm": {"publish-metrics": True, "max-beam-width": 1, "guided-decoding-backend": "xgrammar"},
}
CASES = [
    *itertools.product(OPEN, [HUB], ROUTINGS, ["aggregated", "disaggregated"]),
    *itertools.product(["vllm"], [S3], ROUTINGS, ["aggregated"]),
]


@pytest.fixture(
    params=CASES, ids=lambda case: f"{case[0]}-{next(iter(case[1]))}-{next(iter(case[2]))}-{case[3]}"
)
def deployment(request: pytest.FixtureRequest, make_blueprint: Callable[..., Blueprint]) -> Deployment:
    key, weights, routing, topology = request.param
    section: dict[str, Any] = {"name": "main"}
    workers = {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1}
    section |= (
        {"aggregated": workers}
        if topology == "aggregated"
        else {"disaggregated": {"prefill": workers, "decode": workers}}
    )
    blueprint = make_blueprint(
        weights=weights, routing=routing, engine={key: {"args": OPEN[key]}}, deployments=[section]
    )
    return key, build_plan(blueprint).models[0].deployments[0].processes


@pytest.fixture
def processes(deployment: Deployment) -> Sequence[Process]:
    return deployment[1]


def test_the_workers_are_given_flags_of_the_release_with_and_without_values(deployment: Deployment) -> None:
    key, (_, *workers) = deployment
    engine = catalog.engine(key)
    for worker in workers:
        words = list(worker.arguments)
        while words:
            word = words.pop(0)
            flag = engine.flag(word)
            assert flag is not None, f"{word} is no flag of {engine.name} {engine.engine_version}"
            if flag.takes_value:
                value = words.pop(0)
                assert not value.startswith("--"), f"{word} takes a value"
                while word in SEVERAL_WORDS and words and not words[0].startswith("--"):
                    words.pop(0)


def test_the_frontend_takes_its_arguments(processes: Sequence[Process]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    FrontendArgGroup().add_arguments(parser)
    parsed = parser.parse_args(processes[0].arguments)
    config = FrontendConfig.from_cli_args(parsed)
    config.validate()
    assert config.http_port == processes[0].ports[0].number
    # With a higher limit, a request that ends its worker ends further ones.
    assert config.migration_limit == 1


def test_the_frontend_takes_the_settings_of_its_router(make_blueprint: Callable[..., Blueprint]) -> None:
    keys = {"overlapCredit": 0.5, "temperature": 0.2, "busyCacheFraction": 0.9, "busyPrefillTokens": 100_000}
    keys |= {"sessionAffinitySeconds": 600}
    blueprint = make_blueprint(routing={"kvAware": keys})
    frontend = build_plan(blueprint).models[0].deployments[0].processes[0]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    FrontendArgGroup().add_arguments(parser)
    config = FrontendConfig.from_cli_args(parser.parse_args(frontend.arguments))
    config.validate()
    assert (config.overlap_score_credit, config.router_temperature) == (0.5, 0.2)
    assert (config.active_decode_blocks_threshold, config.active_prefill_tokens_threshold) == (0.9, 100_000)
    assert config.session_affinity_ttl_secs == 600


def test_the_programs_are_modules_of_the_release(processes: Sequence[Process]) -> None:
    for process in processes:
        python, option, module = command_behind_filter(process)
        assert (python, option) == ("python3", "-m")
        assert importlib.util.find_spec(module) is not None


@pytest.fixture(scope="module")
def dynamo_reads() -> Callable[[str], bool]:
    """Return whether a name occurs in Dynamo's compiled library or its Python files."""
    package = importlib.util.find_spec("dynamo.runtime")
    assert package is not None
    assert package.origin is not None
    root = Path(package.origin).parents[1]
    content = b"".join(path.read_bytes() for path in (*root.glob("_core*.so"), *root.glob("common/**/*.py")))
    return cache(lambda name: name.encode() in content)


def test_every_variable_is_read_by_something(
    processes: Sequence[Process], dynamo_reads: Callable[[str], bool]
) -> None:
    for process in processes:
        compiled = {
            name for name, value in process.environment.items() if str(value).startswith("/compiled/")
        }
        known = ENGINE_VARIABLES | EFA_VARIABLES | HUB_VARIABLES | compiled
        for name in process.environment.keys() - known:
            assert dynamo_reads(name), f"nothing in Dynamo reads {name}"
