"""How long Karpenter takes from 500 pending pods to a node for each pod, on our NodePools.

Karpenter's real AWS provider uses an EC2 API that moto emulates, and the nodes are KWOK nodes. So this is the
time of decisions and API calls, not of machines. The pods are workers of a platform with one accelerator
each, 125 per pool of `g6e.48xlarge`, in four pools. The baseline is the general-purpose NodePool of
Karpenter's examples. Its pods are the same except for accelerator and pool, and its node class has the
account-specific fields of ours. `_made` counts the nodes. The baseline's pool may choose larger types, so it
needs fewer nodes.
"""

from __future__ import annotations

import copy
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness.figure import Figure
from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.synthesis import synthesise
from inference_local.control_plane import artefacts, build, definitions
from inference_local.control_plane.control_plane import ControlPlane
from tests.cluster.karpenter import karpenter, named, pools_and_classes
from tests.cluster.objects import KubernetesObject, component_deployments, own_objects
from tests.cluster.simulated_ec2 import SimulatedEc2, simulated_ec2
from tests.cluster.state import named_pool, namespace_object, ready_names
from tests.templates.support import Templates

#: One round of both arms takes three minutes.
_ROUNDS = 1
_POOLS = 4
_PODS_OF_A_POOL = 125
#: Eight would fit, but Karpenter's test program reserves memory for the maximum number of pods of a type.
_PODS_OF_A_NODE = 7
_NAMESPACE = "pending"
#: Account-specific fields of a node class. The emulated account has no image of another family.
_OF_THE_ACCOUNT = (
    "role",
    "subnetSelectorTerms",
    "securityGroupSelectorTerms",
    "amiFamily",
    "amiSelectorTerms",
)
#: Fields of a worker that bind it to its pool.
_OF_THE_POOL = ("affinity", "tolerations", "topologySpreadConstraints")


@dataclass(frozen=True)
class _Arm:
    """Pools with their node classes, and the pods that wait for their nodes."""

    pools: list[KubernetesObject]
    pods: list[KubernetesObject]


def measure() -> list[Figure]:
    """Take the measurement with both arms in turns on one control plane."""
    with tempfile.TemporaryDirectory(prefix="karpenter-") as folder, simulated_ec2() as ec2:
        ours = _our_arm(_platform(Path(folder)), ec2)
        arms = [ours, _upstream_arm(ours)]
        with _kubectl(Path(folder) / "control-plane", ec2) as kubectl:
            rounds = [[_nodes_for(arm, kubectl) for arm in arms] for _ in range(_ROUNDS)]
    (seconds, made), (upstream_seconds, upstream_made) = (
        [statistics.median(values) for values in zip(*results, strict=True)]
        for results in zip(*rounds, strict=True)
    )
    return [
        Figure("karpenter_nodes", seconds, "s", baseline=upstream_seconds),
        Figure("karpenter_nodes_made", made, "nodes", baseline=upstream_made),
    ]


def _nodes_for(arm: _Arm, kubectl: Kubectl) -> tuple[float, int]:
    """Seconds from the time when all pods are pending until each has a node, and the number of nodes."""
    kubectl.apply(arm.pools)
    pools, classes = named(arm.pools, "NodePool"), named(arm.pools, "EC2NodeClass")
    kubectl.wait_until(lambda: ready_names(kubectl, "nodepools") >= set(pools), "every NodePool is ready")
    kubectl.apply(arm.pods)
    begin = time.monotonic()
    kubectl.wait_until(lambda: not _pods_without_node(kubectl), "every pod has a node")
    seconds = time.monotonic() - begin
    made = len(kubectl.get("nodes"))
    kubectl.run("delete", "pods", "--all", "--namespace", _NAMESPACE, "--force", "--wait=false")
    kubectl.run("delete", "nodepools", *pools)
    kubectl.run("delete", "ec2nodeclasses", *classes, "--wait=false")
    kubectl.wait_until(
        lambda: not (kubectl.get("nodes") or kubectl.get("nodeclaims") or kubectl.get("ec2nodeclasses")),
        "every node is gone",
    )
    return seconds, made


def _pods_without_node(kubectl: Kubectl) -> str:
    return kubectl.run(
        "get", "pods", "--namespace", _NAMESPACE, "--field-selector", "spec.nodeName=", "--output", "name"
    )


@contextmanager
def _kubectl(folder: Path, ec2: SimulatedEc2) -> Iterator[Kubectl]:
    """Start a control plane with Karpenter, which decides after no more pods arrive."""
    with ControlPlane(folder, report=_report) as plane:
        definitions.install(plane.kubectl, _report)
        plane.kubectl.apply([namespace_object(_NAMESPACE)])
        with karpenter(plane, ec2, BATCH_MAX_DURATION="60s"):
            yield plane.kubectl


def _our_arm(platform: Templates, ec2: SimulatedEc2) -> _Arm:
    pods = [
        _pod(f"{named_pool(template)}-{number}", template)
        for each in component_deployments(own_objects(platform))
        if named_pool(template := each["spec"]["template"])
        for number in range(_PODS_OF_A_POOL)
    ]
    return _Arm(pools_and_classes(platform, ec2), pods)


def _upstream_arm(ours: _Arm) -> _Arm:
    folder = build.module_files(artefacts.KARPENTER_EXAMPLES, _report)
    (file,) = folder.rglob("*.yaml")
    pool, node_class = yaml.safe_load_all(file.read_text())
    our_class = next(each for each in ours.pools if each["kind"] == "EC2NodeClass")
    node_class["spec"] |= {name: our_class["spec"][name] for name in _OF_THE_ACCOUNT}
    pods = copy.deepcopy(ours.pods)
    for pod in pods:
        for name in _OF_THE_POOL:
            del pod["spec"][name]
        del pod["spec"]["containers"][0]["resources"]["limits"]
    return _Arm([pool, node_class], pods)


def _pod(name: str, template: KubernetesObject) -> KubernetesObject:
    pod = copy.deepcopy(template)
    pod["metadata"] |= {"name": name, "namespace": _NAMESPACE}
    # Karpenter's test program gives every node the disk of an instance without local disks.
    del pod["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"]
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _platform(folder: Path) -> Templates:
    blueprint = folder / "blueprint.yaml"
    blueprint.write_text(yaml.safe_dump(_document()))
    synthesise(str(blueprint), folder / "cdk.out")
    return Templates(folder / "cdk.out")


def _document() -> dict[str, Any]:
    """Return a blueprint with one model per pool, whose workers fill the nodes of the pool."""
    names = [f"pool-{number}" for number in range(_POOLS)]
    nodes = -(-_PODS_OF_A_POOL // _PODS_OF_A_NODE)
    return {
        "apiVersion": "inference-blueprints/v1alpha1",
        "kind": "Blueprint",
        "metadata": {"name": "crowded"},
        "spec": {
            "environment": {"region": "us-west-2"},
            "cluster": {"eks": {"version": "1.35"}},
            "pools": [
                {"name": name, "instanceTypes": ["g6e.48xlarge"], "nodes": {"max": nodes}} for name in names
            ],
            "models": [
                {
                    "name": f"model-of-{name}",
                    "weights": {"huggingFace": "Qwen/Qwen3-8B"},
                    "workload": {"inputTokens": 3000, "outputTokens": 200, "peakRequestsPerSecond": 2},
                    "deployments": [
                        {
                            "name": "main",
                            "aggregated": {
                                "pool": name,
                                "replicas": _PODS_OF_A_POOL,
                                "tensorParallelSize": 1,
                            },
                        }
                    ],
                }
                for name in names
            ],
        },
    }


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")
