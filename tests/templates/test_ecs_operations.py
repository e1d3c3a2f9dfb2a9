"""The stack of operations on ECS: what GPU health may do there, and what it is told."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from inference_blueprints.render.monitoring.alarm_table import DISCOVERY_RUNBOOK, alarm_rows
from inference_catalog.tags import PLATFORM_TAG
from inference_constructs.operations import EcsControlledCluster
from inference_constructs.operations.controller_function import layer_arn
from inference_contracts import health_names, operations_names, scale_metrics
from inference_contracts.packed_files import unpack_files
from tests.templates.checks.lint import lint
from tests.templates.support import Templates, listed, statements, text
from tests.templates.synthesis import write_templates
from tests.unit.render.ecs.one_word import on_ecs

STACK = "Operations"
PLATFORM = "try"
ACTING = {
    "autoscaling:TerminateInstanceInAutoScalingGroup",
    "ecs:DeleteAttributes",
    "ecs:PutAttributes",
    "ecs:UpdateContainerInstancesState",
}


@pytest.fixture(scope="module")
def replacing(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """The quickstart with one word changed, whose hosts GPU health replaces."""
    document = yaml.safe_load(on_ecs("quickstart-g6e"))
    document["metadata"]["name"] = PLATFORM
    document["spec"] |= {"observability": {}, "gpuHealth": {"action": "replace"}}
    document["spec"]["pools"][0]["repairedBy"] = "gpuHealth"
    folder = tmp_path_factory.mktemp("replacing")
    (folder / "blueprint.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return write_templates(folder / "blueprint.yaml", folder / "cdk.out")


def _given(*, replaces: bool) -> set[str]:
    """Return the actions that a role gets for the cluster."""
    stack = cdk.Stack()
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    EcsControlledCluster(PLATFORM).grant_health(stack, role, replaces=replaces)
    (policy,) = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    return {action for each in statements(dict(policy)) for action in listed(each["Action"])}


def _allowed(templates: Templates) -> list[dict[str, Any]]:
    """Return the statements of the role of the functions that allow something."""
    function, *_ = templates.properties("AWS::Lambda::Function", STACK)
    role = function["Role"]["Fn::GetAtt"][0]
    (policy,) = (
        each for each in templates.properties("AWS::IAM::Policy", STACK) if {"Ref": role} in each["Roles"]
    )
    return [each for each in statements({"Properties": policy}) if each["Effect"] == "Allow"]


def _statement(templates: Templates, action: str) -> dict[str, Any]:
    (found,) = (each for each in _allowed(templates) if action in listed(each["Action"]))
    return found


def test_nothing_has_access_to_a_cluster_of_eks(replacing: Templates) -> None:
    assert not replacing.resources("AWS::EKS::AccessEntry")


@pytest.mark.thorough
def test_the_templates_have_no_findings(replacing: Templates) -> None:
    assert lint(replacing, "us-west-2") == []


def test_health_drains_hosts_of_its_cluster_alone(replacing: Templates) -> None:
    drains = _statement(replacing, "ecs:UpdateContainerInstancesState")
    assert set(listed(drains["Action"])) == {action for action in ACTING if action.startswith("ecs:")}
    assert text(drains["Resource"]).endswith(":container-instance/try/*")
    assert text(drains["Condition"]["ArnEquals"]["ecs:cluster"]).endswith(":cluster/try")


def test_health_terminates_instances_of_the_platforms_groups_alone(replacing: Templates) -> None:
    terminates = _statement(replacing, "autoscaling:TerminateInstanceInAutoScalingGroup")
    assert listed(terminates["Action"]) == ["autoscaling:TerminateInstanceInAutoScalingGroup"]
    assert terminates["Condition"] == {"StringEquals": {f"aws:ResourceTag/{PLATFORM_TAG}": PLATFORM}}
    (group,) = replacing.properties("AWS::AutoScaling::AutoScalingGroup", "Capacity")
    assert {PLATFORM_TAG: PLATFORM} in [{each["Key"]: each["Value"]} for each in group["Tags"]]


def test_only_instances_of_the_platform_are_rebooted() -> None:
    """Red if the condition names a tag that the hosts' launch template does not give them."""
    assert EcsControlledCluster(PLATFORM).instance_condition == {
        "StringEquals": {f"aws:ResourceTag/{PLATFORM_TAG}": PLATFORM}
    }


def test_hosts_have_the_tag_by_which_they_are_rebooted(replacing: Templates) -> None:
    (template,) = replacing.properties("AWS::EC2::LaunchTemplate", "Capacity")
    marks = {
        each["ResourceType"]: each["Tags"] for each in template["LaunchTemplateData"]["TagSpecifications"]
    }
    assert {"Key": PLATFORM_TAG, "Value": PLATFORM} in marks["instance"]


def test_health_that_observes_can_only_read() -> None:
    observing = _given(replaces=False)
    assert _given(replaces=True) - observing == ACTING
    assert all(action.split(":")[1].startswith(("Describe", "List")) for action in observing)


def test_lists_are_those_of_the_cluster(replacing: Templates) -> None:
    lists = _statement(replacing, "ecs:ListTasks")
    assert text(lists["Condition"]["ArnEquals"]["ecs:cluster"]).endswith(":cluster/try")
    hosts = _statement(replacing, "ecs:ListContainerInstances")
    assert text(hosts["Resource"]).endswith(":cluster/try")


def test_the_functions_know_a_cluster_on_ecs_and_no_api_server(replacing: Templates) -> None:
    functions = replacing.properties("AWS::Lambda::Function", STACK)
    told = [each["Environment"]["Variables"] for each in functions if "health" in each["Handler"]]
    assert len(told) == 2
    for variables in told:
        assert variables[operations_names.ECS_CLUSTER] == PLATFORM
        assert operations_names.CLUSTER_ENDPOINT not in variables
        settings = json.loads(variables[health_names.HEALTH_SETTINGS])
        assert (settings["action"], settings["repairedBy"]) == ("replace", {"l40s": "gpuHealth"})


def test_alarms_read_the_series_that_the_metrics_task_records(replacing: Templates) -> None:
    alarms = [
        each
        for each in replacing.properties("AWS::CloudWatch::Alarm", STACK)
        if health_names.hardware_alarm_prefix(PLATFORM, operations_names.MAIN_CELL)
        in str(each.get("AlarmName", ""))
    ]
    assert alarms
    assert all("node_hardware_faults" in json.dumps(each) for each in alarms)
    (variables,) = (
        {each["Name"]: each["Value"] for each in container["Environment"]}
        for task in replacing.properties("AWS::ECS::TaskDefinition", "Observability")
        for container in task["ContainerDefinitions"]
        if container["Name"] == "targets"
    )
    recorded = "".join(unpack_files(variables[scale_metrics.FILES]).values())
    assert "node_hardware_faults" in recorded
    assert health_names.WORKER_LATENCY in recorded


def test_no_alarm_of_the_platform_is_about_kubernetes(replacing: Templates) -> None:
    names = {row.runbook: row.kubernetes for row in alarm_rows()}
    alarms = replacing.properties("AWS::CloudWatch::Alarm", "Monitoring")
    runbooks = {str(each["AlarmDescription"]).rpartition("Runbook: ")[2] for each in alarms}
    assert len(runbooks) > 10
    assert not any(names.get(runbook) for runbook in runbooks)


def test_a_missing_member_of_the_discovery_store_is_an_alarm(replacing: Templates) -> None:
    """It turns red if the store loses a member and nobody is told, or another store is counted."""
    [alarm] = [
        each
        for each in replacing.properties("AWS::CloudWatch::Alarm", "Monitoring")
        if each.get("AlarmDescription", "").endswith(DISCOVERY_RUNBOOK)
    ]
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == (3, "breaching")
    counted = [each["MetricStat"]["Metric"] for each in alarm["Metrics"] if "MetricStat" in each]
    assert {each["MetricName"] for each in counted} == {"RunningTaskCount"}
    dimensions = [{each["Name"]: each["Value"] for each in metric["Dimensions"]} for metric in counted]
    assert {each["ClusterName"] for each in dimensions} == {PLATFORM}
    assert len({json.dumps(each["ServiceName"]) for each in dimensions}) == 3


def test_a_controller_without_a_region_says_what_it_needs() -> None:
    """It turns red when a stack without a region ends in a KeyError."""
    stack = cdk.Stack(cdk.App(), "Mine")
    with pytest.raises(ValueError, match=r"Mine: .*got no region, allowed are .*us-west-2.*cdk\.Environment"):
        layer_arn(stack)
