"""The stack of operations: GPU health, and what controllers share."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.render.monitoring.hardware_alarms import hardware_alarms
from inference_blueprints.resources import root
from inference_blueprints.spec.types import Pool
from inference_constructs.code_staging import stage_packages
from inference_contracts import health_names, operations_names
from inference_contracts.operations_names import CONTROLLER_CALLS, OPERATIONS_RUNBOOKS
from inference_decisions.repairs.health_settings import HealthSettings
from stacks.eks.platform_stack import MODEL_NAMESPACE
from tests.templates.conftest import BASE, Synthesise
from tests.templates.support import Templates, listed, statements, text

STACK = "Operations"
GROUP = operations_names.HEALTH_GROUP


def healthy(action: str) -> Any:
    """Return a change that lets GPU health own the pool."""

    def change(spec: dict[str, Any]) -> None:
        spec["observability"] = {"logs": {"retentionDays": 60}}
        spec["gpuHealth"] = {"action": action, "replacementsPerHour": 2}
        spec["pools"][0]["repairedBy"] = "gpuHealth"

    return change


@pytest.fixture(scope="module")
def replacing(synthesise: Synthesise) -> Templates:
    return synthesise(healthy("replace"))


@pytest.fixture(scope="module")
def observing(synthesise: Synthesise) -> Templates:
    return synthesise(healthy("observe"))


def cluster_rules(templates: Templates) -> dict[str, list[str]]:
    """Return the verbs of the ClusterRole by resource."""
    role = templates.manifest(STACK, "ClusterRole", GROUP)
    return {
        f"{group}/{resource}": rule["verbs"]
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def handler(templates: Templates, arn: Any) -> str:
    """Return the handler of a function by its ARN in the template."""
    return str(templates.by_stack[STACK]["Resources"][arn["Fn::GetAtt"][0]]["Properties"]["Handler"])


def lost_events(templates: Templates) -> str:
    """Return the logical name of the queue of events that did not arrive."""
    (name,) = (
        str(name)
        for name, each in templates.by_stack[STACK]["Resources"].items()
        if each["Type"] == "AWS::SQS::Queue"
    )
    return name


def health_policy(templates: Templates) -> list[dict[str, Any]]:
    """Return the statements of the functions' role."""
    function, _ = templates.properties("AWS::Lambda::Function", STACK)
    role = function["Role"]["Fn::GetAtt"][0]
    (policy,) = (
        each
        for each in templates.resources("AWS::IAM::Policy", STACK)
        if each["Properties"]["Roles"] == [{"Ref": role}]
    )
    return list(statements(policy))


def test_without_the_section_there_is_no_stack(base_templates: Templates) -> None:
    assert STACK not in base_templates.by_stack


def test_health_may_do_in_the_cluster_what_a_replacement_needs_and_no_more(replacing: Templates) -> None:
    entry = replacing.only("AWS::EKS::AccessEntry", STACK)
    assert entry["KubernetesGroups"] == [GROUP]
    assert entry["Type"] == "STANDARD"
    assert "AccessPolicies" not in entry
    function, _ = replacing.properties("AWS::Lambda::Function", STACK)
    assert entry["PrincipalArn"] == function["Role"]
    binding = replacing.manifest(STACK, "ClusterRoleBinding", GROUP)
    assert binding["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": GROUP},
    ]
    assert binding["roleRef"]["name"] == GROUP
    assert cluster_rules(replacing) == {
        "/nodes": ["get", "list", "patch"],
        "/pods": ["get", "list"],
        "karpenter.sh/nodeclaims": ["get", "list", "delete"],
    }


def test_health_evicts_serving_pods_alone(replacing: Templates, observing: Templates) -> None:
    role = replacing.manifest(STACK, "Role", GROUP)
    assert role["metadata"]["namespace"] == MODEL_NAMESPACE
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}]
    binding = replacing.manifest(STACK, "RoleBinding", GROUP)
    assert binding["metadata"]["namespace"] == MODEL_NAMESPACE
    assert binding["roleRef"]["kind"] == "Role"
    assert binding["subjects"] == replacing.manifest(STACK, "ClusterRoleBinding", GROUP)["subjects"]
    assert "pods/eviction" not in json.dumps(observing.by_stack[STACK])
    # A role that leaves the manifest would stay in the cluster with its rights.
    assert observing.manifest(STACK, "Role", GROUP)["rules"] == []


def test_health_that_observes_can_only_read_the_cluster(observing: Templates) -> None:
    verbs = {verb for each in cluster_rules(observing).values() for verb in each}
    assert verbs == {"get", "list"}


def test_health_has_no_permission_beyond_its_work(replacing: Templates) -> None:
    allowed = {
        (action, json.dumps(each["Resource"]))
        for each in health_policy(replacing)
        if each["Effect"] == "Allow"
        for action in listed(each["Action"])
    }
    everywhere = {action for action, resource in allowed if resource == '"*"'}
    assert everywhere == {
        "cloudwatch:DescribeAlarmContributors",
        "cloudwatch:GetMetricData",
        "cloudwatch:ListMetrics",
        "ec2:AssignPrivateIpAddresses",
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:UnassignPrivateIpAddresses",
    }
    assert {action for action, resource in allowed if resource != '"*"'} == {
        "cloudwatch:DescribeAlarms",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:Query",
        "kms:Decrypt",
        "kms:GenerateDataKey",
        "kms:GenerateDataKey*",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sns:Publish",
        "ssm:GetParameter",
    }


def test_the_functions_own_code_touches_no_network_interface(replacing: Templates) -> None:
    (denied,) = (each for each in health_policy(replacing) if each["Effect"] == "Deny")
    assert "ec2:DeleteNetworkInterface" in denied["Action"]
    assert denied["Condition"] == {"ArnLike": {"lambda:SourceFunctionArn": "*"}}


def test_items_of_other_cells_are_out_of_reach(replacing: Templates) -> None:
    (table,) = (each for each in health_policy(replacing) if "dynamodb:PutItem" in listed(each["Action"]))
    scope = operations_names.table_scope("try", operations_names.MAIN_CELL)
    assert table["Condition"] == {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [scope]}}


def test_alarms_are_read_in_the_platforms_region_alone(replacing: Templates) -> None:
    (reads,) = (
        each for each in health_policy(replacing) if "cloudwatch:DescribeAlarms" in listed(each["Action"])
    )
    assert text(reads["Resource"]).endswith(":alarm:*")
    assert ":us-west-2:" in text(reads["Resource"])


def test_only_the_accounts_own_schedules_assume_the_roles_of_schedules(replacing: Templates) -> None:
    (role,) = (
        each["AssumeRolePolicyDocument"]["Statement"]
        for each in replacing.properties("AWS::IAM::Role", STACK)
        if "scheduler.amazonaws.com" in json.dumps(each)
    )
    (statement,) = role
    condition = statement["Condition"]
    assert text(condition["StringEquals"]["aws:SourceAccount"]) == text({"Ref": "AWS::AccountId"})
    assert text(condition["StringEquals"]["aws:SourceArn"]).endswith(":schedule-group/default")


def test_reservations_are_read_only_where_a_pool_has_one(synthesise: Synthesise) -> None:
    def reserved(spec: dict[str, Any]) -> None:
        healthy("replace")(spec)
        spec["pools"][0]["purchase"] = {"reservation": {"id": "cr-0a1b2c3d"}}
        spec["pools"][0]["availabilityZone"] = "us-west-2a"

    actions = {action for each in health_policy(synthesise(reserved)) for action in listed(each["Action"])}
    assert "ec2:DescribeCapacityReservations" in actions


def test_karpenter_leaves_repairs_to_their_owner(replacing: Templates, base_templates: Templates) -> None:
    def gate(templates: Templates) -> bool:
        values = json.loads(text(templates.charts("Platform")["karpenter"]["Properties"]["Values"]))
        return bool(values["settings"]["featureGates"]["nodeRepair"])

    assert gate(base_templates)
    assert not gate(replacing)


def test_reboots_are_allowed_only_where_they_are_asked_for(
    synthesise: Synthesise, replacing: Templates
) -> None:
    """Red if a role may reboot instances without the key, or those of another cluster with it."""

    def rebooting(spec: dict[str, Any]) -> None:
        healthy("replace")(spec)
        spec["gpuHealth"]["rebootsPerNodePerDay"] = 1

    def reboots(templates: Templates) -> list[dict[str, Any]]:
        return [each for each in health_policy(templates) if "ec2:RebootInstances" in listed(each["Action"])]

    assert reboots(replacing) == []
    found = synthesise(rebooting)
    (statement,) = reboots(found)
    assert text(statement["Resource"]).endswith(":instance/*")
    assert statement["Condition"] == {
        "StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/try": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }
    function, *_ = found.properties("AWS::Lambda::Function", STACK)
    settings = json.loads(function["Environment"]["Variables"][health_names.HEALTH_SETTINGS])
    assert settings["rebootsPerNodePerDay"] == 1
    shown = [
        health_names.NODES_REBOOTED in text(each["DashboardBody"])
        for templates in (replacing, found)
        for each in templates.properties("AWS::CloudWatch::Dashboard", STACK)
    ]
    assert shown == [False, True]


def test_karpenter_reboots_where_it_repairs_and_is_asked_to(
    synthesise: Synthesise, base_templates: Templates
) -> None:
    """Red if Karpenter gets the gate without the permission, or keeps the repair that knows no reboots."""

    def rebooting(spec: dict[str, Any]) -> None:
        spec |= {"observability": {}, "gpuHealth": {"rebootsPerNodePerDay": 1}}

    def settings(templates: Templates) -> dict[str, Any]:
        values = json.loads(text(templates.charts("Platform")["karpenter"]["Properties"]["Values"]))
        found: dict[str, Any] = values["settings"]
        return found

    def may_reboot(templates: Templates) -> bool:
        policies = templates.properties("AWS::IAM::ManagedPolicy", "Cluster")
        return any("ec2:RebootInstances" in json.dumps(each) for each in policies)

    found = synthesise(rebooting)
    assert may_reboot(found)
    assert not may_reboot(base_templates)
    assert settings(found)["awsFeatureGates"] == {"rebootForRepair": True}
    assert settings(found)["featureGates"]["terminateFirstRepair"] is True
    assert (settings(found)["legacyNodeRepair"], settings(base_templates)["legacyNodeRepair"]) == (
        False,
        True,
    )
    assert "awsFeatureGates" not in settings(base_templates)


def test_the_functions_know_their_cell_and_the_section(replacing: Templates) -> None:
    for function in replacing.properties("AWS::Lambda::Function", STACK):
        variables = function["Environment"]["Variables"]
        assert variables[operations_names.PLATFORM] == "try"
        assert variables[operations_names.CELL] == operations_names.MAIN_CELL
        assert variables[operations_names.CLUSTER] == "try"
        assert {operations_names.CLUSTER_ENDPOINT, operations_names.CLUSTER_AUTHORITY} <= variables.keys()
        assert json.loads(variables[health_names.HEALTH_SETTINGS]) == {
            "action": "replace",
            "repairedBy": {"l40s": "gpuHealth", health_names.OVERFLOW_POOL: "gpuHealth"},
            "maxUnhealthyPercent": 5,
            "replacementsPerHour": 2,
            "slowGpus": True,
            "accelerators": {"g6e.2xlarge": 1},
        }
        assert function["ReservedConcurrentExecutions"] in CONTROLLER_CALLS.values()
        assert function["Architectures"] == ["arm64"]
        assert "VpcConfig" in function


def test_every_handler_is_a_function_of_the_runtime(replacing: Templates) -> None:
    for function in replacing.properties("AWS::Lambda::Function", STACK):
        package, module, name = function["Handler"].split(".")
        source = (root() / "runtime" / package / f"{module}.py").read_text("utf-8")
        assert f"\ndef {name}(event" in source


@pytest.mark.thorough
@pytest.mark.parametrize("modules", ["gpu_health.fault_alarms, gpu_health.minute", "capacity_shift.handlers"])
def test_the_code_of_the_functions_has_all_that_they_import(modules: str, tmp_path: Path) -> None:
    """The staged folder comes first in the path, so a package that it lacks is not found elsewhere."""
    runtime = root() / "runtime"
    controller = modules.partition(".")[0]
    stage_packages((runtime / controller, runtime / "operations"), tmp_path)
    program = f"import {modules}, inference_contracts as l; print(l.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "AWS_DEFAULT_REGION": "us-west-2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == str(tmp_path / "inference_contracts" / "__init__.py")


def test_the_freeze_switch_begins_open_under_the_name_that_the_functions_read(replacing: Templates) -> None:
    parameter = replacing.only("AWS::SSM::Parameter", STACK)
    assert parameter["Name"] == operations_names.freeze_parameter("try", operations_names.MAIN_CELL)
    assert parameter["Value"] == "none"
    assert parameter["AllowedPattern"] == "^(none|health|shift|all)$"


def test_nodes_in_alarm_reach_the_function(replacing: Templates) -> None:
    prefix = health_names.hardware_alarm_prefix("try", operations_names.MAIN_CELL)
    (rule,) = replacing.properties("AWS::Events::Rule", STACK)
    assert rule["EventPattern"] == {
        "source": [health_names.ALARM_EVENT_SOURCE],
        "detail-type": [health_names.CONTRIBUTOR_EVENT],
        "detail": {"alarmName": [{"prefix": prefix}], "state": {"value": ["ALARM"]}},
    }
    (target,) = rule["Targets"]
    assert handler(replacing, target["Arn"]) == "gpu_health.fault_alarms.handle"
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 8}
    assert text(target["DeadLetterConfig"]["Arn"]) == f"${{{lost_events(replacing)}.Arn}}"
    alarms = {
        each["AlarmName"].removeprefix(prefix): each
        for each in replacing.properties("AWS::CloudWatch::Alarm", STACK)
        if "EvaluationCriteria" in each
    }
    assert alarms.keys() == {"xid", "row_remap", "ecc", "nvlink", "pcie", "throttle", "dcgm"}
    assert alarms.keys() <= set(health_names.FAULT_KINDS)
    for known in hardware_alarms([Pool.model_validate(BASE["spec"]["pools"][0])]):
        alarm = alarms[known.kind]
        criteria = alarm["EvaluationCriteria"]["PromQLCriteria"]
        assert criteria["Query"] == known.query("try")
        assert criteria.get("PendingPeriod", 0) == known.pending_seconds
        assert criteria.get("RecoveryPeriod", 0) == known.recovery_seconds
        assert alarm["EvaluationInterval"] == known.evaluation_seconds


def test_every_minute_has_one_call_and_none_is_kept(replacing: Templates) -> None:
    schedule = replacing.only("AWS::Scheduler::Schedule", STACK)
    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert schedule["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}
    assert text(schedule["Target"]["DeadLetterConfig"]["Arn"]) == f"${{{lost_events(replacing)}.Arn}}"
    assert handler(replacing, schedule["Target"]["Arn"]) == "gpu_health.minute.handle"
    role = schedule["Target"]["RoleArn"]["Fn::GetAtt"][0]
    (policy,) = (
        each
        for each in replacing.resources("AWS::IAM::Policy", STACK)
        if each["Properties"]["Roles"] == [{"Ref": role}]
    )
    assert [(each["Action"], each["Resource"]) for each in statements(policy)] == [
        ("lambda:InvokeFunction", schedule["Target"]["Arn"]),
        ("sqs:SendMessage", {"Fn::GetAtt": [lost_events(replacing), "Arn"]}),
    ]


def test_every_alarm_has_a_runbook_and_the_controllers_ones_tell_people(replacing: Templates) -> None:
    alarms = replacing.properties("AWS::CloudWatch::Alarm", STACK)
    for alarm in alarms:
        runbook = alarm["AlarmDescription"].partition(" Runbook: ")[2]
        assert runbook in OPERATIONS_RUNBOOKS
        assert (root() / runbook).is_file()
        assert ("AlarmActions" in alarm) == ("EvaluationCriteria" not in alarm)


def test_alarms_wait_as_long_as_they_say(replacing: Templates) -> None:
    limits = {
        text(each["AlarmDescription"]).partition(" Runbook: ")[0]: (
            each["ComparisonOperator"].removesuffix("Threshold"),
            each["Threshold"],
            each["DatapointsToAlarm"],
            each["EvaluationPeriods"],
        )
        for each in replacing.properties("AWS::CloudWatch::Alarm", STACK)
        if "EvaluationCriteria" not in each
    }
    assert limits == {
        "health-minute failed in three of five minutes.": ("GreaterThan", 0, 3, 5),
        "Calls of health-minute were throttled for five minutes.": ("GreaterThan", 0, 5, 5),
        "health-minute did not end a run for five minutes.": ("LessThan", 1, 5, 5),
        "A replacement of a node did not end within an hour.": ("GreaterThan", 3600, 5, 5),
        "Too many nodes of a pool were unhealthy for five minutes, so none of them is replaced.": (
            *("GreaterThan", 0, 5, 5),
        ),
        "Workers have reported nothing younger than three minutes, so slow ones are not found.": (
            *("GreaterThan", HealthSettings().stale_seconds, 5, 5),
        ),
        "health-signals failed in three of five minutes.": ("GreaterThan", 0, 3, 5),
        "Calls of health-signals were throttled for five minutes.": ("GreaterThan", 0, 5, 5),
        "An event or a call did not reach its controller.": ("GreaterThan", 0, 1, 1),
    }


def test_the_functions_reach_https_and_nothing_else(replacing: Templates) -> None:
    (egress,) = replacing.only("AWS::EC2::SecurityGroup", STACK)["SecurityGroupEgress"]
    assert (egress["FromPort"], egress["ToPort"], egress["IpProtocol"]) == (443, 443, "tcp")
    (name,) = (
        name
        for name, each in replacing.by_stack[STACK]["Resources"].items()
        if each["Type"] == "AWS::EC2::SecurityGroup"
    )
    for function in replacing.properties("AWS::Lambda::Function", STACK):
        assert [text(each) for each in function["VpcConfig"]["SecurityGroupIds"]] == [f"${{{name}.GroupId}}"]


def test_lost_events_are_kept_for_two_weeks_and_only_sent_by_tls(replacing: Templates) -> None:
    queue = replacing.only("AWS::SQS::Queue", STACK)
    assert (queue["MessageRetentionPeriod"], queue["SqsManagedSseEnabled"]) == (14 * 86400, True)
    (policy,) = replacing.resources("AWS::SQS::QueuePolicy", STACK)
    denied = [each for each in statements(policy) if each["Effect"] == "Deny"]
    assert [each["Condition"] for each in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]


def test_the_control_plane_admits_the_functions_alone(replacing: Templates) -> None:
    ingress = replacing.only("AWS::EC2::SecurityGroupIngress", STACK)
    assert (ingress["FromPort"], ingress["ToPort"], ingress["IpProtocol"]) == (443, 443, "tcp")
    (group,) = [
        name
        for name, each in replacing.by_stack[STACK]["Resources"].items()
        if each["Type"] == "AWS::EC2::SecurityGroup"
    ]
    assert text(ingress["SourceSecurityGroupId"]) == f"${{{group}.GroupId}}"


def test_logs_are_kept_under_the_key_of_the_platform(replacing: Templates) -> None:
    groups = replacing.properties("AWS::Logs::LogGroup", STACK)
    assert {each["LogGroupName"] for each in groups} == {
        "/inference-blueprints/try/operations/health-minute",
        "/inference-blueprints/try/operations/health-signals",
    }
    assert all(each["RetentionInDays"] == 60 and "KmsKeyId" in each for each in groups)
