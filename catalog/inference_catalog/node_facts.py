"""Nodes: those of the platform itself, their labels and taints, network adapters and volumes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from inference_catalog.hardware import InstanceType
from inference_contracts.records import dataclass

# The nodes that run the platform itself. Both synthesis and plans use these numbers.

#: Managed node group for controllers that must run before Karpenter starts nodes. The third node is for
#: updates.
INSTANCE_TYPE = "m7i.xlarge"
NODES = 2
MAXIMUM_NODES = 3
#: Data volume of a node, in GiB.
DISK_GIB = 80

#: Karpenter's pool for routers that do not fit on the node group.
OVERFLOW_INSTANCE_TYPES = ("m7i.xlarge", "m7i.2xlarge", "m7i.4xlarge")
OVERFLOW_MAXIMUM_NODES = 20

#: Batch workers that fit on those nodes, in addition to routers. Each needs a vCPU; a node has up to 16.
BATCH_WORKERS = 100


#: Node label with the pool's name; NodePools and managed node groups set it, pods require it.
POOL_LABEL = "inference-blueprints/pool"

#: Label of packed pods, in addition to that of their pool: the number of accelerators per pod.
ACCELERATORS_LABEL = "inference-blueprints/accelerators"

#: Node label of pools with EFA. EFA's device plug-in runs only there, because it keeps failing on a node
#: whose type has EFA but that was started without it (https://github.com/aws/eks-charts/issues/1239).
EFA_LABEL = "inference-blueprints/efa"
EFA_LABEL_VALUE = "true"

#: Node label of pools whose image has no device plug-in for its GPUs. NVIDIA's runs only there: a second one
#: on a node with Bottlerocket would register the same devices.
DEVICE_PLUGIN_LABEL = "inference-blueprints/device-plugin"
DEVICE_PLUGIN_LABEL_VALUE = "nvidia"

#: Value and effect of the taint on accelerated nodes. Its key is the accelerator's resource name, such as
#: ``nvidia.com/gpu``, which device plug-ins and the system's own daemon sets also tolerate.
ACCELERATOR_TAINT_VALUE = "true"
ACCELERATOR_TAINT_EFFECT: Literal["NoSchedule"] = "NoSchedule"

#: Classes of the pods on pools that models share by the hour. Real time may take nodes from batch.
REAL_TIME_PRIORITY_CLASS = "inference-real-time"
BATCH_PRIORITY_CLASS = "inference-batch"

#: Processor architecture of the system nodes, on which routers and controllers run.
SYSTEM_ARCHITECTURE: Literal["amd64", "arm64"] = "amd64"

#: Scheduler of pods with a part of a node's Neuron devices. It runs with AWS's scheduler extension, which
#: writes into the pod which devices it gets. The device plug-in reads them there, so all pods that share a
#: node need it (deploy/infrastructure/scheduler-flow.rst of aws-neuron/aws-neuron-sdk, steps 6 to 11).
NEURON_SCHEDULER = "neuron-scheduler"


def node_count(accelerators: int, types: Sequence[InstanceType]) -> int:
    """Return the number of nodes that a worker uses: one, or several equal nodes that it fills.

    Parameters
    ----------
    accelerators
        Devices of the worker.
    types
        Possible types of its nodes. The smallest decides.
    """
    smallest = min((each.accelerator_count for each in types), default=0)
    return max(1, -(-accelerators // smallest)) if smallest else 1


#: A gp3 volume has 125 MiB/s at no extra cost. At most 1,000 MiB/s are requested
#: (https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html).
_MIN_GP3_MIB_PER_SECOND, _MAX_GP3_MIB_PER_SECOND = 125, 1000


#: A gp3 volume has 3,000 IOPS at no extra cost (the same page).
FREE_GP3_OPERATIONS = 3000
FREE_GP3_MIB_PER_SECOND = _MIN_GP3_MIB_PER_SECOND
#: Each MiB/s needs 4 IOPS (the same page).
OPERATIONS_PER_MIB_PER_SECOND = 4


def gp3_mib_per_second(types: Sequence[InstanceType]) -> int:
    """Return the highest useful throughput of a volume, in MiB/s, that every type supports.

    Parameters
    ----------
    types
        The pool's types. The slowest decides.
    """
    slowest = min(instance_type.ebs_bandwidth_mbps for instance_type in types)
    usable = slowest * 10**6 // 8 // 2**20
    return max(_MIN_GP3_MIB_PER_SECOND, min(_MAX_GP3_MIB_PER_SECOND, usable))


def image_volume_mib_per_second(types: Sequence[InstanceType], *, from_snapshot: bool) -> int | None:
    """Return the throughput of the volume that holds images and weights; None if they are on NVMe.

    Parameters
    ----------
    types
        The pool's types.
    from_snapshot
        Whether the volume starts with images, so that the NVMe stays unused.
    """
    if all(each.local_nvme_gb for each in types) and not from_snapshot:
        return None
    return gp3_mib_per_second(types)


# Elastic Fabric Adapters: their network cards on an instance type, and their number per accelerator.
#
# Source: AWS, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards"
# (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html).

#: Kubernetes resource for one interface. The device plug-in provides it.
EFA_RESOURCE = "vpc.amazonaws.com/efa"


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """A network interface that an instance starts with."""

    network_card: int
    device: int
    """`network_card`, `device`: Indexes, from 0."""
    kind: Literal["interface", "efa-only"]
    """``interface`` has an IP address; ``efa-only`` has none."""


def first_card_has_efa(instance_type: InstanceType) -> bool:
    """Return whether the card of the primary interface also has EFA. On p6-b300 that card has only IP."""
    return instance_type.efa_interfaces == instance_type.network_cards


def efa_layout(instance_type: InstanceType) -> tuple[NetworkInterface, ...]:
    """Return the interfaces that give an instance its full EFA bandwidth with one IP address.

    The primary interface is never EFA-only. If its card has EFA, that is the card's second device.

    Parameters
    ----------
    instance_type
        An instance type with EFA.

    Returns
    -------
    tuple[NetworkInterface, ...]
        The primary interface first, then one EFA interface per card.
    """
    on_first_card = (NetworkInterface(0, 1, "efa-only"),) if first_card_has_efa(instance_type) else ()
    others = (NetworkInterface(card, 0, "efa-only") for card in range(1, instance_type.network_cards))
    return (NetworkInterface(0, 0, "interface"), *on_first_card, *others)


def efa_layouts_are_one(types: Iterable[InstanceType]) -> bool:
    """Return whether the types have the same network cards, so that one list of interfaces fits all."""
    return len({efa_layout(instance_type) for instance_type in types}) == 1


def efa_share(instance_type: InstanceType, accelerators: int) -> int:
    """Return the number of whole EFA interfaces for this many of a node's accelerators."""
    if not instance_type.accelerator_count:
        return 0
    return instance_type.efa_interfaces * accelerators // instance_type.accelerator_count
