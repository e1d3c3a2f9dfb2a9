"""What a change does to data: resources, objects and topics that would be lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from inference_blueprints.operate.aws.account import readable_errors
from inference_blueprints.operate.changes.platform_change import (
    Finding,
    Held,
    PlatformChange,
    Template,
    has_reference,
)
from inference_blueprints.operate.check_results import CheckResult
from inference_catalog.cloudformation_types import cloudformation_types, value_at

# Properties that cannot change: CloudFormation would make another resource, and delete the old one.

REPLACED_RESOURCES_CHECK = "replaced resources"
#: Types that hold data which nothing else has.
DATA_TYPES = frozenset(
    {
        "AWS::DynamoDB::GlobalTable",
        "AWS::EFS::FileSystem",
        "AWS::ElastiCache::ServerlessCache",
        "AWS::KMS::Key",
        "AWS::MSK::Cluster",
        "AWS::MSK::Topic",
        "AWS::S3::Bucket",
    }
)
#: Policies that keep a resource which leaves its stack (CloudFormation Template Reference, DeletionPolicy).
KEEPING = frozenset({"Retain", "RetainExceptOnCreate", "Snapshot"})


def replaced_resources(change: PlatformChange) -> Iterator[Finding]:
    """Find resources that CloudFormation refuses to replace, and data that would be lost.

    It refuses if the template names the resource, because two would have the name ("CloudFormation cannot
    update a stack when a custom-named resource requires replacing"). Values that CloudFormation computes are
    not compared.
    """
    for stack, logical_id, old, new in change.changed_resources():
        known = cloudformation_types().get(new["Type"])
        if known is None:
            continue
        before, after = old.get("Properties", {}), new.get("Properties", {})
        paths = [
            path
            for path in known.replaced_by(before, after)
            if not has_reference(value_at(before, path)) and not has_reference(value_at(after, path))
        ]
        if not paths:
            continue
        what = f"{stack}: {new['Type']} {logical_id}: {', '.join(paths)} cannot change"
        names = [after.get(name) for name in known.names]
        if names and None not in names and names == [before.get(name) for name in known.names]:
            message = (
                f"{what} while its name {names[-1]} stays; change it back, or remove it in one deployment"
            )
            yield CheckResult(REPLACED_RESOURCES_CHECK, "error", f"{message} and add it in the next")
        elif new["Type"] in DATA_TYPES and new.get("UpdateReplacePolicy") not in KEEPING:
            yield CheckResult(
                REPLACED_RESOURCES_CHECK, "error", f"{what}: its data would be deleted; change it back"
            )
        elif new["Type"] == "AWS::Logs::LogGroup" and new.get("UpdateReplacePolicy") not in KEEPING:
            yield CheckResult(
                REPLACED_RESOURCES_CHECK,
                "warning",
                f"{what}: its events are deleted, new ones go to a new group",
            )


# Lifecycle rules that would delete objects which exist already.

EXPIRED_OBJECTS_CHECK = "expirations"
CONSENT = "--expire-existing"
_BUCKET = "AWS::S3::Bucket"


def expired_objects(change: PlatformChange) -> Iterator[Finding]:
    """Keep the deployed expiration of objects that were written without the new one, until the user agrees.

    A rule counts for objects that were there before it, too (S3 User Guide, "Expiring objects").
    """
    if change.expires_existing:
        return
    for stack, logical_id, old, new in change.changed_resources():
        if new["Type"] != _BUCKET:
            continue
        deployed = _rules(old)
        sooner = [
            (prefix, days)
            for prefix, days in sorted(_rules(new).items())
            if not _covered(prefix, days, deployed)
        ]
        bucket = change.physical_ids(stack).get(logical_id) if sooner else None
        reached = {prefix: days for prefix, days in sooner if bucket and _has_objects(change, bucket, prefix)}
        if reached:
            rules = ", ".join(f"{prefix or 'all'} after {days} days" for prefix, days in reached.items())
            message = f"objects in {bucket} would be deleted ({rules}); deploy with {CONSENT} to agree"
            yield Held(EXPIRED_OBJECTS_CHECK, stack, message, partial(_keep, logical_id, reached, deployed))


def _rules(bucket: Mapping[str, Any]) -> dict[str, int]:
    """Return the days after which current objects expire, by prefix."""
    rules = bucket.get("Properties", {}).get("LifecycleConfiguration", {}).get("Rules", ())
    return {
        rule.get("Prefix", ""): int(rule["ExpirationInDays"])
        for rule in rules
        if rule.get("Status") == "Enabled" and "ExpirationInDays" in rule
    }


def _covered(prefix: str, days: int, deployed: Mapping[str, int]) -> bool:
    """Whether the objects expire as soon by a deployed rule."""
    return any(prefix.startswith(each) and limit <= days for each, limit in deployed.items())


def _has_objects(change: PlatformChange, bucket: str, prefix: str) -> bool:
    with readable_errors():
        answer = change.account.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
    return bool(answer["KeyCount"])


def _keep(
    logical_id: str, reached: Mapping[str, int], deployed: Mapping[str, int], template: dict[str, Any]
) -> None:
    """Take out rules, or give them the days that are deployed."""
    configuration = template["Resources"][logical_id]["Properties"]["LifecycleConfiguration"]
    kept = []
    for rule in configuration["Rules"]:
        prefix = rule.get("Prefix", "")
        if "ExpirationInDays" not in rule or prefix not in reached:
            kept.append(rule)
        elif prefix in deployed:
            kept.append({**rule, "ExpirationInDays": deployed[prefix]})
    configuration["Rules"] = kept


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


# Resources with data that leave their stack.

REMOVED_DATA_CHECK = "removed data"


def removed_data(change: PlatformChange) -> Iterator[Finding]:
    """Name data that is deleted because the blueprint does not ask for it any more.

    CloudFormation applies the policy of the deployed template (Template Reference, DeletionPolicy).
    """
    stays = {(stack, old_id) for stack, _, old_id in topic_moves(change)}
    for stack, logical_id, old in change.dropped_resources():
        if (stack, logical_id) in stays:
            continue
        if old["Type"] in DATA_TYPES and old.get("DeletionPolicy") not in KEEPING:
            message = f"{stack}: {old['Type']} {logical_id} is deleted with its data"
            yield CheckResult(REMOVED_DATA_CHECK, "warning", message)
