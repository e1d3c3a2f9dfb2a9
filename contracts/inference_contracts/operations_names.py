"""Names that the controllers of a platform share with the stack ``<name>-Operations``.

The controllers are GPU health (`health_names`) and the capacity shift. Names carry a cell, which is one
cluster of a platform, so that a platform can have several clusters later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from inference_contracts.records import dataclass
from inference_contracts.shift_names import SHIFT_CONTROLLER

# Runbooks of the alarms of the Operations stack, as paths below the repository.

HARDWARE_FAULTS_RUNBOOK: Final = "docs/runbooks/hardware-faults.md"
CONTROLLER_FAILING_RUNBOOK: Final = "docs/runbooks/controller-failing.md"
CONTROLLER_STOPPED_RUNBOOK: Final = "docs/runbooks/controller-stopped.md"
EVENTS_LOST_RUNBOOK: Final = "docs/runbooks/controller-events-lost.md"
REPLACEMENT_STUCK_RUNBOOK: Final = "docs/runbooks/replacement-stuck.md"
REPLACEMENTS_HELD_RUNBOOK: Final = "docs/runbooks/replacements-held.md"
HEALTH_UNMEASURED_RUNBOOK: Final = "docs/runbooks/health-unmeasured.md"
SHIFT_INCOMPLETE_RUNBOOK: Final = "docs/runbooks/shift-incomplete.md"
SHIFT_UNMEASURED_RUNBOOK: Final = "docs/runbooks/shift-unmeasured.md"
OPERATIONS_RUNBOOKS: Final = (
    HARDWARE_FAULTS_RUNBOOK,
    CONTROLLER_FAILING_RUNBOOK,
    CONTROLLER_STOPPED_RUNBOOK,
    EVENTS_LOST_RUNBOOK,
    REPLACEMENT_STUCK_RUNBOOK,
    REPLACEMENTS_HELD_RUNBOOK,
    HEALTH_UNMEASURED_RUNBOOK,
    SHIFT_INCOMPLETE_RUNBOOK,
    SHIFT_UNMEASURED_RUNBOOK,
)


#: The one cell of a platform today.
MAIN_CELL: Final = "main"

# --- Environment variables of the functions. ---

PLATFORM: Final = "OPERATIONS_PLATFORM"
CELL: Final = "OPERATIONS_CELL"
#: Name of the DynamoDB table.
TABLE: Final = "OPERATIONS_TABLE"
#: Name of the SSM parameter with the freeze switch: `freeze_parameter`.
FREEZE_PARAMETER: Final = "OPERATIONS_FREEZE_PARAMETER"
#: ARN of the SNS topic that tells people.
TOPIC_ARN: Final = "OPERATIONS_TOPIC_ARN"
#: Name, address and certificate authority (PEM in base64, as EKS describes it) of the cluster.
CLUSTER: Final = "OPERATIONS_CLUSTER"
CLUSTER_ENDPOINT: Final = "OPERATIONS_CLUSTER_ENDPOINT"
CLUSTER_AUTHORITY: Final = "OPERATIONS_CLUSTER_AUTHORITY"
#: Name of the cluster of Amazon ECS. Set instead of the three variables above.
ECS_CLUSTER: Final = "OPERATIONS_ECS_CLUSTER"
#: Address of CloudWatch's PromQL. Optional: without it, that of the region.
METRICS_ENDPOINT: Final = "OPERATIONS_METRICS_ENDPOINT"

# --- The table: one item per case, place, state of the shift, and audit record. ---

#: Partition key: `table_scope`.
SCOPE_ATTRIBUTE: Final = "scope"
#: Sort key, such as ``case#<node's uid>`` or ``audit#health#<time>#<number>#<id>``.
ENTRY_ATTRIBUTE: Final = "entry"
#: When DynamoDB may delete the item (time to live), in seconds since 1970.
EXPIRY_ATTRIBUTE: Final = "expires"


def table_scope(platform: str, cell: str) -> str:
    """Return the partition key of a cell's items."""
    return f"{platform}#{cell}"


# --- The freeze switch. ---

#: Values of the parameter: which controllers may not act.
FREEZE_VALUES: Final = ("none", "health", "shift", "all")


def freeze_parameter(platform: str, cell: str) -> str:
    """Return the name of the SSM parameter with the freeze switch of a cell."""
    return f"/inference-blueprints/{platform}/{cell}/operations/frozen"


# --- Queries of CloudWatch in PromQL. An account may run 30 at once, and an answer has at most 500 series:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL.html#CloudWatch-PromQL-Limits

#: Queries that a function sends at the same time.
QUERIES_AT_ONCE: Final = 8
#: Pods or nodes that one query names. Their names have at most 63 characters, so that a query has less than
#: the 10,000 of an alarm's query, the only length that CloudWatch documents:
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_AlarmPromQLCriteria.html
NAMES_PER_QUERY: Final = 120

# --- Kubernetes groups of the access entries. They may not begin with ``system:``. ---
# https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html

HEALTH_GROUP: Final = "inference-blueprints:gpu-health"
SHIFT_GROUP: Final = "inference-blueprints:capacity-shift"

# --- Metrics that the controllers write, with the dimensions `platform`, `cell` and `service`. ---

METRIC_NAMESPACE: Final = "InferenceBlueprints/Operations"
#: Dimensions. The last is the one that Powertools writes.
METRIC_DIMENSIONS: Final = ("platform", "cell", "service")
#: Values of `service`.
HEALTH_SERVICE: Final = "gpu-health"
SHIFT_SERVICE: Final = "capacity-shift"
#: Runs that came to their end. No data for five minutes is an alarm.
RUNS: Final = "Runs"
#: Seconds of a run.
RUN_SECONDS: Final = "RunSeconds"
#: 1 while the controller is frozen, or cannot read whether it is.
FROZEN: Final = "Frozen"
#: Queries of metrics to CloudWatch, and series that they returned.
METRIC_QUERIES: Final = "MetricQueries"
METRIC_SERIES: Final = "MetricSeries"
#: Runs in which metrics could not be read.
METRICS_UNREADABLE: Final = "MetricsUnreadable"


# The controllers of a platform, and how many calls of each Lambda keeps room for.

#: The minute's function continues where it ended: a second call would only wait. Events of several nodes are
#: decided at the same time.
HEALTH_CALLS: Final[Mapping[str, int]] = {"health-minute": 1, "health-signals": 5}
SHIFT_CALLS: Final[Mapping[str, int]] = {SHIFT_CONTROLLER: 1}


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller of the Operations stack."""

    title: str
    """Its name in texts."""
    service: str
    """Dimension of its metrics."""
    minute_function: str
    """Its function that runs once per minute."""
    calls: Mapping[str, int]
    """Calls of each of its functions that may run at the same time."""


HEALTH: Final = Controller("GPU health", HEALTH_SERVICE, "health-minute", HEALTH_CALLS)
SHIFT: Final = Controller("capacity shift", SHIFT_SERVICE, SHIFT_CONTROLLER, SHIFT_CALLS)
CONTROLLERS: Final = (HEALTH, SHIFT)
CONTROLLER_CALLS: Final[Mapping[str, int]] = {**HEALTH_CALLS, **SHIFT_CALLS}
