"""What holds across stacks: order, references, protection, tags, and turning parts off."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

import pytest

from tests.templates.checks.exports import exports
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates

ORDER = ["Data", "Network", "Cluster", "Platform", "Capacity", "Model-qwen3-8b"]


def second_pool(spec: dict[str, Any]) -> None:
    spec["pools"].append({"name": "spare", "instanceTypes": ["g6e.4xlarge"], "nodes": {"max": 2}})


def second_pool_and_model(spec: dict[str, Any]) -> None:
    second_pool(spec)
    model = copy.deepcopy(spec["models"][0]) | {"name": "other"}
    model["deployments"][0]["aggregated"]["pool"] = "spare"
    spec["models"].append(model)


def test_stacks(base_templates: Templates) -> None:
    assert list(base_templates.by_stack) == sorted(ORDER)


def test_each_stack_is_deployed_after_those_before_it(base_templates: Templates) -> None:
    direct = {
        name: {dependency.removeprefix("try-") for dependency in artifact["dependencies"]}
        for name, artifact in base_templates.artifacts.items()
    }
    reached: set[str] = set()
    for earlier, later in pairwise(ORDER):
        reached |= {earlier} | direct[later]
        assert earlier in direct[later]


@pytest.mark.parametrize("stack", ["Data", "Cluster"])
def test_stateful_stacks_are_protected(base_templates: Templates, stack: str) -> None:
    assert base_templates.artifacts[stack]["properties"]["terminationProtection"] is True


def test_references_between_stacks_are_weak(base_templates: Templates) -> None:
    assert exports(base_templates) == []
    assert "Fn::GetStackOutput" in json.dumps(base_templates.by_stack["Model-qwen3-8b"])


def test_only_the_cluster_has_a_name_of_ours(base_templates: Templates) -> None:
    named = {
        resource["Type"]: resource["Properties"][key]
        for template in base_templates.by_stack.values()
        for resource in template["Resources"].values()
        for key in (
            "Name",
            "BucketName",
            "RoleName",
            "ManagedPolicyName",
            "QueueName",
            "FunctionName",
            "GroupName",
        )
        if key in resource.get("Properties", {})
    }
    assert named == {
        "AWS::EKS::Cluster": "try",
        "AWS::Route53::HostedZone": "try.internal.",
        "AWS::Route53::RecordSet": "*.try.internal",
    }


def test_everything_that_takes_tags_has_ours_and_the_blueprints(synthesise: Synthesise) -> None:
    templates = synthesise(lambda spec: spec["environment"].update(tags={"team": "search"}))
    expected = [{"Key": "inference-blueprints:platform", "Value": "try"}, {"Key": "team", "Value": "search"}]
    for resource_type in (
        "AWS::S3::Bucket",
        "AWS::EC2::VPC",
        "AWS::IAM::Role",
        "AWS::SQS::Queue",
        "AWS::KMS::Key",
    ):
        for properties in templates.properties(resource_type):
            assert [tag for tag in properties["Tags"] if tag in expected] == expected, resource_type
    node_class = templates.manifest("Capacity", "EC2NodeClass", "l40s")
    assert node_class["spec"]["tags"] == {tag["Key"]: tag["Value"] for tag in expected}


def test_taking_a_model_away_changes_no_other_stack(synthesise: Synthesise) -> None:
    before = dict(synthesise(second_pool_and_model).by_stack)
    del before["Model-other"]
    assert before == synthesise(second_pool).by_stack


def test_taking_a_pool_away_changes_the_pools_alone(
    synthesise: Synthesise, base_templates: Templates
) -> None:
    before = copy.deepcopy(synthesise(second_pool).by_stack)
    after = base_templates.by_stack
    assert {name for name in before if before[name] != after[name]} == {"Capacity"}
    (gone,) = before["Capacity"]["Resources"].keys() - after["Capacity"]["Resources"].keys()
    del before["Capacity"]["Resources"][gone]
    assert before == after


def test_two_syntheses_are_equal(synthesise: Synthesise, base_templates: Templates) -> None:
    again = synthesise(again=True)
    assert again.by_stack == base_templates.by_stack
    assert again.artifacts == base_templates.artifacts
