"""The stacks of a platform whose models share a pool by the hour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import app
from inference_blueprints.loading import parse_blueprint
from inference_contracts import operations_names
from inference_contracts.ecs_names import LARGEST_NUMBER
from inference_contracts.shift_names import deadlines_identifier
from tests.templates.checks.wildcards import unexplained_wildcards
from tests.templates.shared_platform import FIRST, LENT, SECOND, document
from tests.templates.support import Templates, listed, statements, text

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return synthesised(tmp_path_factory.mktemp("shared"), {"eks": {"version": "1.35"}})


@pytest.fixture(scope="module")
def on_ecs(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return synthesised(tmp_path_factory.mktemp("on-ecs"), {"ecs": {}})


def synthesised(folder: Path, cluster: dict[str, Any]) -> Templates:
    path = folder / "blueprint.yaml"
    found = document()
    found["spec"]["cluster"] = cluster
    path.write_text(yaml.safe_dump(found))
    context = {"aws:cdk:disable-asset-staging": True}
    loaded = parse_blueprint(path.read_text(), str(path))
    app.synthesise(app.build_app(loaded, outdir=folder / "cdk.out", context=context))
    return Templates(folder / "cdk.out")


def test_the_function_may_set_its_own_numbers_and_no_others(templates: Templates) -> None:
    """Red if it cannot give batch workers, or may set the number of workers of real time itself."""
    role = templates.manifest("Operations", "ClusterRole", operations_names.SHIFT_GROUP)
    rules: dict[str, Any] = {each["resources"][0]: each for each in role["rules"]}
    assert rules["scaledobjects"]["resourceNames"] == [FIRST, SECOND]
    assert rules["deployments/scale"]["resourceNames"] == [LENT]
    assert rules["deployments/scale"]["verbs"] == ["get", "patch"]


def test_the_function_reads_what_deadlines_of_lent_workers_need_and_no_job(templates: Templates) -> None:
    """Red if DynamoDB denies it what batch's scheduler wrote."""
    (read,) = (
        each["Condition"]
        for resource in templates.resources("AWS::IAM::Policy", "Operations")
        for each in statements(resource)
        if listed(each["Action"]) == ["dynamodb:GetItem"]
    )
    assert read == {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [deadlines_identifier("nightly")]}}


def test_the_pool_comes_with_the_classes_that_its_pods_name(templates: Templates) -> None:
    """Red if pods are refused, because their class does not exist when they come."""
    named = {
        process["priorityClass"]
        for model in ("live", "shop", "nightly")
        for release in templates.charts(f"Model-{model}").values()
        for process in json.loads(release["Properties"]["Values"])["processes"]
    }
    values = {name: templates.manifest("Capacity", "PriorityClass", name)["value"] for name in sorted(named)}
    assert values["inference-batch"] < 0 < values["inference-real-time"]


def test_on_ecs_each_role_begins_with_its_share_and_batch_with_none(on_ecs: Templates) -> None:
    """Red if services together begin above the pool, or one that serves batch alone with a task."""
    services = {
        each["ServiceName"]: each
        for model in ("live", "shop", "nightly")
        for each in on_ecs.properties("AWS::ECS::Service", f"Model-{model}")
    }
    assert "DesiredCount" not in services[FIRST]
    assert services[LENT]["DesiredCount"] == 0
    # In a full pool a new version has only the places of the old one.
    percents = {name: each["DeploymentConfiguration"] for name, each in services.items()}
    assert {name: each["MaximumPercent"] for name, each in percents.items()} == {
        FIRST: 100,
        SECOND: 100,
        LENT: 100,
    }
    assert [percents[name]["MinimumHealthyPercent"] for name in (FIRST, SECOND, LENT)] == [50, 0, 0]
    ranges = {}
    for model in ("live", "shop"):
        (target,) = on_ecs.resources("AWS::ApplicationAutoScaling::ScalableTarget", f"Model-{model}")
        numbers = target["Properties"]
        ranges[model] = numbers["MinCapacity"], numbers["MaxCapacity"], target["Metadata"][LARGEST_NUMBER]
    assert ranges == {"live": (2, 12, 12), "shop": (1, 1, 2)}
    assert not on_ecs.resources("AWS::ApplicationAutoScaling::ScalableTarget", "Model-nightly")


def test_on_ecs_the_shift_comes_before_models_for_which_it_makes_room(on_ecs: Templates) -> None:
    """Red if a new model waits for places in a full pool, and the shift for the new model."""
    for model in ("live", "shop", "nightly"):
        assert "shared-Operations" in on_ecs.artifacts[f"Model-{model}"]["dependencies"]


def test_on_ecs_the_function_may_read_hosts_and_tasks_of_its_cluster(on_ecs: Templates) -> None:
    allowed = {
        action: each
        for policy in on_ecs.resources("AWS::IAM::Policy", "Operations")
        for each in statements(policy)
        for action in listed(each["Action"])
        if action.startswith("ecs:")
    }
    assert allowed["ecs:ListTasks"]["Condition"]["ArnEquals"].keys() == {"ecs:cluster"}
    (cluster,) = listed(allowed["ecs:ListContainerInstances"]["Resource"])
    assert text(cluster).endswith(":cluster/shared")
    kinds = [text(each) for each in listed(allowed["ecs:DescribeContainerInstances"]["Resource"])]
    assert [each.rpartition(":")[2] for each in kinds] == ["container-instance/shared/*", "task/shared/*"]
    assert [grant for stack, grant in unexplained_wildcards(on_ecs) if stack == "Operations"] == []
