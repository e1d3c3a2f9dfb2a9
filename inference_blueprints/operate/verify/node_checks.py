"""Checks of the API server, of the nodes of each pool, and of Karpenter's status of the pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes import KubectlFailed, describe
from inference_blueprints.operate.verify.verified_platform import (
    ClusterReader,
    KubernetesObject,
    RunningPlatform,
    VerifiedPlatform,
    condition,
    holds,
)
from inference_blueprints.spec.types import Pool
from inference_catalog import node_facts
from inference_catalog.charts import charts
from inference_catalog.operating_system import SystemName
from inference_catalog.releases import NodeImage

CHECK = "API server"
#: Maximum time for an answer.
_PATIENCE = "--request-timeout=10s"
_POLICIES = "arn:aws:eks::aws:cluster-access-policy"
_STRANGER = ("Unauthorized", "logged in", "provide credentials")
_ASSUMED = ":assumed-role/"


def look_in(platform: VerifiedPlatform, kubectl: ClusterReader) -> CheckResult:
    """Check access to the API server with a simple request.

    kubectl: Client of the cluster with the user's permissions.
    Returns: ``ok``, or an error with the missing access entry or permissions, or with where to run the
        command.
    """
    try:
        kubectl.run("get", "namespaces", _PATIENCE, "--output", "name")
    except KubectlFailed as failure:
        return _closed(platform, " ".join(str(failure).split()))
    return CheckResult(CHECK, "ok", f"reachable, and {_identity(platform)} has access")


def _closed(platform: VerifiedPlatform, words: str) -> CheckResult:
    """Return the reason why there is no access."""
    identity = _identity(platform)
    if any(word in words for word in _STRANGER):
        message = f"{identity} has no access entry in the cluster {platform.name}"
        return CheckResult(
            CHECK, "error", message, f"{_entry(platform, identity)} && {_rights(platform, identity)}"
        )
    if "forbidden" in words.lower():
        message = f"{identity} has no permission to read the cluster {platform.name}: {words}"
        return CheckResult(CHECK, "error", message, _rights(platform, identity))
    access = describe(platform.account, platform.name)["resourcesVpcConfig"]
    if access.get("endpointPublicAccess"):
        return CheckResult(CHECK, "error", f"it cannot be reached from here: {words}")
    message = (
        f"it is private and cannot be reached from here ({words}); run this within the VPC or over a "
        "VPN to it, or set endpointAccess: publicAndPrivate and deploy"
    )
    return CheckResult(CHECK, "error", message)


def _identity(platform: VerifiedPlatform) -> str:
    return str(platform.account.client("sts").get_caller_identity()["Arn"])


def _entry(platform: VerifiedPlatform, identity: str) -> str:
    """Return the command that creates the user's access entry."""
    return _eks(platform, f"create-access-entry --principal-arn {_principal(identity)}")


def _rights(platform: VerifiedPlatform, identity: str) -> str:
    """Return the commands that let the user read everything, and forward ports of the models' pods."""
    principal = _principal(identity)
    namespaces = sorted({release.namespace for release in platform.assembly.releases.values()})
    models = [name for name in namespaces if name == charts()["dynamo-model"].namespace]
    scopes = {
        "AmazonEKSAdminViewPolicy": "type=cluster",
        "AmazonEKSEditPolicy": f"type=namespace,namespaces={','.join(models)}",
    }
    return " && ".join(
        _eks(
            platform,
            f"associate-access-policy --principal-arn {principal} "
            f"--policy-arn {_POLICIES}/{policy} --access-scope {scope}",
        )
        for policy, scope in scopes.items()
    )


def _principal(identity: str) -> str:
    """Return the principal of an access entry: for a session its role, whose path only IAM has."""
    if _ASSUMED not in identity:
        return identity
    role = identity.partition(_ASSUMED)[2].partition("/")[0]
    return f"$(aws iam get-role --role-name {role} --query Role.Arn --output text)"


def _eks(platform: VerifiedPlatform, words: str) -> str:
    return platform.aws(f"eks {words} --cluster-name {platform.name}")


_INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
_EFA_RESOURCE = "vpc.amazonaws.com/efa"
#: Conditions that EKS's node monitoring agent sets
#: (https://docs.aws.amazon.com/eks/latest/userguide/node-health.html).
_HEALTH = (
    "AcceleratedHardwareReady",
    "ContainerRuntimeReady",
    "KernelReady",
    "NetworkingReady",
    "StorageReady",
)


def nodes(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check the system nodes and the nodes of each pool."""
    all_nodes = running.kubectl.get("nodes")
    own = [node for node in all_nodes if node_facts.POOL_LABEL not in _labels(node)]
    yield from _counted("system nodes", own, node_facts.NODES, {})
    for pool in running.platform.blueprint.spec.pools:
        of_pool = [node for node in all_nodes if _labels(node).get(node_facts.POOL_LABEL) == pool.name]
        faults = {_name(node): _shape_faults(node, pool) for node in of_pool}
        yield from _counted(f"pool {pool.name}", of_pool, pool.nodes.min, faults)


def _counted(
    whose: str, found: list[KubernetesObject], minimum: int, shape_faults: Mapping[str, list[str]]
) -> Iterator[CheckResult]:
    """Check the number of ready nodes, and report the faults of each node."""
    ready = [node for node in found if holds(node, "Ready")]
    for node in found:
        faults = [*_health_faults(node), *shape_faults.get(_name(node), [])]
        if faults:
            message = f"{whose}: {_name(node)}: {'; '.join(faults)}"
            yield CheckResult("nodes", "error", message, f"kubectl describe node {_name(node)}")
    message = f"{whose}: {len(ready)} of {len(found)} are ready, the minimum is {minimum}"
    if len(ready) < minimum:
        yield CheckResult("nodes", "error", message, "kubectl get nodeclaims,nodes --output wide")
    else:
        yield CheckResult("nodes", "ok", message)


def _health_faults(node: KubernetesObject) -> Iterator[str]:
    """Yield the faults that the kubelet and the node monitoring agent report."""
    if not holds(node, "Ready"):
        yield f"not ready: {condition(node, 'Ready').get('message', 'its kubelet gives no reason')}"
    for name in _HEALTH:
        found = condition(node, name)
        if found.get("status") == "False":
            yield f"{name} is false: {found.get('reason')}: {found.get('message')}"


def _shape_faults(node: KubernetesObject, pool: Pool) -> list[str]:
    """Compare type, labels, accelerators and EFA interfaces of a node with its pool and the catalogue."""
    labels = _labels(node)
    type_name = labels.get(_INSTANCE_TYPE_LABEL, "of no instance type")
    types = {each.name: each for each in pool.types}
    if type_name not in types:
        return [f"is {type_name}, the pool has {', '.join(types)}"]
    instance_type = types[type_name]
    faults = [
        f"label {key} is {labels.get(key)!r}, not {value!r}"
        for key, value in _wanted_labels(pool).items()
        if labels.get(key) != value
    ]
    wanted: dict[str, int] = {}
    if instance_type.device_resource:
        wanted[instance_type.device_resource] = instance_type.device_count
    if pool.efa:
        wanted[_EFA_RESOURCE] = instance_type.efa_interfaces
    allocatable = node.get("status", {}).get("allocatable", {})
    return faults + [
        f"{allocatable.get(resource, 0)} of {count} {resource} can be allocated"
        for resource, count in wanted.items()
        if int(allocatable.get(resource, 0)) < count
    ]


def _wanted_labels(pool: Pool) -> dict[str, str]:
    """Return the labels that the pool's nodes must have in addition to its name."""
    efa = {node_facts.EFA_LABEL: node_facts.EFA_LABEL_VALUE} if pool.efa else {}
    return {**pool.labels, **efa}


def pools(running: RunningPlatform) -> Iterator[CheckResult]:
    """Check that Karpenter accepts each pool: its NodePools and their node class are ready."""
    node_pools = running.kubectl.get("nodepools.karpenter.sh")
    classes = {_name(each): each for each in running.kubectl.get("ec2nodeclasses.karpenter.k8s.aws")}
    for pool in running.platform.blueprint.spec.pools:
        own = [each for each in node_pools if _labels_of_nodes(each).get(node_facts.POOL_LABEL) == pool.name]
        if not own:
            message = f"{pool.name}: Karpenter has no NodePool for it"
            yield CheckResult("pools", "error", message, running.platform.deploy_command)
            continue
        named = {each["spec"]["template"]["spec"]["nodeClassRef"]["name"] for each in own}
        faults = [
            *(_not_ready("nodepool", each) for each in own if not holds(each, "Ready")),
            *(f"the EC2NodeClass {name} does not exist" for name in sorted(named - classes.keys())),
            *(
                _not_ready("ec2nodeclass", classes[name])
                for name in sorted(named & classes.keys())
                if not holds(classes[name], "Ready")
            ),
        ]
        if faults:
            message = f"{pool.name}: {'; '.join(faults)}"
            yield CheckResult("pools", "error", message, f"kubectl describe ec2nodeclass {pool.name}")
        else:
            yield CheckResult("pools", "ok", f"{pool.name}: Karpenter accepts it")


def _not_ready(kind: str, found: KubernetesObject) -> str:
    """Return why an object of Karpenter is not ready: the conditions that are not true."""
    conditions = found.get("status", {}).get("conditions", [])
    reasons = [
        f"{each['type']}: {each.get('message') or each.get('reason') or each['status']}"
        for each in conditions
        if each["status"] != "True" and each["type"] != "Ready"
    ]
    return f"{kind} {_name(found)} is not ready ({'; '.join(reasons) or 'Karpenter gives no reason'})"


def _labels_of_nodes(node_pool: KubernetesObject) -> dict[str, str]:
    labels: dict[str, str] = node_pool["spec"]["template"].get("metadata", {}).get("labels", {})
    return labels


def _labels(kubernetes_object: KubernetesObject) -> dict[str, str]:
    labels: dict[str, str] = kubernetes_object["metadata"].get("labels", {})
    return labels


def _name(kubernetes_object: KubernetesObject) -> str:
    return str(kubernetes_object["metadata"]["name"])


def node_images(running: RunningPlatform) -> Iterator[CheckResult]:
    """Compare what each node of a pool says of its system with the pool's pinned image."""
    platform = running.platform
    cluster = platform.blueprint.spec.cluster.eks
    if cluster is None:
        return
    all_nodes = running.kubectl.get("nodes")
    for pool in platform.blueprint.spec.pools:
        told = {
            node["metadata"]["name"]: _system(node)
            for node in all_nodes
            if node["metadata"].get("labels", {}).get(node_facts.POOL_LABEL) == pool.name
        }
        image = platform.blueprint.releases.node_image(pool.name, cluster.version)
        if told:
            yield _compared(pool.name, told, image, platform.plan.node_systems[pool.name])


def _compared(
    pool: str, told: Mapping[str, tuple[str, str]], image: NodeImage, system: SystemName
) -> CheckResult:
    """Compare the systems of a pool's nodes with the planned one."""
    planned = f"{_planned_name(image, system).strip()} and kubelet {image.kubernetes}"
    silent = [name for name, (system_name, kubelet) in told.items() if not system_name or not kubelet]
    if silent:
        message = f"pool {pool}: {', '.join(silent)} do not name their system; planned is {planned}"
        return CheckResult("node images", "unknown", message)
    others = {name: found for name, found in told.items() if not _is_planned(*found, image, system)}
    if not others:
        return CheckResult("node images", "ok", f"pool {pool}: {len(told)} nodes boot {planned}")
    names = "; ".join(f"{name} boots {found[0]} and kubelet {found[1]}" for name, found in others.items())
    message = (
        f"pool {pool}: {len(others)} of {len(told)} nodes do not boot {planned}: {names}; after a "
        "deployment, Karpenter replaces them one after another"
    )
    return CheckResult("node images", "warning", message, "kubectl get nodeclaims,nodes --output wide")


def _system(node: KubernetesObject) -> tuple[str, str]:
    """Return the name of a node's system, and the version of its kubelet; empty if it does not name them."""
    info = node.get("status", {}).get("nodeInfo", {})
    return info.get("osImage", ""), info.get("kubeletVersion", "")


def _is_planned(system_name: str, kubelet: str, image: NodeImage, system: SystemName) -> bool:
    """Whether a node's system has the planned name, and its kubelet the planned minor version."""
    return system_name.startswith(_planned_name(image, system)) and kubelet.startswith(
        f"v{image.kubernetes}."
    )


def _planned_name(image: NodeImage, system: SystemName) -> str:
    """Return the beginning of the system's name, which the kubelet reads from ``/etc/os-release``.

    Bottlerocket's contains its release, such as ``Bottlerocket OS 1.12.0 (aws-k8s-1.23)``
    (https://github.com/bottlerocket-os/bottlerocket/pull/2791); AL2023's has no release of EKS's image.
    """
    if system == "bottlerocket":
        return f"Bottlerocket OS {image.bottlerocket.removeprefix('v')} "
    return "Amazon Linux 2023"
