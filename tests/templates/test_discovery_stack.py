"""The discovery store on ECS: three members that start one after the other and keep their data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from botocore import session
from botocore.validate import ParamValidator

import app
from inference_contracts import discovery_roles
from inference_contracts.ecs_names import discovery_endpoints, namespace_of
from stacks.ecs.discovery_stack import DiscoveryStack
from tests.templates.support import Resource, listed, text

PLATFORM = "try"
ZONES = ["us-west-2a", "us-west-2b"]


def _synthesise(folder: Path) -> dict[str, Any]:
    stacks = cdk.App(outdir=str(folder), analytics_reporting=False)
    cdk.Validations.of(stacks).add_plugins(cdk_nag.AwsSolutionsChecks(stacks))
    env = cdk.Environment(region="us-west-2")
    network = cdk.Stack(stacks, "Network", env=env)
    vpc = ec2.Vpc.from_vpc_attributes(
        network,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=ZONES,
        private_subnet_ids=["subnet-0123456789abcdefa", "subnet-0123456789abcdefb"],
    )
    DiscoveryStack(
        stacks,
        "try-Discovery",
        platform=PLATFORM,
        releases=["chat-main"],
        cluster_name=PLATFORM,
        vpc=vpc,
        members=ec2.SecurityGroup.from_security_group_id(network, "Members", "sg-0123456789abcdef0"),
        encryption_key=kms.Key.from_key_arn(
            network, "Key", "arn:aws:kms:us-west-2:123456789012:key/0123abcd-0123-0123-0123-0123456789ab"
        ),
        env=env,
    )
    app.synthesise(stacks)
    template: dict[str, Any] = json.loads((folder / "try-Discovery.template.json").read_text())
    return template


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The template, without findings of cdk-nag."""
    return _synthesise(tmp_path_factory.mktemp("discovery"))


def resources(template: dict[str, Any], kind: str) -> dict[str, Resource]:
    found = {name: each for name, each in template["Resources"].items() if each["Type"] == kind}
    return dict(sorted(found.items()))


def members(template: dict[str, Any], kind: str) -> dict[str, Resource]:
    """Return the resources of a kind that belong to members."""
    return {name: each for name, each in resources(template, kind).items() if name.startswith("Member")}


def roles_task(template: dict[str, Any]) -> dict[str, Any]:
    """Return the container that keeps users and roles."""
    [task] = [
        each
        for name, each in resources(template, "AWS::ECS::TaskDefinition").items()
        if name.startswith("Roles")
    ]
    return containers(task)["main"]


def containers(task: Resource) -> dict[str, dict[str, Any]]:
    return {each["Name"]: each for each in task["Properties"]["ContainerDefinitions"]}


def test_a_member_is_one_task_and_never_two(template: dict[str, Any]) -> None:
    services = members(template, "AWS::ECS::Service").values()
    assert len(services) == 3
    for service in services:
        properties = service["Properties"]
        assert properties["DesiredCount"] == 1
        deployment = properties["DeploymentConfiguration"]
        assert (deployment["MinimumHealthyPercent"], deployment["MaximumPercent"]) == (0, 100)
        # Else CloudFormation waits for three hours for a member that cannot start.
        assert deployment["DeploymentCircuitBreaker"] == {"Enable": True, "Rollback": True}
        assert properties["AvailabilityZoneRebalancing"] == "DISABLED"
        assert len(properties["NetworkConfiguration"]["AwsvpcConfiguration"]["Subnets"]) == 1
        assert properties["NetworkConfiguration"]["AwsvpcConfiguration"]["AssignPublicIp"] == "DISABLED"


def test_members_are_spread_over_the_zones(template: dict[str, Any]) -> None:
    subnets = [
        each["Properties"]["NetworkConfiguration"]["AwsvpcConfiguration"]["Subnets"][0]
        for each in members(template, "AWS::ECS::Service").values()
    ]
    assert subnets[0] != subnets[1]
    assert len(set(subnets)) == len(ZONES)


def test_members_change_one_after_the_other_and_after_the_certificates(template: dict[str, Any]) -> None:
    names = list(members(template, "AWS::ECS::Service"))
    [made] = resources(template, "Custom::ImageBuild")
    for before, name in zip([made, *names], names, strict=False):
        assert before in template["Resources"][name]["DependsOn"]
    assert template["Resources"][made]["Properties"]["Wait"] == "true"


def test_the_health_of_a_member_needs_no_other_member(template: dict[str, Any]) -> None:
    for task in members(template, "AWS::ECS::TaskDefinition").values():
        found = containers(task)
        assert [name for name, each in found.items() if "HealthCheck" in each] == ["watch"]
        command = found["watch"]["HealthCheck"]["Command"]
        assert command == ["CMD", "wget", "-q", "-T", "4", "-O", "/dev/null", "http://127.0.0.1:2381/livez"]
        assert found["watch"]["Essential"] is True
        assert "--listen-metrics-urls=http://127.0.0.1:2381" in found["main"]["Command"]


def test_each_member_mounts_its_own_folder_with_its_own_role(template: dict[str, Any]) -> None:
    folders = resources(template, "AWS::EFS::AccessPoint")
    assert {each["Properties"]["RootDirectory"]["Path"] for each in folders.values()} == {
        "/member-0",
        "/member-1",
        "/member-2",
    }
    used = set()
    for name, task in members(template, "AWS::ECS::TaskDefinition").items():
        [volume] = [each for each in task["Properties"]["Volumes"] if "EFSVolumeConfiguration" in each]
        configuration = volume["EFSVolumeConfiguration"]
        assert configuration["TransitEncryption"] == "ENABLED"
        assert configuration["AuthorizationConfig"]["IAM"] == "ENABLED"
        folder = configuration["AuthorizationConfig"]["AccessPointId"]["Ref"]
        used.add(folder)
        role = task["Properties"]["TaskRoleArn"]["Fn::GetAtt"][0]
        [statement] = [
            statement
            for policy in resources(template, "AWS::IAM::Policy").values()
            if {"Ref": role} in policy["Properties"]["Roles"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]
        assert folder in json.dumps(statement["Condition"]), name
        assert listed(statement["Action"]) == [
            "elasticfilesystem:ClientMount",
            "elasticfilesystem:ClientWrite",
        ]
    assert used == set(folders)


def test_files_are_encrypted_and_reached_only_by_members(template: dict[str, Any]) -> None:
    [files] = resources(template, "AWS::EFS::FileSystem").values()
    assert files["Properties"]["Encrypted"] is True
    assert "0123abcd" in text(files["Properties"]["KmsKeyId"])
    assert files["Properties"]["ThroughputMode"] == "elastic"
    [rule] = [
        each["Properties"]
        for each in resources(template, "AWS::EC2::SecurityGroupIngress").values()
        if each["Properties"]["FromPort"] == 2049
    ]
    assert "SourceSecurityGroupId" in rule
    ports = {
        each["Properties"]["FromPort"]: each["Properties"]
        for each in resources(template, "AWS::EC2::SecurityGroupEgress").values()
    }
    # 2379: the task that keeps users and roles, to the members.
    assert set(ports) == {2049, 2379, 2380}


def test_clients_are_the_tasks_and_hosts_of_the_cluster(template: dict[str, Any]) -> None:
    rules = [each["Properties"] for each in resources(template, "AWS::EC2::SecurityGroup").values()]
    inline = [rule for each in rules for rule in each.get("SecurityGroupIngress", [])]
    separate = [each["Properties"] for each in resources(template, "AWS::EC2::SecurityGroupIngress").values()]
    sources = [
        text(rule["SourceSecurityGroupId"]) for rule in (*inline, *separate) if rule["FromPort"] == 2379
    ]
    assert len(sources) == 2
    assert "sg-0123456789abcdef0" in sources
    assert any("RolesAccess" in source for source in sources)


def test_certificates_come_from_secrets_and_only_members_read_theirs(template: dict[str, Any]) -> None:
    for task in members(template, "AWS::ECS::TaskDefinition").values():
        found = containers(task)
        assert {each["Name"] for each in found["files"]["Secrets"]} == {"CA", "CERT", "KEY"}
        assert "Secrets" not in found["main"]
        assert found["main"]["DependsOn"] == [{"Condition": "SUCCESS", "ContainerName": "files"}]
        assert {"--client-cert-auth=true", "--peer-client-cert-auth=true"} <= set(found["main"]["Command"])
    readers = [
        policy["Properties"]["Roles"]
        for policy in resources(template, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "secretsmanager:GetSecretValue" in listed(statement["Action"])
        and "Authority" in json.dumps(statement)
    ]
    assert [role["Ref"] for roles in readers for role in roles] == [
        name for name in resources(template, "AWS::IAM::Role") if "BuildRole" in name
    ]


def test_containers_run_without_rights(template: dict[str, Any]) -> None:
    for task in resources(template, "AWS::ECS::TaskDefinition").values():
        for name, each in containers(task).items():
            assert each["ReadonlyRootFilesystem"] is True
            assert each["LinuxParameters"]["Capabilities"] == {"Drop": ["ALL"]}
            assert each["User"] == ("0:0" if name == "files" else "1000:1000")
    for task in members(template, "AWS::ECS::TaskDefinition").values():
        for each in containers(task).values():
            assert each["LogConfiguration"]["Options"]["mode"] == "non-blocking"


def test_task_definitions_are_those_of_the_ecs_api(template: dict[str, Any]) -> None:
    operation = session.get_session().get_service_model("ecs").operation_model("RegisterTaskDefinition")
    assert operation.input_shape is not None
    members = operation.input_shape.members
    for task in resources(template, "AWS::ECS::TaskDefinition").values():
        request = {name[0].lower() + name[1:]: each for name, each in task["Properties"].items()}
        request = {name: each for name, each in request.items() if name in members}
        request["containerDefinitions"] = json.loads(
            json.dumps(_lower(task["Properties"]["ContainerDefinitions"]))
        )
        request["runtimePlatform"] = _lower(task["Properties"]["RuntimePlatform"])
        request |= {"volumes": [], "taskRoleArn": "arn", "executionRoleArn": "arn"}
        assert not ParamValidator().validate(request, operation.input_shape).has_errors()


def _lower(value: Any) -> Any:
    """Spell keys as the API does, and references as text."""
    if isinstance(value, list):
        return [_lower(each) for each in value]
    if isinstance(value, dict):
        if set(value) <= {"Ref", "Fn::Join", "Fn::GetAtt"}:
            return "reference"
        return {key if "-" in key else key[0].lower() + key[1:]: _lower(each) for key, each in value.items()}
    return value


def test_outputs_name_the_store(template: dict[str, Any]) -> None:
    outputs = template["Outputs"]
    assert outputs["DiscoveryEndpoints"]["Value"] == discovery_endpoints(PLATFORM)
    [clients] = [name for name in resources(template, "AWS::SecretsManager::Secret") if "Clients" in name]
    assert outputs["DiscoveryClients"]["Value"] == {"Ref": clients}


def test_the_build_runs_the_script_and_every_month(template: dict[str, Any]) -> None:
    [project] = resources(template, "AWS::CodeBuild::Project").values()
    [command] = json.loads(text(project["Properties"]["Source"]["BuildSpec"]))["phases"]["build"]["commands"]
    assert command.startswith("#!/usr/bin/env bash\n# Makes the certificates")
    variables = {each["Name"] for each in project["Properties"]["Environment"]["EnvironmentVariables"]}
    for name in ("AUTHORITY", "MEMBERS", "CLIENTS", "ADMINISTRATOR", "HOSTS", "DAYS", "LEFT_DAYS", "CLUSTER"):
        assert name in variables
        assert f"${name}" in command
    assert {"AUTHORITY_DAYS", "CLIENT_NAMES"} <= variables
    [rule] = resources(template, "AWS::Events::Rule").values()
    assert rule["Properties"]["ScheduleExpression"] == "rate(30 days)"


def test_a_model_waits_until_the_store_has_its_user(template: dict[str, Any]) -> None:
    """Dynamo's workers go on without what they may not write, so the user must be there before them."""
    main = roles_task(template)
    variables = {each["Name"]: each["Value"] for each in main["Environment"]}
    assert variables[discovery_roles.NAMESPACES] == namespace_of("chat-main")
    assert variables[discovery_roles.ENDPOINTS] == discovery_endpoints(PLATFORM)
    assert variables[discovery_roles.STATUS] == main["HealthCheck"]["Command"][-1]
    assert {each["Name"] for each in main["Secrets"]} == set(discovery_roles.ADMINISTRATOR.values())
    [(_, service)] = [
        (name, each)
        for name, each in resources(template, "AWS::ECS::Service").items()
        if name.startswith("Roles")
    ]
    last = list(members(template, "AWS::ECS::Service"))[-1]
    assert last in service["DependsOn"]
    deployment = service["Properties"]["DeploymentConfiguration"]
    assert deployment["DeploymentCircuitBreaker"] == {"Enable": True, "Rollback": True}


def test_only_the_build_and_the_roles_read_the_administrator(template: dict[str, Any]) -> None:
    readers = {
        role["Ref"]
        for policy in resources(template, "AWS::IAM::Policy").values()
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "secretsmanager:GetSecretValue" in listed(statement["Action"])
        and "Administrator" in json.dumps(statement["Resource"])
        for role in policy["Properties"]["Roles"]
    }
    assert len(readers) == 2
    assert all("BuildRole" in name or name.startswith("RolesExecutionRole") for name in readers)


def test_the_build_may_start_services_of_its_cluster_again(template: dict[str, Any]) -> None:
    """It turns red if a renewed certificate reaches no running task, or other clusters can be changed."""
    statements = {
        each["Sid"]: each
        for policy in resources(template, "AWS::IAM::Policy").values()
        for each in policy["Properties"]["PolicyDocument"]["Statement"]
        if "Sid" in each
    }
    assert text(statements["StartAgain"]["Resource"]).endswith(f":service/{PLATFORM}/*")
    assert set(statements["StartAgain"]["Action"]) == {"ecs:DescribeServices", "ecs:UpdateService"}
    [cluster] = statements["ListServices"]["Condition"]["ArnEquals"].values()
    assert text(cluster).endswith(f":cluster/{PLATFORM}")
