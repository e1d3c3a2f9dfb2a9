"""Topics of Kafka that have other partitions than before, or are declared by another streaming job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange, Template
from inference_blueprints.operate.check_results import CheckResult

_PARTITIONS_CHECK = "topics"
_MOVES_CHECK = "moved topics"
_TOPIC = "AWS::MSK::Topic"
_PARTITIONS = "PartitionCount"


def topic_partitions(change: PlatformChange) -> Iterator[Finding]:
    """Keep the partitions of a topic: Kafka adds some, but never takes any away. Tell who adds some.

    Source: Apache Kafka, "Modifying topics": "Kafka does not currently support reducing the number of
    partitions for a topic", and a larger number shuffles which partition has the events of a key.
    """
    for stack, logical_id, old, new in change.changed_resources():
        if new["Type"] != _TOPIC:
            continue
        before, after = old["Properties"].get(_PARTITIONS), new["Properties"].get(_PARTITIONS)
        if not isinstance(before, int) or not isinstance(after, int) or after == before:
            continue
        if after < before:
            message = f"{logical_id} keeps its {before} partitions; a topic cannot have fewer"
            yield Held(_PARTITIONS_CHECK, stack, message, partial(_keep_partitions, logical_id, before))
        else:
            message = (
                f"{stack}: {logical_id} grows from {before} to {after} partitions; the events of a key move "
                "to another partition and may be read out of their order once. "
                f"'events.partitions: {before}' keeps the topic"
            )
            yield CheckResult(_PARTITIONS_CHECK, "warning", message)


def moved_topics(change: PlatformChange) -> Iterator[Finding]:
    """Keep the logical ID of a topic whose first job has gone, because the next job declares it now.

    CloudFormation would create the topic before it deletes the old one, and a cluster has one topic of a
    name: `ClusterArn` and `TopicName` can only be given at creation (Template Reference, AWS::MSK::Topic).
    No logical ID could avoid this: until a second job reads it, a topic has that of its job.
    """
    for stack, logical_id, old_id in topic_moves(change):
        name = change.new[stack]["Resources"][logical_id]["Properties"]["TopicName"]
        if old_id in change.new[stack]["Resources"]:
            message = (
                f"{stack}: the topic {name} moves from {old_id} to {logical_id}, and another topic takes its "
                "place; change the topics of one job at a time"
            )
            yield CheckResult(_MOVES_CHECK, "error", message)
            continue
        before = change.deployed[stack]["Resources"][old_id]["Properties"].get(_PARTITIONS)
        message = f"the topic {name} stays {old_id}; a new one of the same name would be refused"
        yield Held(_MOVES_CHECK, stack, message, partial(_rename, logical_id, old_id, before))


def topic_moves(change: PlatformChange) -> Iterator[tuple[str, str, str]]:
    """Yield stack, new and deployed logical ID of each topic that has another one than it had."""
    for stack, template in change.deployed.items():
        deployed = {name: logical_id for logical_id, name in _topics(template).items()}
        for logical_id, name in _topics(change.new.get(stack, {})).items():
            old_id = deployed.get(name, logical_id)
            if old_id != logical_id:
                yield stack, logical_id, old_id


def _topics(template: Template) -> dict[str, tuple[str, ...]]:
    """Return cluster and name of each topic by its logical ID."""
    resources: Mapping[str, Any] = template.get("Resources", {})
    return {
        logical_id: tuple(json.dumps(each["Properties"].get(name)) for name in ("ClusterArn", "TopicName"))
        for logical_id, each in resources.items()
        if each["Type"] == _TOPIC
    }


def _keep_partitions(logical_id: str, partitions: int, template: dict[str, Any]) -> None:
    template["Resources"][logical_id]["Properties"][_PARTITIONS] = partitions


def _rename(logical_id: str, old_id: str, partitions: object, template: dict[str, Any]) -> None:
    """Give a topic and all that refers to it its deployed logical ID. It keeps more partitions, too."""
    resources = template["Resources"]
    topic = resources[old_id] = resources.pop(logical_id)
    after = topic["Properties"][_PARTITIONS]
    if isinstance(partitions, int) and isinstance(after, int):
        topic["Properties"][_PARTITIONS] = max(partitions, after)
    for resource in resources.values():
        for key, value in resource.items():
            resource[key] = _with_id(value, logical_id, old_id, key)


def _with_id(value: Any, logical_id: str, old_id: str, key: str = "") -> Any:
    """Return a value that names the other logical ID in its references."""
    if isinstance(value, str):
        return old_id if value == logical_id and key in ("DependsOn", "Ref", "Fn::GetAtt") else value
    if isinstance(value, list):
        return [_with_id(each, logical_id, old_id, key) for each in value]
    if isinstance(value, dict):
        return {name: _with_id(each, logical_id, old_id, name) for name, each in value.items()}
    return value
