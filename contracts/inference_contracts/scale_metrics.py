"""How the load of elastic workers reaches Application Auto Scaling: metrics, and what their publisher reads.

A program beside the platform's Prometheus evaluates each trigger and writes its value in CloudWatch's
embedded format. A target tracking policy per trigger follows the metric.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Literal

from inference_contracts.metric_labels import SERVING_JOB

# --- Environment variables of the program. ---

#: Name or ARN of the ECS cluster.
CLUSTER: Final = "TASK_TARGETS_CLUSTER"
#: Name of the platform. Tasks of another platform are no targets.
PLATFORM: Final = "TASK_TARGETS_PLATFORM"
#: Published roles: `PublishedRole` as JSON, see `roles_json`.
ROLES: Final = "TASK_TARGETS_ROLES"
#: Files to write before anything else, for Prometheus in the same task: see `packed_files`. Optional.
FILES: Final = "TASK_TARGETS_FILES"
#: Address of Prometheus. Optional.
PROMETHEUS: Final = "TASK_TARGETS_PROMETHEUS"
DEFAULT_PROMETHEUS: Final = "http://127.0.0.1:9090"

#: Port on loopback where Prometheus asks for its targets, and the path of a job.
PORT: Final = 9099
#: Path that answers as soon as the files are written.
READY_PATH: Final = "/ready"


def targets_path(job: str = SERVING_JOB) -> str:
    """Return the path with the targets of a Prometheus job."""
    return f"/targets/{job}"


# --- Metrics. ---

METRIC_NAMESPACE: Final = "InferenceBlueprints/Scaling"
#: The load of a role, as `PublishedTrigger.metric_type` says. Its dimensions are `METRIC_DIMENSIONS`.
LOAD: Final = "Load"
METRIC_DIMENSIONS: Final = ("platform", "release", "role", "trigger")
#: Triggers that Prometheus did not answer, by platform. Nothing is published for them, so workers stay.
UNREAD: Final = "TriggersUnread"
#: Tasks of the platform that serve, but have no address of metrics, by platform.
UNTAGGED: Final = "TasksWithoutMetrics"
UNREAD_DIMENSIONS: Final = ("platform",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTrigger:
    """A load to publish."""

    name: str
    """Name within the role: the dimension ``trigger``."""
    query: str
    """PromQL expression with one number for the whole role."""
    metric_type: Literal["AverageValue", "Value"]
    """``AverageValue``: the number is divided by the tasks that the service wants. ``Value``: it is taken as
    it is, less the share of tasks that do not serve yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRole:
    """An elastic role whose loads are published."""

    release: str
    """Labels of its series."""
    role: str
    """Values of the tags of its service."""
    triggers: tuple[PublishedTrigger, ...]
    """Its loads."""


def roles_json(roles: Sequence[PublishedRole]) -> str:
    """Return the value of the variable `ROLES`.

    roles: The elastic roles of the platform.
    """
    return json.dumps([asdict(role) for role in roles], sort_keys=True)


def read_roles(text: str) -> tuple[PublishedRole, ...]:
    """Return the roles of what `roles_json` returned. Raises ValueError if it is something else."""
    try:
        return tuple(
            PublishedRole(
                release=role["release"],
                role=role["role"],
                triggers=tuple(PublishedTrigger(**each) for each in role["triggers"]),
            )
            for role in json.loads(text)
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{ROLES} cannot be read: {error!r}") from error


def load_dimensions(platform: str, role: PublishedRole, trigger: PublishedTrigger) -> dict[str, str]:
    """Return the dimensions of a trigger's metric.

    role, trigger: The load.
    """
    values = (platform, role.release, role.role, trigger.name)
    return dict(zip(METRIC_DIMENSIONS, values, strict=True))
