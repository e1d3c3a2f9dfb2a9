"""The services of a model on ECS, what reaches them, and what their tasks may do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference_contracts.ecs_names import (
    MAIN_CONTAINER,
    NODE_CACHE_CONTAINER,
    TAG_KEYS,
    WEIGHTS_CONTAINER,
    discovery_secret_keys,
    namespace_of,
)
from tests.templates.checks.lint import lint
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed
from tests.templates.test_batch_stack import with_batch

MODEL = "Model-qwen3-8b"
COMMIT = "b968826d9c46dd6066d109eabc6255188de91218"


def ecs(spec: dict[str, Any]) -> None:
    spec["cluster"] = {"ecs": {}}


def mirrored(spec: dict[str, Any]) -> None:
    ecs(spec)
    spec["models"][0]["weights"] = {"huggingFace": "Qwen/Qwen3-8B", "revision": COMMIT, "mirror": {}}


def gated(spec: dict[str, Any]) -> None:
    ecs(spec)
    spec["models"][0]["weights"]["tokenSecretArn"] = (
        "arn:aws:secretsmanager:us-west-2:123456789012:secret:hub-AbCdEf"
    )


def batch(spec: dict[str, Any]) -> None:
    with_batch(spec)
    ecs(spec)


def elastic(spec: dict[str, Any]) -> None:
    ecs(spec)
    spec["observability"] = {"logs": {"retentionDays": 30}}
    workers = spec["models"][0]["deployments"][0]["aggregated"]
    workers |= {"replicas": {"min": 1, "max": 4}, "scaledBy": {"load": {}}}


@pytest.fixture(scope="module")
def templates(synthesise: Synthesise) -> Templates:
    return synthesise(ecs)


def only(templates: Templates, kind: str, stack: str = MODEL) -> dict[str, Any]:
    [found] = templates.resources(kind, stack)
    properties: dict[str, Any] = found["Properties"]
    return properties


def services(templates: Templates) -> dict[str, dict[str, Any]]:
    return {
        each["Properties"]["ServiceName"].removesuffix("-managed").rsplit("-", 1)[1]: each["Properties"]
        for each in templates.resources("AWS::ECS::Service", MODEL)
    }


def tasks(templates: Templates) -> dict[str, dict[str, Any]]:
    return {
        each["Properties"]["Family"].rsplit("-", 1)[1]: each["Properties"]
        for each in templates.resources("AWS::ECS::TaskDefinition", MODEL)
    }


def roles(templates: Templates) -> dict[str, dict[str, Any]]:
    """Roles of ECS tasks by the IDs of their statements."""
    return {
        sid: each["Properties"]
        for each in templates.resources("AWS::IAM::Role", MODEL)
        for sid in ("TagTask", "WriteLogs")
        if f'"{sid}"' in json.dumps(each)
    }


def statements(role: dict[str, Any]) -> dict[str, Any]:
    return {
        each["Sid"]: each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]
    }


@pytest.mark.thorough
@pytest.mark.parametrize("change", [ecs, mirrored, gated, batch, elastic])
def test_templates_have_no_findings(synthesise: Synthesise, change: Any) -> None:
    # cdk-nag's findings fail `synthesise` itself.
    assert lint(synthesise(change), "us-west-2") == []


def test_one_service_for_each_role(templates: Templates) -> None:
    assert services(templates).keys() == {"frontend", "worker"}
    assert services(templates)["frontend"]["CapacityProviderStrategy"][0]["CapacityProvider"] == "FARGATE"
    assert (
        services(templates)["worker"]["CapacityProviderStrategy"][0]["CapacityProvider"] == "managed-try-l40s"
    )


def test_a_deployment_that_fails_is_taken_back(templates: Templates) -> None:
    for service in services(templates).values():
        breaker = service["DeploymentConfiguration"]["DeploymentCircuitBreaker"]
        assert breaker["Enable"] is True
        assert breaker["Rollback"] is True
        assert breaker["ThresholdConfiguration"] == {"Type": "COUNT", "Value": 3}


def test_no_task_moves_to_even_out_zones_and_none_can_be_entered(templates: Templates) -> None:
    for service in services(templates).values():
        assert service["AvailabilityZoneRebalancing"] == "DISABLED"
        assert service["EnableExecuteCommand"] is False


def test_only_frontends_are_at_the_load_balancer(templates: Templates) -> None:
    assert "LoadBalancers" not in services(templates)["worker"]
    [target] = services(templates)["frontend"]["LoadBalancers"]
    [mapping] = tasks(templates)["frontend"]["ContainerDefinitions"][0]["PortMappings"]
    assert target["ContainerPort"] == mapping["ContainerPort"]
    group = only(templates, "AWS::ElasticLoadBalancingV2::TargetGroup")
    assert group["Port"] == target["ContainerPort"]
    # Without a quorum of the discovery store, /health of every frontend fails and /live does not.
    assert group["HealthCheckPath"] == "/live"
    ports = {
        each["Properties"]["FromPort"]
        for each in templates.resources("AWS::EC2::SecurityGroupIngress", "Cluster")
        if "load balancer" in each["Properties"]["Description"]
    }
    assert ports == {target["ContainerPort"]}


def test_services_wait_for_the_rule_of_their_target_group(templates: Templates) -> None:
    # "The target group … does not have an associated load balancer" (CreateService).
    [rule] = [
        name
        for name, each in templates.by_stack[MODEL]["Resources"].items()
        if each["Type"] == "AWS::ElasticLoadBalancingV2::ListenerRule"
    ]
    for service in templates.resources("AWS::ECS::Service", MODEL):
        assert rule in service["DependsOn"]


def test_frontends_and_workers_of_managed_instances_have_private_addresses(templates: Templates) -> None:
    for role in ("frontend", "worker"):
        network = services(templates)[role]["NetworkConfiguration"]["AwsvpcConfiguration"]
        assert network["AssignPublicIp"] == "DISABLED"
        assert len(network["Subnets"]) >= 2
        assert tasks(templates)[role]["NetworkMode"] == "awsvpc"


def test_servers_without_a_router_are_the_targets_of_the_load_balancer(synthesise: Synthesise) -> None:
    def direct(spec: dict[str, Any]) -> None:
        ecs(spec)
        spec["models"][0]["stack"] = {"direct": {}}

    templates = synthesise(direct)
    [server] = services(templates).values()
    [target] = server["LoadBalancers"]
    assert (target["ContainerName"], target["ContainerPort"]) == (MAIN_CONTAINER, 8000)
    assert server["NetworkConfiguration"]["AwsvpcConfiguration"]["AssignPublicIp"] == "DISABLED"
    assert only(templates, "AWS::ElasticLoadBalancingV2::TargetGroup")["HealthCheckPath"] == "/health"
    _, path = only(templates, "AWS::ElasticLoadBalancingV2::ListenerRule")["Conditions"]
    assert path["PathPatternConfig"] == {"Values": ["/v1/*"]}


def test_a_platform_without_frontends_runs_no_discovery_store(
    synthesise: Synthesise, templates: Templates
) -> None:
    def direct(spec: dict[str, Any]) -> None:
        ecs(spec)
        spec["models"][0]["stack"] = {"direct": {}}

    def both(spec: dict[str, Any]) -> None:
        ecs(spec)
        spec["models"].append({**spec["models"][0], "name": "alone", "stack": {"direct": {}}})
        spec["pools"][0]["nodes"]["max"] = 8

    alone = synthesise(direct)
    assert "Discovery" in templates.by_stack
    assert "Discovery" not in alone.by_stack
    assert "ETCD_ENDPOINTS" not in str(tasks(alone))
    mixed = synthesise(both)
    assert "Discovery" in mixed.by_stack
    # Its servers find nobody, so ECS may read no certificate for them.
    assert "Discovery" in str(mixed.by_stack[MODEL])
    assert "Discovery" not in str(mixed.by_stack["Model-alone"])


def test_tasks_inherit_the_labels_of_metrics(templates: Templates) -> None:
    for name, service in services(templates).items():
        assert service["PropagateTags"] == "SERVICE"
        tags = {each["Key"]: each["Value"] for each in service["Tags"]}
        assert tags["inference-blueprints/role"] == name
        assert tags["inference-blueprints/model"] == "qwen3-8b"


def test_certificates_come_from_the_secret_of_the_store(templates: Templates) -> None:
    for task in tasks(templates).values():
        [main] = [each for each in task["ContainerDefinitions"] if each["Name"] == "main"]
        names = {each["Name"]: json.dumps(each["ValueFrom"]) for each in main["Secrets"]}
        keys = discovery_secret_keys(namespace_of("qwen3-8b-main"))
        assert names.keys() == keys.keys()
        for name, key in keys.items():
            assert f'":{key}::"' in names[name]


def test_a_task_may_set_its_own_tags_and_no_others(templates: Templates) -> None:
    [tag] = statements(roles(templates)["TagTask"]).values()
    assert tag["Action"] == "ecs:TagResource"
    assert json.dumps(tag["Resource"]).endswith(':task/try/*"]]}')
    assert tag["Condition"] == {"ForAllValues:StringEquals": {"aws:TagKeys": list(TAG_KEYS)}}


def test_ecs_reads_the_secrets_of_the_model_and_writes_its_logs_alone(
    templates: Templates, synthesise: Synthesise
) -> None:
    found = statements(roles(templates)["WriteLogs"])
    assert found.keys() == {"WriteLogs", "ReadSecrets", "DecryptSecrets"}
    [group] = templates.resources("AWS::Logs::LogGroup", MODEL)
    name = group["Properties"]["LogGroupName"]
    assert f":log-group:{name}:log-stream:*" in json.dumps(found["WriteLogs"]["Resource"])
    assert "hub-AbCdEf" not in json.dumps(found)
    with_token = statements(roles(synthesise(gated))["WriteLogs"])
    assert "hub-AbCdEf" in json.dumps(with_token["ReadSecrets"]["Resource"])
    assert '"*"' not in json.dumps([each["Resource"] for each in with_token.values()])


def test_roles_are_for_tasks_of_this_account(templates: Templates) -> None:
    for role in roles(templates).values():
        [trust] = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "ecs-tasks.amazonaws.com"}
        assert trust["Condition"].keys() == {"ArnLike", "StringEquals"}


def test_logs_are_encrypted_and_expire(templates: Templates) -> None:
    group = only(templates, "AWS::Logs::LogGroup")
    assert "KmsKeyId" in group
    assert group["RetentionInDays"] == 90


def test_a_build_copies_weights_and_workers_wait_for_it(synthesise: Synthesise) -> None:
    templates = synthesise(mirrored)
    project = only(templates, "AWS::CodeBuild::Project")
    assert project["TimeoutInMinutes"] == 2160
    assert project["AutoRetryLimit"] == 5
    variables = {each["Name"]: each["Value"] for each in project["Environment"]["EnvironmentVariables"]}
    assert COMMIT in json.dumps(variables)
    [start] = templates.resources("Custom::ImageBuild", MODEL)
    assert "Wait" not in start["Properties"]
    containers = {each["Name"]: each for each in tasks(templates)["worker"]["ContainerDefinitions"]}
    waiting = [name for name, each in containers.items() if "weights.wait" in each["Command"]]
    # What reads the copy first waits for it: the program that fills the host's cache, or the worker.
    [reader] = [
        each
        for each in containers.values()
        if {"ContainerName": waiting[0], "Condition": "SUCCESS"} in each.get("DependsOn", [])
    ]
    assert waiting == [WEIGHTS_CONTAINER]
    assert reader["Name"] in {MAIN_CONTAINER, NODE_CACHE_CONTAINER}
    role = statements(roles(templates)["TagTask"])
    assert role["ReadWeights"]["Action"] == "s3:GetObject"
    assert "s3:PutObject" not in json.dumps(role)


def test_a_changed_revision_starts_a_new_copy(synthesise: Synthesise) -> None:
    def other(spec: dict[str, Any]) -> None:
        mirrored(spec)
        spec["models"][0]["weights"]["revision"] = COMMIT[::-1]

    def tag(templates: Templates) -> str:
        [start] = templates.resources("Custom::ImageBuild", MODEL)
        return str(start["Properties"]["Tag"])

    assert tag(synthesise(mirrored)) != tag(synthesise(other))


def test_the_number_of_elastic_workers_follows_their_load(synthesise: Synthesise) -> None:
    templates = synthesise(elastic)
    assert "DesiredCount" not in services(templates)["worker"]
    scaling = only(templates, "AWS::ApplicationAutoScaling::ScalableTarget")
    assert (scaling["MinCapacity"], scaling["MaxCapacity"]) == (1, 4)
    assert scaling["ResourceId"] == "service/try/qwen3-8b-main-worker-managed"
    assert templates.resources("AWS::ApplicationAutoScaling::ScalingPolicy", MODEL)


def test_batch_workers_are_tasks_of_fargate(synthesise: Synthesise) -> None:
    [service] = synthesise(batch).resources("AWS::ECS::Service", "Batch")
    strategy = {each["CapacityProvider"] for each in service["Properties"]["CapacityProviderStrategy"]}
    assert strategy == {"FARGATE", "FARGATE_SPOT"}


def test_a_platform_on_ecs_has_nothing_of_kubernetes(templates: Templates) -> None:
    everything = json.dumps(templates.by_stack)
    assert "AWS::EKS::" not in everything
    assert "Custom::AWSCDK-EKS" not in everything


def commands(spec: dict[str, Any]) -> None:
    spec["cluster"] = {"ecs": {"executeCommand": True}}


def test_commands_run_in_tasks_only_if_the_blueprint_says_so(
    synthesise: Synthesise, templates: Templates
) -> None:
    """It turns red if ECS Exec is on by default, its sessions are in clear text or unrecorded, or tasks may
    do more for it than AWS lists."""
    assert {each["EnableExecuteCommand"] for each in services(templates).values()} == {False}
    assert "Configuration" not in only(templates, "AWS::ECS::Cluster", "Cluster")
    with_commands = synthesise(commands)
    assert {each["EnableExecuteCommand"] for each in services(with_commands).values()} == {True}
    containers = [part for each in tasks(with_commands).values() for part in each["ContainerDefinitions"]]
    # An init process passes signals on, and waits for what commands leave behind.
    assert {each["LinuxParameters"]["InitProcessEnabled"] for each in containers} == {True}
    assert not any(each.get("ReadonlyRootFilesystem") for each in containers), (
        "ECS Exec writes into containers"
    )
    settings = only(with_commands, "AWS::ECS::Cluster", "Cluster")["Configuration"][
        "ExecuteCommandConfiguration"
    ]
    assert settings["Logging"] == "OVERRIDE"
    assert settings["LogConfiguration"]["CloudWatchEncryptionEnabled"] is True
    assert settings["LogConfiguration"]["CloudWatchLogGroupName"].endswith("/execute-command")
    assert settings["KmsKeyId"]
    before, after = (
        {
            (action, json.dumps(statement["Resource"], sort_keys=True))
            for role in each.resources("AWS::IAM::Role", MODEL)
            for policy in role["Properties"].get("Policies", [])
            for statement in policy["PolicyDocument"]["Statement"]
            for action in listed(statement["Action"])
        }
        for each in (templates, with_commands)
    )
    added = after - before
    assert {action for action, _ in added} == {
        *(f"ssmmessages:{verb}{kind}Channel" for verb in ("Create", "Open") for kind in ("Control", "Data")),
        *("logs:CreateLogStream", "logs:DescribeLogGroups", "logs:DescribeLogStreams", "logs:PutLogEvents"),
        "kms:Decrypt",
    }
    unbound = {action.partition(":")[0] for action, resource in added if resource == '"*"'}
    assert unbound == {"logs", "ssmmessages"}
    assert [action for action, resource in added if resource == '"*"' and "logs" in action] == [
        "logs:DescribeLogGroups"
    ]
