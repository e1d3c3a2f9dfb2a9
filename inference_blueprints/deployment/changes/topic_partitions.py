"""Topics with fewer partitions than they have."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from inference_blueprints.deployment.changes.findings import Finding, Held
from inference_blueprints.deployment.changes.platform_change import PlatformChange

CHECK = "topics"
_TOPIC = "AWS::MSK::Topic"
_PARTITIONS = "PartitionCount"


def topic_partitions(change: PlatformChange) -> Iterator[Finding]:
    """Keep the partitions of a topic: Kafka adds some, but never takes any away.

    Source: Apache Kafka, "Modifying topics": "Kafka does not currently support reducing the number of
    partitions for a topic".
    """
    for stack, logical_id, old, new in change.changed_resources():
        if new["Type"] != _TOPIC:
            continue
        before, after = old["Properties"].get(_PARTITIONS), new["Properties"].get(_PARTITIONS)
        if isinstance(before, int) and isinstance(after, int) and after < before:
            message = f"{logical_id} keeps its {before} partitions; a topic cannot have fewer"
            yield Held(CHECK, stack, message, partial(_keep, logical_id, before))


def _keep(logical_id: str, partitions: int, template: dict[str, Any]) -> None:
    template["Resources"][logical_id]["Properties"][_PARTITIONS] = partitions
