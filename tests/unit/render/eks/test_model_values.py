"""A deployment of the plan as values of its chart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint

HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
REVISION = "b968826d9c46dd6066d109eabc6255188de91218"


def test_values_hold_no_null_because_the_cdk_drops_them(make_blueprint: Callable[..., Blueprint]) -> None:
    def nulls(value: object) -> int:
        if isinstance(value, dict):
            return sum(nulls(item) for item in value.values())
        return sum(nulls(item) for item in value) if isinstance(value, list) else value is None

    deployment = build_plan(make_blueprint()).models[0].deployments[0]
    assert nulls(deployment_values(deployment)) == 0


def test_a_secret_is_named_and_its_value_is_nowhere(make_blueprint: Callable[..., Blueprint]) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-8B", "tokenSecretArn": HUB_ARN}
    deployment = build_plan(make_blueprint(weights=weights)).models[0].deployments[0]
    values = deployment_values(deployment)
    assert values["secrets"] == [{"key": "HF_TOKEN", "arn": HUB_ARN}]
    frontend, worker = (process["environment"] for process in values["processes"])
    assert {"name": "HF_TOKEN", "secret": "HF_TOKEN"} in worker
    assert "HF_TOKEN" not in {entry["name"] for entry in frontend}


def test_a_pods_own_address_is_left_to_kubernetes(make_blueprint: Callable[..., Blueprint]) -> None:
    deployment = build_plan(make_blueprint()).models[0].deployments[0]
    for process in deployment_values(deployment)["processes"]:
        assert {"name": "DYN_TCP_RPC_HOST", "ownAddress": True} in process["environment"]


def test_a_mirrored_model_needs_its_bucket(make_blueprint: Callable[..., Blueprint]) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-8B", "revision": REVISION, "mirror": {}}
    deployment = build_plan(make_blueprint(weights=weights)).models[0].deployments[0]
    assert deployment_values(deployment, weights_bucket="weights")["weightsBucket"] == "weights"
    with pytest.raises(ValueError, match="it needs weights_bucket"):
        deployment_values(deployment)
