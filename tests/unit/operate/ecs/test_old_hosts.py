"""Hosts that leave the blueprint: they stay while services use them, and go when no task is on them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes import ecs_host_checks as module
from inference_blueprints.operate.changes.ecs_host_checks import old_hosts
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange, Prepared
from inference_blueprints.operate.cloudformation.deployed_stacks import DeployedStack

STACK = "try-Capacity"
SUBNET = {"Fn::GetStackOutput": {"StackName": "try-Network", "OutputName": "Subnet", "Region": "us-west-2"}}


def provider(name: str, **properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::ECS::CapacityProvider", "Properties": {"Name": name, **properties}}


def associations(*names: str) -> dict[str, Any]:
    return {
        "Type": "AWS::ECS::ClusterCapacityProviderAssociations",
        "Properties": {"Cluster": "try", "CapacityProviders": ["FARGATE", *names]},
    }


GROUP = {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": {"VPCZoneIdentifier": [SUBNET]}}
OLD_GROUP = provider("pool-try-l40s", AutoScalingGroupProvider={"AutoScalingGroupArn": {"Ref": "Group"}})
NEW = {"New": provider("managed-try-l40s", ClusterName="try"), "Providers": associations()}


class FakeAccount:
    """Answers what the check asks."""

    def __init__(self, used: str, *, on: str = "") -> None:
        self.service = {
            "serviceName": "main-worker",
            "status": "ACTIVE",
            "capacityProviderStrategy": [{"capacityProvider": used}],
        }
        self.tasks = [{"taskArn": "task/1", "lastStatus": "RUNNING", "capacityProviderName": on}]
        self.unprotected: list[str] = []

    def client(self, _: str) -> Any:
        pages = {
            "list_services": [{"serviceArns": ["main-worker"]}],
            "list_tasks": [{"taskArns": ["task/1"]}],
            "list_stack_resources": [
                {"StackResourceSummaries": [{"LogicalResourceId": "Group", "PhysicalResourceId": "group-1"}]}
            ],
        }
        return SimpleNamespace(
            get_paginator=lambda name: SimpleNamespace(paginate=lambda **_: pages[name]),
            describe_clusters=lambda **_: {"clusters": [{"status": "ACTIVE"}]},
            describe_services=lambda **_: {"services": [self.service]},
            describe_tasks=lambda **_: {"tasks": self.tasks},
            describe_stacks=lambda **_: {
                "Stacks": [{"Outputs": [{"OutputKey": "Subnet", "OutputValue": "subnet-1"}]}]
            },
            update_auto_scaling_group=lambda **words: self.unprotected.append(words["AutoScalingGroupName"]),
            describe_auto_scaling_groups=lambda **_: {"AutoScalingGroups": []},
        )


def change(account: FakeAccount, deployed: dict[str, Any], new: dict[str, Any]) -> PlatformChange:
    return PlatformChange(
        cast("Account", account),
        {STACK: DeployedStack(STACK, STACK, "UPDATE_COMPLETE", 6)},
        {STACK: {"Resources": deployed}},
        {STACK: {"Resources": new}},
    )


def test_a_group_that_a_service_uses_stays_in_the_template_and_in_the_list() -> None:
    """It turns red if the first step drops a provider in use: ECS refuses the list, and the stack fails."""
    deployed = {"Old": OLD_GROUP, "Group": GROUP, "Providers": associations("pool-try-l40s")}
    [held] = old_hosts(change(FakeAccount("pool-try-l40s"), deployed, NEW))
    assert isinstance(held, Held)
    assert "pool-try-l40s and their hosts stay until services have moved: main-worker" in held.message
    template: dict[str, Any] = {"Resources": {**NEW, "Providers": associations()}}
    held.edit(template)
    kept = template["Resources"]
    assert kept["Old"] == OLD_GROUP
    # The network stack drops an output that nothing reads any more, and its value stays.
    assert kept["Group"]["Properties"]["VPCZoneIdentifier"] == ["subnet-1"]
    assert kept["Providers"]["Properties"]["CapacityProviders"] == ["FARGATE", "pool-try-l40s"]
    assert kept["Providers"]["DependsOn"] == ["Old"]


def test_managed_instances_that_stay_are_not_in_the_list() -> None:
    deployed = {"Old": provider("managed-try-l40s-spot", ClusterName="try"), "Providers": associations()}
    [held] = old_hosts(change(FakeAccount("managed-try-l40s-spot"), deployed, NEW))
    assert isinstance(held, Held)
    template: dict[str, Any] = {"Resources": {**NEW, "Providers": associations()}}
    held.edit(template)
    assert template["Resources"]["Providers"] == associations()
    assert "Old" in template["Resources"]


def test_hosts_go_after_their_last_task_and_without_protection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It turns red if ECS refuses to drop a provider with tasks, or CloudFormation waits for a group."""
    account = FakeAccount("managed-try-l40s", on="pool-try-l40s")
    deployed = {"Old": OLD_GROUP, "Group": GROUP, "Providers": associations("pool-try-l40s")}
    [found] = old_hosts(change(account, deployed, NEW))
    assert isinstance(found, Prepared)
    waits: list[float] = []

    def end_tasks(seconds: float) -> None:
        assert account.unprotected == []
        waits.append(seconds)
        account.tasks[0]["lastStatus"] = "STOPPED"

    monkeypatch.setattr(f"{module.__name__}.time.sleep", end_tasks)
    found.act()
    assert (len(waits), account.unprotected) == (1, ["group-1"])


def test_a_change_without_hosts_that_leave_finds_nothing() -> None:
    assert list(old_hosts(change(FakeAccount("managed-try-l40s"), NEW, NEW))) == []
