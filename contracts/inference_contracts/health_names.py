"""States and names of GPU health that the decisions, the Lambda functions and the constructs share."""

from __future__ import annotations

from typing import Final, Literal, get_args

#: States of a case. ``cleared``: the evidence went away before the node was cordoned. ``refused``: people
#: have to act, because nothing may be replaced automatically here.
CaseState = Literal[
    "suspected",
    "confirmed",
    "cordoned",
    "draining",
    "rebooting",
    "replacing",
    "verifying",
    "done",
    "cleared",
    "refused",
    "gave_up",
]
#: States that nothing follows.
ENDED_CASES: Final[frozenset[CaseState]] = frozenset({"done", "cleared", "refused", "gave_up"})
#: Of them, those after which people have to act.
LEFT_TO_PEOPLE: Final[frozenset[CaseState]] = frozenset({"refused", "gave_up"})
#: States in which the node is out of service. They count as one repair in flight.
CASES_IN_FLIGHT: Final[frozenset[CaseState]] = frozenset(
    {"cordoned", "draining", "rebooting", "replacing", "verifying"}
)

#: Who replaces broken nodes of a pool: values of `repairedBy` in the blueprint.
RepairOwner = Literal["karpenter", "gpuHealth", "nvSentinel", "nobody"]
#: Values of `gpuHealth.action` in the blueprint.
HealthAction = Literal["observe", "replace"]

#: What mends a fault: another boot of the same instance, another instance, or people.
Remedy = Literal["reboot", "replace", "person"]

#: Kinds of hardware signals, and of what is seen from outside.
FaultKind = Literal[
    "xid",
    "ecc",
    "row_remap",
    "throttle",
    "nvlink",
    "nvswitch",
    "pcie",
    "efa",
    "neuron",
    "dcgm",
    "gpus_missing",
    "node_condition",
    "slow_worker",
    "failing_worker",
]
FAULT_KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)

#: Label of a node with the network node that it hangs on, the nearest thing to a rack that AWS names. It is
#: the lowest of the layers of DescribeInstanceTopology.
#: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-ec2-instance-topology-works.html
RACK_LABEL: Final = "topology.k8s.aws/network-node-layer-3"

# --- The functions of GPU health. Both need the variables of `operations_names`, the packages `gpu_health`
# and `operations` of `runtime/`, `inference_decisions.repairs`, `aws_lambda_powertools`, `FAULTS_FILE`,
# and numpy, for `minute`. ---

#: Environment variable with the settings, a JSON object:
#: ``{"action": "observe", "repairedBy": {"h200": "gpuHealth"}, "maxUnhealthyPercent": 5,
#: "maxRepairingPercent": 0, "replacementsPerHour": 4, "rebootsPerNodePerDay": 0, "slowGpus": true,
#: "accelerators": {"p5en.48xlarge": 8}}``. `accelerators` has the accelerators of each instance type of the
#: pools, which the label of Karpenter's nodes overrides. Settings of earlier releases have no
#: `maxRepairingPercent` and no `rebootsPerNodePerDay`: both are then 0.
HEALTH_SETTINGS: Final = "HEALTH_SETTINGS"
#: The table of faults, `gpu_faults_file()` of the catalogue, in the folder of the functions' code.
FAULTS_FILE: Final = "gpu_faults.json"
#: Alarms on hardware are named `hardware_alarm_prefix` + kind, or + kind + ``-`` + anything.
#: Each is a PromQL or Metrics Insights alarm whose contributors have the labels below. So one alarm is about
#: all nodes, and EventBridge gets one event per contributor:
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
#: (*Multi Time Series Alarm*). An event of a plain metric alarm is understood too, by its dimensions; for one
#: that names no node, the function asks CloudWatch for the contributors (DescribeAlarmContributors).
ALARM_EVENT_SOURCE: Final = "aws.cloudwatch"
CONTRIBUTOR_EVENT: Final = "CloudWatch Alarm Contributor State Change"
ALARM_EVENT: Final = "CloudWatch Alarm State Change"
#: Labels or dimensions with the node, in the order in which they are looked for: the name of the node in
#: Kubernetes, or the identifier of its EC2 instance.
NODE_LABELS: Final = ("node", "NodeName", "@resource.k8s.node.name")
INSTANCE_LABELS: Final = ("InstanceId", "@resource.host.id")
#: Label or dimension with the code, such as 79 for an XID. Without it the code is ``*``.
CODE_LABEL: Final = "code"


def hardware_alarm_prefix(platform: str, cell: str) -> str:
    """Return how the names of a cell's alarms on hardware begin. The kind of fault follows."""
    return f"{platform}-{cell}-hardware-"


#: Karpenter's NodePool for pods without a pool that do not fit on the system nodes. Names in a blueprint have
#: no dot.
OVERFLOW_POOL: Final = "inference-blueprints.system"
#: Annotation of a node that GPU health cordoned: its case, as JSON.
CORDON_ANNOTATION: Final = "inference-blueprints/gpu-health"
#: Attribute of a host of ECS that GPU health drains: the beginning of its case, as text.
DRAIN_ATTRIBUTE: Final = "inference-blueprints.gpu-health"
#: Series of workers that Prometheus records, with the labels of a serving pod (`metric_labels`).
WORKER_LOAD: Final = "worker_tokens_per_second"
WORKER_LATENCY: Final = "worker_seconds_per_token"
WORKER_REQUESTS: Final = "worker_requests_per_minute"
WORKER_FAILED: Final = "worker_failed_requests_per_minute"
WORKER_FAILED_TRANSFERS: Final = "worker_failed_transfers_per_minute"
WORKER_EMPTY: Final = "worker_empty_answers_per_minute"
WORKER_SERIES: Final = (
    WORKER_LOAD,
    WORKER_LATENCY,
    WORKER_REQUESTS,
    WORKER_FAILED,
    WORKER_FAILED_TRANSFERS,
    WORKER_EMPTY,
)

# --- Metrics of GPU health (`operations_names.METRIC_NAMESPACE`). ---

#: Cases that were opened, confirmed, cordoned, done, refused, and given up, since the last run. A node that
#: came back from a reboot counts as rebooted, not as replaced.
CASES_OPENED: Final = "CasesOpened"
CASES_CONFIRMED: Final = "CasesConfirmed"
NODES_CORDONED: Final = "NodesCordoned"
NODES_REPLACED: Final = "NodesReplaced"
NODES_REBOOTED: Final = "NodesRebooted"
CASES_REFUSED: Final = "CasesRefused"
CASES_GIVEN_UP: Final = "CasesGivenUp"
#: Cases that are open, and those whose node is being replaced.
CASES_OPEN: Final = "CasesOpen"
CASES_IN_FLIGHT_METRIC: Final = "CasesInFlight"
#: Age of the oldest case whose node is being replaced, in seconds.
OLDEST_CASE_SECONDS: Final = "OldestCaseSeconds"
#: Workers that could be compared, that are worse than their peers alone, and units that moved together.
WORKERS_COMPARED: Final = "WorkersCompared"
WORKERS_SUSPICIOUS: Final = "WorkersSuspicious"
UNITS_MOVED: Final = "UnitsMoved"
#: Cases that the breaker holds: too many nodes of their pool are unhealthy.
CASES_HELD: Final = "CasesHeld"
#: Age of the newest window in which workers reported, in seconds.
METRICS_AGE_SECONDS: Final = "MetricsAgeSeconds"
#: Seconds from the arrival of a hardware event to the decision.
DECISION_SECONDS: Final = "DecisionSeconds"
