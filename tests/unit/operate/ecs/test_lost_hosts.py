"""Hosts that never joined their cluster: the next deployment ends them, and only them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from inference_blueprints.operate.changes.ecs_host_checks import lost_hosts
from inference_blueprints.operate.changes.platform_change import Prepared
from tests.unit.operate.ecs.test_old_hosts import GROUP, STACK, FakeAccount, associations, change

#: Age of each instance of the group in minutes, and whether it is a container instance.
INSTANCES = {"i-joined": (600, True), "i-lost": (600, False), "i-boots": (10, False)}
#: The group still lists it, and EC2 no longer knows it: it would refuse a request with its identifier.
ENDED = "i-ended"


class FakeHosts(FakeAccount):
    """Also answers about a group with hosts."""

    def __init__(self, *, minimum: int) -> None:
        super().__init__("pool-try-l40s")
        self.minimum = minimum
        self.ended: list[tuple[str, bool]] = []

    def client(self, _: str) -> Any:
        now = datetime.now(UTC)
        joined = [each for each, (_, is_joined) in INSTANCES.items() if is_joined]
        group = {
            "DesiredCapacity": 3,
            "MinSize": self.minimum,
            "Instances": [
                {"InstanceId": each, "LifecycleState": "InService"} for each in (*INSTANCES, ENDED)
            ],
        }
        pages = {
            "list_stack_resources": [
                {"StackResourceSummaries": [{"LogicalResourceId": "Group", "PhysicalResourceId": "group-1"}]}
            ],
            "list_container_instances": [{"containerInstanceArns": joined}],
            "describe_auto_scaling_groups": [{"AutoScalingGroups": [group]}],
        }
        return SimpleNamespace(
            get_paginator=lambda name: SimpleNamespace(paginate=lambda **_: pages[name]),
            describe_clusters=lambda **_: {"clusters": [{"status": "ACTIVE"}]},
            describe_container_instances=lambda **words: {
                "containerInstances": [{"ec2InstanceId": each} for each in words["containerInstances"]]
            },
            describe_instances=lambda **words: {
                "Reservations": [
                    {
                        "Instances": [
                            {"InstanceId": each, "LaunchTime": now - timedelta(minutes=INSTANCES[each][0])}
                            for each in words["Filters"][0]["Values"]
                            if each != ENDED
                        ]
                    }
                ]
            },
            describe_auto_scaling_instances=lambda **_: {
                "AutoScalingInstances": [{"AutoScalingGroupName": "group-1"}]
            },
            describe_auto_scaling_groups=lambda **_: {"AutoScalingGroups": [group]},
            terminate_instance_in_auto_scaling_group=lambda **words: self.ended.append(
                (words["InstanceId"], words["ShouldDecrementDesiredCapacity"])
            ),
        )


def test_the_checks_of_a_deployment_share_what_they_ask() -> None:
    """It turns red if each check of hosts asks for the cluster and the stack again."""
    account = FakeHosts(minimum=0)
    asked: list[str] = []
    client = account.client

    def counted(service: str) -> Any:
        asked.append(service)
        return client(service)

    account.client = counted  # type: ignore[assignment, method-assign]
    found = change(cast("Any", account), {"Group": GROUP, "Providers": associations("a")}, {"Group": GROUP})
    assert len(list(lost_hosts(found))) == 1
    before = len(asked)
    assert (found.ecs_cluster(STACK), found.auto_scaling_groups(STACK, {"Group": GROUP})) == (
        "try",
        ["group-1"],
    )
    assert len(asked) == before


@pytest.mark.parametrize(("minimum", "smaller"), [(0, True), (3, False)])
def test_only_hosts_that_had_time_to_join_end(minimum: int, *, smaller: bool) -> None:
    """It turns red if hosts without an agent stay and fill their group, or a host that serves ends."""
    account = FakeHosts(minimum=minimum)
    deployed = {"Group": GROUP, "Providers": associations("pool-try-l40s")}
    [found] = lost_hosts(change(cast("Any", account), deployed, deployed))
    assert isinstance(found, Prepared)
    assert account.ended == []
    found.act()
    assert account.ended == [("i-lost", smaller)]
