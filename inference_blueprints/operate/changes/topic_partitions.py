"""Topics with other numbers of partitions than they have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from inference_blueprints.operate.changes.findings import Finding, Held
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.check_results import CheckResult

CHECK = "topics"
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
            yield Held(CHECK, stack, message, partial(_keep, logical_id, before))
        else:
            message = (
                f"{stack}: {logical_id} grows from {before} to {after} partitions; the events of a key move "
                "to another partition and may be read out of their order once. "
                f"'events.partitions: {before}' keeps the topic"
            )
            yield CheckResult(CHECK, "warning", message)


def _keep(logical_id: str, partitions: int, template: dict[str, Any]) -> None:
    template["Resources"][logical_id]["Properties"][_PARTITIONS] = partitions
