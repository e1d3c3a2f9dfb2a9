"""What one load balancer takes."""

from __future__ import annotations

import pytest
import yaml

from benchmarks.harness.generated import generated_blueprint
from inference_blueprints.loading import parse_blueprint
from inference_contracts.errors import BlueprintError


def text(models: int, deployments: int) -> str:
    """Return a blueprint of so many models, each with so many deployments."""
    document = generated_blueprint(min(models, 50), models)
    for pool in document["spec"]["pools"]:
        pool["nodes"]["max"] *= deployments
    for model in document["spec"]["models"]:
        [only] = model["deployments"]
        model["deployments"] = [{**only, "name": f"d-{index}"} for index in range(deployments)]
    return yaml.safe_dump(document)


@pytest.mark.parametrize(("models", "deployments"), [(20, 5), (100, 1)])
def test_a_hundred_target_groups_are_allowed(models: int, deployments: int) -> None:
    spec = parse_blueprint(text(models, deployments), "mine.yaml").blueprint.spec
    assert sum(len(model.deployments) for model in spec.models) == 100


@pytest.mark.parametrize(
    ("models", "deployments", "message"),
    [
        (21, 5, "spec.models: got 105 deployments in all, the models' load balancer supports 100"),
        (1, 6, "spec.models[0].deployments: got 6 items, expected at most 5"),
        (101, 1, "spec.models: got 101 items, expected at most 100"),
    ],
)
def test_more_are_not(models: int, deployments: int, message: str) -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text(models, deployments), "mine.yaml")
    [problem] = caught.value.problems
    assert message in str(problem)
