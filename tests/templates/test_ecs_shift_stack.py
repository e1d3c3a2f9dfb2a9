"""The capacity shift of a platform on ECS: what its function may do, and whom it moves."""

from __future__ import annotations

import copy
import json
from typing import Any, cast

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.ecs_host_checks import kept_floors
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_catalog.tags import PLATFORM_TAG
from inference_contracts import batch_names, operations_names
from inference_contracts.shift_names import ShiftConfiguration
from tests.templates.checks.lint import lint
from tests.templates.checks.wildcards import unexplained_wildcards
from tests.templates.support import Templates, listed, statements, text
from tests.templates.synthesis import write_templates
from tests.unit.render.ecs.one_word import on_ecs

STACK = "Operations"
#: What ECS refuses of the blueprint: see `REFUSED`.
_REFUSED = ("queueing", "gpuHealth")


def document(action: str = "shift") -> dict[str, Any]:
    """Return the shipped blueprint on ECS, without what ECS refuses."""
    found: dict[str, Any] = yaml.safe_load(on_ecs("capacity-and-health"))
    for section in _REFUSED:
        found["spec"].pop(section, None)
    for pool in found["spec"]["pools"]:
        pool.pop("repairedBy", None)
    found["spec"]["capacityShift"] = {"action": action}
    return found


def synthesised(action: str, folder: Any) -> Templates:
    (folder / "blueprint.yaml").write_text(yaml.safe_dump(document(action)), encoding="utf-8")
    return write_templates(folder / "blueprint.yaml", folder / "cdk.out")


@pytest.fixture(scope="module")
def lending(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return synthesised("shift", tmp_path_factory.mktemp("lending"))


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return synthesised("observe", tmp_path_factory.mktemp("watching"))


def allowed(templates: Templates, effect: str = "Allow") -> dict[str, list[dict[str, Any]]]:
    """Return the statements of the function's role by the actions of the services that it calls."""
    function = templates.only("AWS::Lambda::Function", STACK)
    role = {"Ref": function["Role"]["Fn::GetAtt"][0]}
    found: dict[str, list[dict[str, Any]]] = {}
    for policy in templates.resources("AWS::IAM::Policy", STACK):
        if policy["Properties"]["Roles"] == [role]:
            for each in statements(policy):
                for action in listed(each["Action"]) if each["Effect"] == effect else ():
                    found.setdefault(action, []).append(each)
    return found


def configuration() -> ShiftConfiguration:
    blueprint = parse_blueprint(yaml.safe_dump(document()), "shift.yaml").blueprint
    found = shift_configuration_of(blueprint, build_plan(blueprint))
    assert found is not None
    return found


def test_names_are_those_of_elastic_services_and_there_is_no_queue() -> None:
    blueprint = parse_blueprint(yaml.safe_dump(document()), "shift.yaml").blueprint
    plan = build_plan(blueprint)
    target = EcsTarget(blueprint, plan)
    services = [
        service
        for model in plan.models
        for deployment in target.render(model)
        for service in deployment.services
        if service.scaling
    ]
    found = configuration()
    assert [each.name for each in found.workers] == [service.name for service in services]
    assert found.queues == ()


def test_the_shift_sets_floors_of_its_own_platform_and_of_its_services_alone(lending: Templates) -> None:
    (name,) = (each.name for each in configuration().workers)
    may = allowed(lending)
    (floors,) = may["application-autoscaling:RegisterScalableTarget"]
    assert floors["Condition"] == {"StringEquals": {f"aws:ResourceTag/{PLATFORM_TAG}": "capacity"}}
    for action in ("ecs:DescribeServices", "ecs:UpdateService"):
        (statement,) = may[action]
        (arn,) = listed(statement["Resource"])
        assert text(arn).endswith(f":service/capacity/{name}")


def test_the_targets_have_the_tag_that_the_policy_asks_for(lending: Templates) -> None:
    for target in lending.properties("AWS::ApplicationAutoScaling::ScalableTarget", "Model-qwen3-8b"):
        assert {"Key": PLATFORM_TAG, "Value": "capacity"} in target["Tags"]


class LiveFloor:
    """Application Auto Scaling, of which each target has the floor 9."""

    def client(self, _: str) -> LiveFloor:
        return self

    def describe_scalable_targets(self, *, ResourceIds: list[str], **_: object) -> dict[str, Any]:  # noqa: N803
        return {
            "ScalableTargets": [
                {"ResourceId": each, "MinCapacity": 9, "MaxCapacity": 9} for each in ResourceIds
            ]
        }


def test_a_deployment_keeps_floors_while_the_shift_acts(lending: Templates, watching: Templates) -> None:
    """Red if `deploy` does not find the services of the shift in the templates any more."""
    for templates, expected in ((lending, 1), (watching, 0)):
        before = copy.deepcopy(templates.by_stack)
        for resource in before["Model-qwen3-8b"]["Resources"].values():
            if resource["Type"] == "AWS::ApplicationAutoScaling::ScalableTarget":
                resource["Properties"]["MaxCapacity"] += 1
        change = PlatformChange(cast("Account", LiveFloor()), {}, before, templates.by_stack)
        assert len(list(kept_floors(change))) == expected


def test_no_alarm_with_a_name_may_be_written(lending: Templates) -> None:
    checked = {"cloudwatch:DeleteAlarms", "cloudwatch:PutMetricAlarm"}
    assert checked <= allowed(lending).keys()
    denied = allowed(lending, "Deny")
    for action in checked:
        ((arn,),) = (listed(each["Resource"]) for each in denied[action])
        assert text(arn).endswith(":alarm:??*")


def test_a_shift_that_observes_may_read_and_nothing_else(watching: Templates) -> None:
    may = {action for action in allowed(watching) if action.partition(":")[0] not in ("ec2", "logs", "kms")}
    assert may == {
        "application-autoscaling:DescribeScalableTargets",
        "cloudwatch:GetMetricData",
        "cloudwatch:ListMetrics",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "ecs:DescribeServices",
        "sns:Publish",
        "ssm:GetParameter",
    }
    (puts,) = allowed(watching)["dynamodb:PutItem"]
    assert puts["Condition"] == {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["capacity#main"]}}


def test_the_function_knows_its_cluster_and_needs_no_api_server(lending: Templates) -> None:
    function = lending.only("AWS::Lambda::Function", STACK)
    variables = function["Environment"]["Variables"]
    assert variables[operations_names.ECS_CLUSTER] == "capacity"
    assert operations_names.CLUSTER_ENDPOINT not in variables
    assert function["ReservedConcurrentExecutions"] == 1
    assert lending.only("AWS::Scheduler::Schedule", STACK)["ScheduleExpression"] == "rate(1 minute)"


def test_batch_reads_its_ceilings_only_if_the_shift_acts(lending: Templates, watching: Templates) -> None:
    for templates, expected in ((lending, True), (watching, False)):
        (scheduler,) = (
            each["Environment"]["Variables"]
            for each in templates.properties("AWS::Lambda::Function", "Batch")
            if each["Handler"] == "batch.scheduling.handlers.schedule"
        )
        assert (batch_names.CEILINGS in scheduler) == expected
        workers = json.dumps(templates.properties("AWS::ECS::TaskDefinition", "Batch"))
        assert (batch_names.CEILINGS_TABLE in workers) == expected


def test_every_wildcard_has_a_reason(lending: Templates) -> None:
    assert [grant for stack, grant in unexplained_wildcards(lending) if stack == STACK] == []


@pytest.mark.thorough
def test_the_templates_have_no_findings(lending: Templates) -> None:
    assert lint(lending, "us-west-2") == []
