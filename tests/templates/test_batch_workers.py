"""Batch workers: where they run, what they are told and may do, and how many there are for many shards."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from inference_runtime import runtime_directory
from tests.templates.checks.lint import lint
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, text
from tests.templates.test_batch_stack import with_batch

SHARDS_A_WORKER = 4
ROOM_FOR_MOST = 25 * SHARDS_A_WORKER


def with_workers(synthesise: Synthesise, **workers: Any) -> Templates:
    def change(spec: dict[str, Any]) -> None:
        with_batch(spec)
        spec["batch"] = {**spec["batch"], "workers": workers}

    return synthesise(change)


def with_tasks(synthesise: Synthesise, minimum: int, maximum: int, *, spot_percent: int = 75) -> Templates:
    ecs = {"spotPercent": spot_percent}
    return with_workers(synthesise, min=minimum, max=maximum, latencyPercent=0, ecs=ecs)


@pytest.fixture(scope="module")
def pods(synthesise: Synthesise) -> Templates:
    return with_workers(synthesise, min=0, max=3, latencyPercent=0)


@pytest.fixture(scope="module")
def tasks(synthesise: Synthesise) -> Templates:
    return with_tasks(synthesise, 1, 25)


def values(templates: Templates) -> dict[str, Any]:
    """Return the values of the workers' release."""
    joined = templates.charts("Batch")["qwen3-8b.batch"]["Properties"]["Values"]["Fn::Join"]
    # What is spelled as JSON itself would end the text that it is in.
    parts = [part if isinstance(part, str) else text(part).replace('"', "'") for part in joined[1]]
    found: dict[str, Any] = json.loads("".join(parts))
    return found


def container(templates: Templates) -> dict[str, Any]:
    [found] = templates.only("AWS::ECS::TaskDefinition", "Batch")["ContainerDefinitions"]
    return dict(found)


def environment(templates: Templates) -> dict[str, str]:
    return {each["Name"]: text(each["Value"]) for each in container(templates)["Environment"]}


def rights(templates: Templates, service: str) -> list[dict[str, Any]]:
    """Return what roles of a service may do, in the order in which it is said."""
    stack = templates.by_stack["Batch"]["Resources"]
    roles = {
        logical_id: role
        for logical_id, role in stack.items()
        if role["Type"] == "AWS::IAM::Role" and service in json.dumps(role)
    }
    inline = [
        policy["PolicyDocument"]
        for role in roles.values()
        for policy in role["Properties"].get("Policies", [])
    ]
    attached = [
        policy["Properties"]["PolicyDocument"]
        for policy in stack.values()
        if policy["Type"] == "AWS::IAM::Policy"
        and {each.get("Ref") for each in policy["Properties"]["Roles"]} & roles.keys()
    ]
    return [statement for document in (*inline, *attached) for statement in document["Statement"]]


def actions(statements: list[dict[str, Any]]) -> set[str]:
    return {action for statement in statements for action in listed(statement["Action"])}


def places(templates: Templates) -> int:
    functions = templates.properties("AWS::Lambda::Function", "Batch")
    [api] = [each for each in functions if each["Handler"] == "batch.api.handler.handle"]
    configuration = templates.asset_document(api["Environment"]["Variables"]["BATCH_CONFIGURATION"])
    return int(configuration["queues"][0]["capacity"]["places"])


def scaler_policies(templates: Templates) -> dict[str, dict[str, Any]]:
    return {
        name: each
        for name, each in templates.by_stack["Batch"]["Resources"].items()
        if each["Type"] == "AWS::IAM::Policy" and name.startswith("Scaler")
    }


def test_pods_are_scaled_by_keda_which_sees_their_queue_alone(pods: Templates) -> None:
    assert set(pods.charts("Batch")) == {"qwen3-8b.batch"}
    keda = pods.charts("Platform")["keda"]
    scaling = values(pods)["scaling"]
    assert (scaling["min"], scaling["max"], scaling["messages"]) == (0, 3, SHARDS_A_WORKER)
    assert scaling["queueUrl"] == values(pods)["environment"]["BATCH_QUEUE_URL"]
    assert "replicas" not in values(pods)
    [association] = [
        each
        for each in pods.properties("AWS::EKS::PodIdentityAssociation", "Platform")
        if each["Namespace"] == keda["Properties"]["Namespace"]
    ]
    role = pods.by_stack["Platform"]["Resources"][association["RoleArn"]["Fn::GetAtt"][0]]
    assert "Policies" not in role["Properties"], "only the stack of the queues grants something"
    [policy] = scaler_policies(pods).values()
    [statement] = policy["Properties"]["PolicyDocument"]["Statement"]
    assert listed(statement["Action"]) == ["sqs:GetQueueAttributes"]
    [queue] = listed(statement["Resource"])
    assert queue["Fn::GetAtt"][0] == scaling["queueUrl"].removeprefix("${").removesuffix("}")


def test_keda_has_its_identity_before_its_pods_start_and_is_there_before_what_it_scales(
    pods: Templates,
) -> None:
    platform = pods.by_stack["Platform"]["Resources"]
    before_keda = {platform[name]["Type"] for name in pods.charts("Platform")["keda"]["DependsOn"]}
    assert "AWS::EKS::PodIdentityAssociation" in before_keda
    assert set(scaler_policies(pods)) <= set(pods.charts("Batch")["qwen3-8b.batch"]["DependsOn"])


def test_a_fixed_number_of_pods_needs_no_keda(synthesise: Synthesise) -> None:
    templates = with_workers(synthesise, min=2, max=2, eks={})
    assert set(templates.charts("Batch")) == {"qwen3-8b.batch"}
    assert "keda" not in templates.charts("Platform")
    assert values(templates)["replicas"] == 2
    assert places(templates) == 2 * SHARDS_A_WORKER
    given = values(templates)["environment"]
    assert json.loads(given["BATCH_REQUEST_HEADERS"])["x-dynamo-meta-policy-class"] == "batch"
    assert given["BATCH_LATENCY_PERCENT"] == "100", "batch itself waits in the router"


def test_workers_are_told_whether_others_ask(pods: Templates, tasks: Templates) -> None:
    assert values(pods)["environment"]["BATCH_LATENCY_PERCENT"] == "0"
    assert environment(tasks)["BATCH_LATENCY_PERCENT"] == "0"


def test_there_are_places_for_as_many_workers_as_there_may_be(pods: Templates, tasks: Templates) -> None:
    """What has no worker yet must wait in the queue: nothing else brings another."""
    assert places(pods) == 3 * SHARDS_A_WORKER
    assert places(tasks) == ROOM_FOR_MOST


def test_tasks_bring_nothing_onto_the_cluster(tasks: Templates) -> None:
    assert tasks.charts("Batch") == {}
    assert tasks.properties("AWS::EKS::PodIdentityAssociation", "Batch") == []


def test_tasks_are_told_and_may_do_what_pods_are_and_may(pods: Templates, tasks: Templates) -> None:
    told = environment(tasks)
    own = {"BATCH_DRAIN_SECONDS", "BATCH_STATUS_FILE"}
    assert {name: value for name, value in told.items() if name not in own} == values(pods)["environment"]
    of_tasks = rights(tasks, "ecs-tasks.amazonaws.com")
    of_pods = [
        each
        for each in rights(pods, "pods.eks.amazonaws.com")
        if "sqs:GetQueueAttributes" not in each["Action"]
    ]
    pulls = {"ecr:GetAuthorizationToken", "ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage"}
    pulls |= {"ecr:GetDownloadUrlForLayer", "logs:CreateLogStream", "logs:PutLogEvents"}
    assert actions(of_tasks) == actions(of_pods) | pulls | {"ecs:UpdateTaskProtection"}
    [protection] = [each for each in of_tasks if each["Action"] == "ecs:UpdateTaskProtection"]
    assert ":task/" in text(protection["Resource"])


@pytest.mark.thorough
def test_tasks_are_what_cloudformation_takes(tasks: Templates) -> None:
    assert lint(tasks, "us-west-2") == []


def test_a_task_has_time_to_give_its_shards_back(tasks: Templates) -> None:
    drain = int(environment(tasks)["BATCH_DRAIN_SECONDS"])
    # 120 is what Fargate gives at most.
    assert drain < container(tasks)["StopTimeout"] <= 120


def test_a_task_is_well_while_its_worker_says_so(tasks: Templates) -> None:
    [kind, command] = container(tasks)["HealthCheck"]["Command"]
    assert kind == "CMD-SHELL"
    assert environment(tasks)["BATCH_STATUS_FILE"] in command


def test_what_a_task_writes_to_is_a_volume_of_its_image(tasks: Templates) -> None:
    """Else it would be root's alone (Amazon ECS Developer Guide, "Use bind mounts with Amazon ECS")."""
    [mount] = container(tasks)["MountPoints"]
    assert environment(tasks)["BATCH_STATUS_FILE"].startswith(f"{mount['ContainerPath']}/")
    file = runtime_directory() / "batch" / "worker" / "Dockerfile"
    assert f'VOLUME ["{mount["ContainerPath"]}"]' in file.read_text("utf-8").splitlines()


def test_a_task_may_do_nothing_to_its_machine_and_nobody_reaches_it(tasks: Templates) -> None:
    described = container(tasks)
    assert described["ReadonlyRootFilesystem"]
    assert described["LinuxParameters"]["Capabilities"]["Drop"] == ["ALL"]
    assert described["User"] == "1000:1000"
    network = tasks.only("AWS::ECS::Service", "Batch")["NetworkConfiguration"]["AwsvpcConfiguration"]
    assert network["AssignPublicIp"] == "DISABLED"
    [group] = network["SecurityGroups"]
    stack = tasks.by_stack["Batch"]["Resources"]
    own = stack[group["Fn::GetAtt"][0]]["Properties"]
    assert "SecurityGroupIngress" not in own
    assert {rule["ToPort"] for rule in own["SecurityGroupEgress"]} == {80, 443}


@pytest.mark.parametrize("kind", ["pods", "tasks"])
def test_the_load_balancer_of_the_models_admits_workers(kind: str, pods: Templates, tasks: Templates) -> None:
    """The blueprint may name the ranges that call, and the platform's own is none of them."""
    rule = {"pods": pods, "tasks": tasks}[kind].only("AWS::EC2::SecurityGroupIngress", "Batch")
    assert "ModelsSecurityGroup" in text(rule["GroupId"])
    assert (rule["FromPort"], rule["ToPort"]) == (80, 80)
    assert ("Cluster" if kind == "pods" else "Tasks") in text(rule["SourceSecurityGroupId"])


@pytest.mark.parametrize(
    ("workers", "percent", "expected"),
    [
        ((0, 1), 0, {"FARGATE": (1, 100)}),
        ((1, 25), 75, {"FARGATE": (1, 25), "FARGATE_SPOT": (None, 75)}),
        ((3, 3), 100, {"FARGATE": (1, 0), "FARGATE_SPOT": (None, 100)}),
    ],
)
def test_one_task_is_never_spot_and_of_the_others_a_share(
    synthesise: Synthesise,
    workers: tuple[int, int],
    percent: int,
    expected: dict[str, tuple[int | None, int]],
) -> None:
    templates = with_tasks(synthesise, *workers, spot_percent=percent)
    strategy = templates.only("AWS::ECS::Service", "Batch")["CapacityProviderStrategy"]
    assert {each["CapacityProvider"]: (each.get("Base"), each["Weight"]) for each in strategy} == expected


def test_a_service_starts_when_its_image_and_its_rights_are_there(tasks: Templates) -> None:
    """ECS gives a service up whose tasks cannot pull; the image is there when its build has ended."""
    stack = tasks.by_stack["Batch"]["Resources"]
    [service] = tasks.resources("AWS::ECS::Service", "Batch")
    before = [stack[name] for name in service["DependsOn"]]
    [build] = [each for each in before if each["Type"] == "Custom::ImageBuild"]
    assert build["Properties"]["Wait"] == "true"
    kinds = {each["Type"] for each in before}
    assert {"AWS::IAM::Policy", "AWS::ECS::ClusterCapacityProviderAssociations"} <= kinds
    assert "codebuild:BatchGetBuilds" in actions(rights(tasks, "lambda.amazonaws.com"))


def test_pods_wait_for_their_image_themselves(pods: Templates) -> None:
    assert "Wait" not in pods.only("Custom::ImageBuild", "Batch")
    assert "codebuild:BatchGetBuilds" not in actions(rights(pods, "lambda.amazonaws.com"))


def test_a_fixed_number_of_tasks_is_scaled_by_nobody(synthesise: Synthesise) -> None:
    templates = with_tasks(synthesise, 3, 3, spot_percent=100)
    assert templates.only("AWS::ECS::Service", "Batch")["DesiredCount"] == 3
    assert templates.resources("AWS::ApplicationAutoScaling::ScalableTarget", "Batch") == []


@pytest.mark.parametrize(
    ("minimum", "maximum", "percent"),
    [
        (0, 1, 0),
        (1, 25, 75),
        pytest.param(0, 3, 75, marks=pytest.mark.thorough),
        pytest.param(1, 2, 75, marks=pytest.mark.thorough),
        pytest.param(2, 100, 75, marks=pytest.mark.thorough),
    ],
)
def test_there_are_as_many_tasks_as_shards_need(
    synthesise: Synthesise, minimum: int, maximum: int, percent: int
) -> None:
    templates = with_tasks(synthesise, minimum, maximum, spot_percent=percent)
    assert "DesiredCount" not in templates.only("AWS::ECS::Service", "Batch")
    target = templates.only("AWS::ApplicationAutoScaling::ScalableTarget", "Batch")
    assert (target["MinCapacity"], target["MaxCapacity"]) == (minimum, maximum)
    # Where one policy has not a step for each, a few more start at once.
    spare = math.ceil((maximum - minimum) / 19) - 1
    for shards in range((maximum + 2) * SHARDS_A_WORKER):
        [number] = asked_for(templates, shards)
        needed = min(max(math.ceil(shards / SHARDS_A_WORKER), minimum), maximum)
        assert needed <= number <= min(needed + spare, maximum), shards


def asked_for(templates: Templates, backlog: int) -> Iterator[int]:
    """Yield what Application Auto Scaling would set for a backlog, once for each alarm that goes off.

    The bounds of steps are relative to the alarm's threshold; where it is exceeded the lower one belongs to
    the step, else the upper one (Application Auto Scaling User Guide, "Step adjustments").
    """
    stack = templates.by_stack["Batch"]["Resources"]
    policies = {
        name: each["Properties"]["StepScalingPolicyConfiguration"]
        for name, each in stack.items()
        if each["Type"] == "AWS::ApplicationAutoScaling::ScalingPolicy"
    }
    alarms = {
        action["Ref"]: alarm
        for alarm in templates.properties("AWS::CloudWatch::Alarm", "Batch")
        for action in alarm.get("AlarmActions", ())
        if action.get("Ref") in policies
    }
    assert alarms.keys() == policies.keys()
    for name, alarm in alarms.items():
        difference = backlog - alarm["Threshold"]
        exceeds = alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        if difference < 0 if exceeds else difference > 0:
            continue
        configuration = policies[name]
        assert configuration["AdjustmentType"] == "ExactCapacity"
        assert len(configuration["StepAdjustments"]) <= 20
        for step in configuration["StepAdjustments"]:
            lower = step.get("MetricIntervalLowerBound", -math.inf)
            upper = step.get("MetricIntervalUpperBound", math.inf)
            if lower <= difference < upper if exceeds else lower < difference <= upper:
                yield step["ScalingAdjustment"]


def test_workers_come_after_the_cluster_s_controllers(pods: Templates) -> None:
    """Their namespace is made with these."""
    assert {"try-Capacity", "try-Network", "try-Data"} <= set(pods.artifacts["Batch"]["dependencies"])
