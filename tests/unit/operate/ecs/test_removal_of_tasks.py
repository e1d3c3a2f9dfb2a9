"""Tasks end before stacks are deleted, hosts may go, and old revisions are found. AWS is moto."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.ecs_cluster import (
    KEPT_REVISIONS,
    delete_revisions,
    end_services,
    old_revisions,
    unprotect_groups,
    unprotect_hosts,
)
from inference_catalog.tags import PLATFORM_TAG
from inference_contracts.task_tags import LABEL_TAGS
from inference_local.emulator.refusals import INSTANCE_NOT_IN_SERVICE

PLATFORM = "chat"


def register(ecs: Any, family: str, platform: str = PLATFORM) -> str:
    answer = ecs.register_task_definition(
        family=family,
        containerDefinitions=[{"name": "main", "image": "image", "memory": 128}],
        tags=[{"key": PLATFORM_TAG, "value": platform}],
    )
    return str(answer["taskDefinition"]["taskDefinitionArn"])


@pytest.fixture
def ecs(account: Account) -> Any:
    client = account.client("ecs")
    client.create_cluster(clusterName=PLATFORM)
    return client


def create(ecs: Any, name: str, release: str | None, count: int = 3) -> None:
    tags = [{"key": LABEL_TAGS["release"], "value": release}] if release else []
    task = register(ecs, f"{PLATFORM}-{name}")
    ecs.create_service(cluster=PLATFORM, serviceName=name, taskDefinition=task, desiredCount=count, tags=tags)


def desired(ecs: Any, name: str) -> int:
    [service] = ecs.describe_services(cluster=PLATFORM, services=[name])["services"]
    return int(service["desiredCount"])


def test_models_end_and_the_discovery_store_stays(account: Account, ecs: Any) -> None:
    create(ecs, "worker", "qwen3-8b-main")
    create(ecs, "discovery-0", None, count=1)
    scaling = account.client("application-autoscaling")
    scaling.register_scalable_target(
        ServiceNamespace="ecs",
        ResourceId=f"service/{PLATFORM}/worker",
        ScalableDimension="ecs:service:DesiredCount",
        MinCapacity=2,
        MaxCapacity=9,
    )
    said: list[str] = []
    end_services(account, PLATFORM, patience_seconds=1.0, say=said.append)
    assert (desired(ecs, "worker"), desired(ecs, "discovery-0")) == (0, 1)
    [target] = scaling.describe_scalable_targets(ServiceNamespace="ecs")["ScalableTargets"]
    assert (target["MinCapacity"], target["MaxCapacity"]) == (0, 0)
    assert all(target["SuspendedState"].values())
    assert said == ["1 services of models are set to no task; their streams end first"]


def test_a_platform_without_a_cluster_has_nothing_to_end(account: Account) -> None:
    end_services(account, PLATFORM, patience_seconds=1.0, say=pytest.fail)


def test_tasks_that_do_not_end_are_named(account: Account, ecs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create(ecs, "worker", "qwen3-8b-main")
    stuck = {"serviceName": "worker", "runningCount": 1, "desiredCount": 0}
    stuck["tags"] = [{"key": LABEL_TAGS["release"], "value": "qwen3-8b-main"}]
    module = "inference_blueprints.operate.ecs_cluster"
    monkeypatch.setattr(f"{module}.services", lambda *_: [stuck])
    said: list[str] = []
    end_services(account, PLATFORM, patience_seconds=-1.0, say=said.append)
    assert said[-1] == "services whose tasks did not end in time: worker"


def test_protected_hosts_of_the_platform_alone_may_go(account: Account) -> None:
    [subnet] = account.client("ec2").describe_subnets()["Subnets"][:1]
    client = account.client("autoscaling")
    client.create_launch_configuration(
        LaunchConfigurationName="hosts", ImageId="ami-12345678", InstanceType="g6e.2xlarge"
    )
    for name, platform in (("mine", PLATFORM), ("other", "chat-two")):
        client.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchConfigurationName="hosts",
            MinSize=1,
            MaxSize=2,
            DesiredCapacity=2,
            VPCZoneIdentifier=subnet["SubnetId"],
            NewInstancesProtectedFromScaleIn=True,
            Tags=[{"Key": PLATFORM_TAG, "Value": platform, "PropagateAtLaunch": True}],
        )
    unprotect_hosts(account, PLATFORM, tag=PLATFORM_TAG)
    groups = client.describe_auto_scaling_groups()["AutoScalingGroups"]
    protected = {
        each["AutoScalingGroupName"]: {host["ProtectedFromScaleIn"] for host in each["Instances"]}
        for each in groups
    }
    assert protected == {"mine": {False}, "other": {True}}
    assert {each["AutoScalingGroupName"]: each["MinSize"] for each in groups} == {"mine": 0, "other": 1}


class ChangingGroup:
    """A group whose second host starts, and whose third begins to end between the question and the call.

    Its refusal is the stand-in's, with AWS's words: guardian/riff-raff#510.
    """

    def __init__(self) -> None:
        self.states = {"i-1": "InService", "i-2": "Pending", "i-3": "InService", "i-4": "Terminating:Wait"}
        self.changed: list[str] = []

    def update_auto_scaling_group(self, **_: Any) -> None:
        """Accept any change."""

    def describe_auto_scaling_groups(self, **_: Any) -> dict[str, Any]:
        hosts = [
            {"InstanceId": name, "LifecycleState": state, "ProtectedFromScaleIn": name not in self.changed}
            for name, state in self.states.items()
        ]
        self.states |= {"i-2": "InService", "i-3": "Terminating"}
        return {"AutoScalingGroups": [{"Instances": hosts}]}

    def set_instance_protection(self, *, InstanceIds: list[str], **_: Any) -> None:  # noqa: N803
        for name in InstanceIds:
            if self.states[name] != "InService":
                error = INSTANCE_NOT_IN_SERVICE.error(instance=name)
                raise ClientError(
                    {"Error": {"Code": error.code, "Message": str(error)}}, "SetInstanceProtection"
                )
        self.changed += InstanceIds


def test_hosts_that_start_or_end_meanwhile_do_not_stop_a_removal(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if one host that ends fails the call for all, or a host that starts stays protected."""
    group = ChangingGroup()
    monkeypatch.setattr(account, "client", lambda _: group)
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    unprotect_groups(account, ["hosts"])
    assert sorted(group.changed) == ["i-1", "i-2"]
    assert len(waits) == 1


def test_only_old_revisions_of_the_platform_that_nothing_uses_are_deleted(account: Account, ecs: Any) -> None:
    mine = [register(ecs, "chat-worker") for _ in range(5)]
    for arn in mine[:4]:
        ecs.deregister_task_definition(taskDefinition=arn)
    other = [register(ecs, "chat-two-worker", platform="chat-two") for _ in range(4)]
    for arn in other:
        ecs.deregister_task_definition(taskDefinition=arn)
    # Revisions 1 to 4 are inactive: the newest stay.
    found = old_revisions(account, PLATFORM, tag=PLATFORM_TAG)
    assert sorted(found) == sorted(mine[: 4 - KEPT_REVISIONS])


def test_a_revision_that_a_service_deploys_stays(account: Account, ecs: Any) -> None:
    create(ecs, "worker", "qwen3-8b-main")
    [first] = ecs.list_task_definitions(familyPrefix="chat-worker")["taskDefinitionArns"]
    later = [register(ecs, "chat-worker") for _ in range(3)]
    for arn in (first, *later):
        ecs.deregister_task_definition(taskDefinition=arn)
    assert old_revisions(account, PLATFORM, tag=PLATFORM_TAG) == [later[0]][: len(later) - KEPT_REVISIONS]


def test_a_revision_that_aws_refuses_is_not_reported_as_deleted(
    account: Account, ecs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Client:
        def delete_task_definitions(self, **request: Any) -> dict[str, Any]:
            return {"failures": [{"arn": request["taskDefinitions"][0], "reason": "in use"}]}

    monkeypatch.setattr(type(account), "client", lambda *_: Client())
    assert delete_revisions(account, ["a/one:1", "a/two:1"]) == ["two:1"]
