"""A mirrored model is copied once and streamed; workers need neither the Hub nor its token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ModelPlan, Process, SecretValue, WeightsBucket
from inference_blueprints.spec.types import Blueprint

Make = Callable[..., Blueprint]

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
HUB: dict[str, Any] = {"huggingFace": "Qwen/Qwen3-8B", "revision": COMMIT}
MIRRORED: dict[str, Any] = {**HUB, "mirror": {}}
PREFIX = f"huggingface/Qwen/Qwen3-8B/{COMMIT}"


def model_of(blueprint: Blueprint) -> ModelPlan:
    [model] = build_plan(blueprint).models
    return model


def worker_of(model: ModelPlan) -> Process:
    [deployment] = model.deployments
    [worker] = [process for process in deployment.processes if process.role == "worker"]
    return worker


def test_workers_stream_from_the_copy_of_that_commit(make_blueprint: Make) -> None:
    worker = worker_of(model_of(make_blueprint(weights=MIRRORED)))
    arguments = worker.arguments
    assert arguments[arguments.index("--model") + 1] == f"s3://$(WEIGHTS_BUCKET)/{PREFIX}/"
    assert arguments[arguments.index("--load-format") + 1] == "runai_streamer"
    assert "--revision" not in arguments
    assert worker.environment["WEIGHTS_BUCKET"] == WeightsBucket()
    assert worker.environment["WEIGHTS_PREFIX"] == PREFIX


def test_streaming_needs_no_disk_for_the_weights(make_blueprint: Make) -> None:
    streamed, downloaded = (
        worker_of(model_of(make_blueprint(weights=weights))).resources.ephemeral_storage_mib
        for weights in (MIRRORED, {"huggingFace": "Qwen/Qwen3-8B"})
    )
    assert downloaded - streamed > 10_000


def test_workers_wait_for_the_copy_and_frontends_do_not(make_blueprint: Make) -> None:
    model = model_of(make_blueprint(weights=MIRRORED))
    assert model.weights_mirror is not None
    awaited = {process.role: process.awaits_weights for process in model.deployments[0].processes}
    assert awaited == {"frontend": None, "worker": model.weights_mirror.release}


def test_the_mirror_copies_what_is_served_with_the_image_that_serves_it(make_blueprint: Make) -> None:
    model = model_of(make_blueprint(weights={**MIRRORED, "tokenSecretArn": HUB_ARN}))
    mirror = model.weights_mirror
    assert mirror is not None
    assert mirror.image == worker_of(model).image
    assert mirror.prefix == PREFIX
    assert mirror.environment == {
        "WEIGHTS_BUCKET": WeightsBucket(),
        "WEIGHTS_PREFIX": PREFIX,
        "WEIGHTS_REPOSITORY": "Qwen/Qwen3-8B",
        "WEIGHTS_REVISION": COMMIT,
        "HF_TOKEN": SecretValue(HUB_ARN),
    }


def test_only_the_mirror_gets_the_token(make_blueprint: Make) -> None:
    plan = build_plan(make_blueprint(weights={**MIRRORED, "tokenSecretArn": HUB_ARN}))
    assert "HF_TOKEN" not in worker_of(plan.models[0]).environment
    holders = [environment for environment in plan.environments if "HF_TOKEN" in environment]
    assert len(holders) == 1


def test_no_deployment_can_take_the_mirrors_release(make_blueprint: Make) -> None:
    model = model_of(make_blueprint(weights=MIRRORED))
    assert model.weights_mirror is not None
    assert "." in model.weights_mirror.release


@pytest.mark.parametrize("weights", [HUB, {"s3": "s3://acme/qwen/", "catalog": "Qwen/Qwen3-8B"}])
def test_without_the_key_nothing_is_copied(make_blueprint: Make, weights: dict[str, Any]) -> None:
    model = model_of(make_blueprint(weights=weights))
    assert model.weights_mirror is None
    assert worker_of(model).awaits_weights is None
    assert "weightsBucket" not in deployment_values(model.deployments[0])
