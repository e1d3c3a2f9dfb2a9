"""Every check of a change, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inference_blueprints.operate.changes.data_checks import (
    expired_objects,
    moved_topics,
    removed_data,
    replaced_resources,
    topic_partitions,
)
from inference_blueprints.operate.changes.ecs_host_checks import kept_floors, lost_hosts, old_hosts
from inference_blueprints.operate.changes.front_door_checks import moved_days, switched_host_names
from inference_blueprints.operate.changes.job_checks import denied_roles, resized_jobs, running_jobs
from inference_blueprints.operate.changes.platform_change import Finding, PlatformChange
from inference_blueprints.operate.changes.process_changes import changed_processes
from inference_blueprints.operate.changes.stack_checks import (
    existing_log_groups,
    failed_stacks,
    moved_releases,
    moved_resources,
)

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
    switched_host_names,
    moved_days,
    changed_processes,
)


def check_change(change: PlatformChange) -> list[Finding]:
    """Return everything that is found.

    Raises UserError if AWS refuses a request: what cannot be compared is not deployed.
    """
    return [finding for check in CHECKS for finding in check(change)]
