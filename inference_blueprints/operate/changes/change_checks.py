"""Every check of a change, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inference_blueprints.operate.changes.denied_roles import denied_roles
from inference_blueprints.operate.changes.existing_log_groups import existing_log_groups
from inference_blueprints.operate.changes.expired_objects import expired_objects
from inference_blueprints.operate.changes.failed_stacks import failed_stacks
from inference_blueprints.operate.changes.findings import Finding
from inference_blueprints.operate.changes.kafka_topics import moved_topics, topic_partitions
from inference_blueprints.operate.changes.kept_floors import kept_floors
from inference_blueprints.operate.changes.lost_hosts import lost_hosts
from inference_blueprints.operate.changes.moved_releases import moved_releases
from inference_blueprints.operate.changes.moved_resources import moved_resources
from inference_blueprints.operate.changes.old_hosts import old_hosts
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.changes.removed_data import removed_data
from inference_blueprints.operate.changes.replaced_resources import replaced_resources
from inference_blueprints.operate.changes.resized_jobs import resized_jobs
from inference_blueprints.operate.changes.running_jobs import running_jobs

#: Checks in the order of the output. Later edits of a template see those of earlier ones.
CHECKS: tuple[Callable[[PlatformChange], Iterator[Finding]], ...] = (
    failed_stacks,
    replaced_resources,
    moved_resources,
    removed_data,
    existing_log_groups,
    moved_releases,
    old_hosts,
    lost_hosts,
    running_jobs,
    denied_roles,
    expired_objects,
    topic_partitions,
    moved_topics,
    resized_jobs,
    kept_floors,
)


def check_change(change: PlatformChange) -> list[Finding]:
    """Return everything that is found.

    Raises UserError if AWS refuses a request: what cannot be compared is not deployed.
    """
    return [finding for check in CHECKS for finding in check(change)]
