"""How many workers a node holds, and whether something else than its devices stops the next."""

from __future__ import annotations

from inference_blueprints.report.figures import PodFit
from inference_blueprints.serving.nodes.node_share import node_capacity
from inference_blueprints.serving.types import Process
from inference_catalog import InstanceType
from inference_catalog.addresses import DAEMON_PODS, PODS_PER_NODE


def pod_fit(pool: str, model: str, deployment: str, process: Process, kind: InstanceType) -> PodFit:
    """Return how a deployment's workers fit one instance type.

    Parameters
    ----------
    kind
        One of the pool's types.
    """
    resources = process.resources
    devices = resources.accelerators.count if resources.accelerators else 0
    capacity = node_capacity(kind)
    #: In the order in which ties are named: devices that are all used strand nothing.
    limits = {
        "devices": (kind.accelerator_count, devices),
        "vCPUs": (capacity.cpu, resources.cpu + (process.node_cache.cpu if process.node_cache else 0)),
        "memory": (
            capacity.memory_mib,
            resources.memory_mib + (process.node_cache.memory_mib if process.node_cache else 0),
        ),
        "EFA interfaces": (kind.efa_interfaces, resources.efa_interfaces),
        "pods": (PODS_PER_NODE - DAEMON_PODS, 1),
    }
    fitting = {name: available // each for name, (available, each) in limits.items() if each}
    limited_by = min(fitting, key=lambda name: fitting[name])
    most = fitting[limited_by]
    stranded = (fitting.get("devices", most) - most) * devices
    return PodFit(pool, model, deployment, kind.name, most, limited_by, stranded)
