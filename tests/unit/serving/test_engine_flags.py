"""Arguments and variables of the plan exist in the pinned releases, and take a value where those do."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from dynamo.frontend.frontend_args import FrontendArgGroup, FrontendConfig

from inference_blueprints import catalog
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.types import Blueprint

#: Read by the engine, whose wheel is not installed here: ``vllm/envs.py`` of vLLM 0.31.0.
ENGINE_VARIABLES = {"VLLM_NO_USAGE_STATS"}
#: Read by huggingface_hub and by Dynamo's own downloader.
HUB_VARIABLES = {"HF_TOKEN"}

WEIGHTS = (
    {"huggingFace": "Qwen/Qwen3-8B", "revision": "main"},
    {"s3": "s3://weights/qwen/", "catalog": "Qwen/Qwen3-8B"},
)
ROUTINGS = ({"kvAware": {}}, {"roundRobin": {}})
CASES = list(itertools.product(WEIGHTS, ROUTINGS))


@pytest.fixture(params=CASES, ids=["hub-kv", "hub-turns", "s3-kv", "s3-turns"])
def processes(request: pytest.FixtureRequest, make_blueprint: Callable[..., Blueprint]) -> Sequence[Process]:
    weights, routing = request.param
    arguments = {"enforce-eager": True, "enable-chunked-prefill": False, "seed": 7}
    blueprint = make_blueprint(weights=weights, routing=routing, engine={"vllm": {"args": arguments}})
    return build_plan(blueprint).models[0].deployments[0].processes


def test_the_worker_is_given_flags_of_the_release_with_and_without_values(
    processes: Sequence[Process],
) -> None:
    engine = catalog.engine("vllm")
    words = list(processes[1].arguments)
    while words:
        word = words.pop(0)
        flag = engine.flag(word)
        assert flag is not None, f"{word} is no flag of {engine.name} {engine.engine_version}"
        if flag.takes_value:
            value = words.pop(0)
            assert not value.startswith("--"), f"{word} takes a value"


def test_the_frontend_takes_its_arguments(processes: Sequence[Process]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    FrontendArgGroup().add_arguments(parser)
    parsed = parser.parse_args(processes[0].arguments)
    config = FrontendConfig.from_cli_args(parsed)
    config.validate()
    assert config.http_port == processes[0].ports[0].number
    assert config.migration_limit > 0


def test_the_programs_are_modules_of_the_release(processes: Sequence[Process]) -> None:
    for process in processes:
        python, option, module = process.command
        assert (python, option) == ("python3", "-m")
        assert importlib.util.find_spec(module) is not None


def test_every_variable_is_read_by_something(processes: Sequence[Process]) -> None:
    package = importlib.util.find_spec("dynamo.runtime")
    assert package is not None
    assert package.origin is not None
    root = Path(package.origin).parents[1]
    read = b"".join(path.read_bytes() for path in (*root.glob("_core*.so"), *root.glob("common/**/*.py")))
    for process in processes:
        for name in process.environment.keys() - ENGINE_VARIABLES - HUB_VARIABLES:
            assert name.encode() in read, f"nothing in Dynamo reads {name}"
