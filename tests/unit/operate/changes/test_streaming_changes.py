"""A deployment tells which streaming jobs and topics get another size, and never makes a topic smaller."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.data_checks import moved_topics, removed_data, topic_partitions
from inference_blueprints.operate.changes.job_checks import resized_jobs
from inference_blueprints.operate.changes.platform_change import Finding, Held, PlatformChange
from inference_local.emulator.refusals import AwsApiError
from inference_local.emulator.resource_handlers.registry import ResourceRequest
from inference_local.emulator.resource_handlers.stubs import STUBS, StubHandler

STACK = "try-Streaming"
TOPIC = {"ClusterArn": "arn", "PartitionCount": 12, "ReplicationFactor": 3, "TopicName": "clicks"}
SIZE = {"ConfigurationType": "CUSTOM", "Parallelism": 10, "ParallelismPerKPU": 1}


def change(*, partitions: int = 12, **size: int) -> PlatformChange:
    """Return a change of the number of partitions, and of the size of the job."""
    before = {
        "Events": {"Type": "AWS::MSK::Topic", "Properties": TOPIC},
        "Flink": {
            "Type": "AWS::KinesisAnalyticsV2::Application",
            "Properties": {
                "ApplicationName": "try-shopper",
                "ApplicationConfiguration": {
                    "FlinkApplicationConfiguration": {"ParallelismConfiguration": SIZE}
                },
            },
        },
    }
    after: dict[str, Any] = copy.deepcopy(before)
    after["Events"]["Properties"]["PartitionCount"] = partitions
    flink = after["Flink"]["Properties"]["ApplicationConfiguration"]["FlinkApplicationConfiguration"]
    flink["ParallelismConfiguration"].update(size)
    # No check of streaming asks the account.
    account = cast("Account", None)
    return PlatformChange(account, {}, {STACK: {"Resources": before}}, {STACK: {"Resources": after}})


def words(found: list[Finding]) -> list[str]:
    return [str(each) for each in found]


@pytest.mark.parametrize(
    ("size", "kpus"), [({"Parallelism": 13}, 13), ({"Parallelism": 8}, 8), ({"ParallelismPerKPU": 2}, 5)]
)
def test_a_job_that_gets_another_size_is_named(size: dict[str, int], kpus: int) -> None:
    assert words(list(resized_jobs(change(**size)))) == [
        f"warning  streaming jobs: {STACK}: try-shopper restarts from a snapshot "
        f"with {kpus} KPUs instead of 10"
    ]


def test_a_job_and_a_topic_that_stay_are_not_named() -> None:
    assert list(resized_jobs(change())) == list(topic_partitions(change())) == []


def test_a_topic_that_grows_is_named_with_what_keeps_it() -> None:
    [said] = words(list(topic_partitions(change(partitions=16))))
    assert said.startswith("warning  topics: try-Streaming: Events grows from 12 to 16 partitions")
    assert "'events.partitions: 12' keeps the topic" in said


def test_a_topic_that_would_shrink_is_kept() -> None:
    [held] = topic_partitions(change(partitions=6))
    assert isinstance(held, Held)
    template = {"Resources": {"Events": {"Properties": {**TOPIC, "PartitionCount": 6}}}}
    held.edit(template)
    assert template["Resources"]["Events"]["Properties"]["PartitionCount"] == 12


def moved(new_partitions: int, **others: str) -> PlatformChange:
    """Return a change in which the job `b` declares a topic that the job `a` declared."""

    def topic(name: str, partitions: int = 12) -> dict[str, Any]:
        return {
            "Type": "AWS::MSK::Topic",
            "Properties": {**TOPIC, "TopicName": name, "PartitionCount": partitions},
        }

    before = {"AEvents": topic("clicks"), "Start": {"Type": "Custom::Start", "DependsOn": ["AEvents"]}}
    after = {
        "BEvents": topic("clicks", new_partitions),
        "Start": {"Type": "Custom::Start", "DependsOn": ["BEvents"], "Properties": {"Said": "BEvents"}},
        "Told": {"Type": "Custom::Told", "Properties": {"Arn": {"Fn::GetAtt": ["BEvents", "TopicArn"]}}},
        **{logical_id: topic(name) for logical_id, name in others.items()},
    }
    account = cast("Account", None)
    return PlatformChange(account, {}, {STACK: {"Resources": before}}, {STACK: {"Resources": after}})


@pytest.mark.parametrize(("asked", "kept"), [(6, 12), (16, 16)])
def test_a_topic_stays_the_same_resource_when_its_first_job_leaves(asked: int, kept: int) -> None:
    """Red if CloudFormation would create a topic of a name that exists, or take partitions away."""
    change = moved(asked)
    [held] = moved_topics(change)
    assert isinstance(held, Held)
    template = copy.deepcopy(cast("dict[str, Any]", change.new[STACK]))
    held.edit(template)
    found = template["Resources"]
    assert found["AEvents"]["Properties"]["PartitionCount"] == kept
    assert "BEvents" not in found
    assert found["Start"] == {
        "Type": "Custom::Start",
        "DependsOn": ["AEvents"],
        "Properties": {"Said": "BEvents"},
    }
    assert found["Told"]["Properties"]["Arn"] == {"Fn::GetAtt": ["AEvents", "TopicArn"]}
    assert list(removed_data(change)) == [], "nothing is deleted with its data"


def test_jobs_that_swap_topics_are_refused() -> None:
    [said] = words(list(moved_topics(moved(12, AEvents="carts"))))
    assert said.startswith(
        "error    moved topics: try-Streaming: the topic clicks moves from AEvents to BEvents"
    )


def test_the_emulator_refuses_fewer_partitions_as_kafka_does() -> None:
    handler = StubHandler("AWS::MSK::Topic", STUBS["AWS::MSK::Topic"])
    made = handler.create(ResourceRequest(STACK, "Events", TOPIC))
    more = ResourceRequest(STACK, "Events", {**TOPIC, "PartitionCount": 13}, made[0], TOPIC)
    assert handler.update(more) == made
    fewer = ResourceRequest(STACK, "Events", {**TOPIC, "PartitionCount": 6}, made[0], TOPIC)
    with pytest.raises(AwsApiError, match="currently has 12 partitions, 6 would not be an increase"):
        handler.update(fewer)
