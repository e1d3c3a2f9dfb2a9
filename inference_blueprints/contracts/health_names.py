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
    "replacing",
    "verifying",
    "done",
    "cleared",
    "refused",
    "gave_up",
]
CASE_STATES: Final[tuple[CaseState, ...]] = get_args(CaseState)
#: States that nothing follows.
ENDED_CASES: Final[frozenset[CaseState]] = frozenset({"done", "cleared", "refused", "gave_up"})
#: States in which the node is being taken out of service. They count as one replacement in flight.
CASES_IN_FLIGHT: Final[frozenset[CaseState]] = frozenset({"cordoned", "draining", "replacing", "verifying"})

#: Who replaces broken nodes of a pool: values of `repairedBy` in the blueprint.
RepairOwner = Literal["karpenter", "gpuHealth", "nvSentinel", "nobody"]
REPAIR_OWNERS: Final[tuple[RepairOwner, ...]] = get_args(RepairOwner)
#: Values of `gpuHealth.action` in the blueprint.
HealthAction = Literal["observe", "replace"]

#: Kinds of hardware signals, and of what is seen from outside.
FaultKind = Literal[
    "xid",
    "ecc",
    "row_remap",
    "throttle",
    "nvlink",
    "pcie",
    "efa",
    "neuron",
    "dcgm",
    "gpus_missing",
    "slow_worker",
    "failing_worker",
]
FAULT_KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)

#: Label of a node with the network node that it hangs on, the nearest thing to a rack that AWS names. It is
#: the lowest of the layers of DescribeInstanceTopology.
#: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-ec2-instance-topology-works.html
RACK_LABEL: Final = "topology.k8s.aws/network-node-layer-3"
