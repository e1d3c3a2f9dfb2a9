"""Names on Amazon ECS that stacks, tasks and programs share."""

from __future__ import annotations

from typing import Final

from inference_contracts.task_tags import METRICS_ADDRESS_TAG

#: Container of a process of the serving plan, the container that fills the host's copy of the weights, and
#: the one that waits for the copy in the bucket.
MAIN_CONTAINER: Final = "main"
NODE_CACHE_CONTAINER: Final = "node-cache"
WEIGHTS_CONTAINER: Final = "weights"
#: Variable with the document that ``runtime/task_start`` reads.
TASK_START_VARIABLE: Final = "TASK_START"
#: Port of a worker's health and metrics, by name: the container's health check asks it.
SYSTEM_PORT: Final = "system"
#: Attribute of a container instance with the name of its pool.
POOL_ATTRIBUTE: Final = "inference-blueprints.pool"
#: Key of the metadata of a scalable target in a template: the largest number of tasks of the blueprint, if
#: the capacity shift sets another.
LARGEST_NUMBER: Final = "LargestNumber"
#: Folder of a host that its tasks share: group 0 may write to it.
SHARED_FOLDER: Final = "/mnt/data/inference-blueprints"
#: Folder of a host with Neuron devices, where each task locks those that it uses.
NEURON_LOCKS_FOLDER: Final = f"{SHARED_FOLDER}/neuron"
#: Keys of tags that a task may set on itself.
TAG_KEYS: Final = (METRICS_ADDRESS_TAG,)
#: Number of members of the discovery store, and the port on which they answer clients.
DISCOVERY_MEMBERS: Final = 3
DISCOVERY_PORT: Final = 2379
#: Name of the task that receives traces, in the zone `metrics_domain`.
COLLECTOR: Final = "collector"
#: Time for which the store keeps the entries of a process that it does not hear from. It outlives the
#: replacement of a member, because a process whose lease ends shuts down (``lib/runtime/src/transports/etcd``
#: of ai-dynamo/dynamo 1.6.1).
LEASE_SECONDS: Final = 120


def capacity_provider(platform: str, pool: str, *, managed: bool = False, spot: bool = False) -> str:
    """Return the name of a pool's capacity provider. It may not begin with ``aws``, ``ecs`` or ``fargate``.

    What runs the hosts and how they are bought are part of the name: no update of a provider changes them,
    and CloudFormation replaces none under the same name.

    platform: `metadata.name`.
    managed: Whether Managed Instances run the hosts; otherwise an Auto Scaling group does.
    spot: Whether it is the provider of a pool's Spot instances.
    """
    return f"{'managed' if managed else 'pool'}-{platform}-{pool}{'-spot' if spot else ''}"


def discovery_domain(platform: str) -> str:
    """Return the private zone of the members of the discovery store."""
    return f"{platform}-discovery.internal"


def metrics_domain(platform: str) -> str:
    """Return the private zone of the task that receives traces."""
    return f"{platform}-metrics.internal"


def discovery_member(platform: str, index: int) -> str:
    """Return the name of a member of the discovery store in the VPC."""
    return f"discovery-{index}.{discovery_domain(platform)}"


def discovery_endpoints(platform: str) -> str:
    """Return the addresses of all members, as Dynamo reads them."""
    members = (discovery_member(platform, index) for index in range(DISCOVERY_MEMBERS))
    return ",".join(f"https://{member}:{DISCOVERY_PORT}" for member in members)


def discovery_secret_keys(namespace: str) -> dict[str, str]:
    """Return the keys of the secret with the certificates of clients of the discovery store.

    The keys ``cert`` and ``key`` are those of one certificate that all clients of earlier releases have.

    namespace: Dynamo's namespace of a deployment, which is the common name of its certificate.
    Returns: Key by Dynamo's variable (``lib/runtime/src/transports/etcd`` of ai-dynamo/dynamo 1.6.1).
    """
    return {
        "ETCD_AUTH_CA": "ca",
        "ETCD_AUTH_CLIENT_CERT": f"{namespace}-cert",
        "ETCD_AUTH_CLIENT_KEY": f"{namespace}-key",
    }


def service_name(release: str, process: str, *, managed: bool = False) -> str:
    """Return the name of the service of a process of a deployment, unique in the cluster.

    Workers on Managed Instances have addresses of their own, others those of their host. A service keeps its
    network configuration, which ECS supports for the first kind only (API reference, CreateService). So
    workers that move to hosts of the other kind get another service.

    release: Name of the deployment in the platform.
    process: Name of the process in the plan.
    managed: Whether its tasks run on Managed Instances.
    """
    return f"{release}-{process}{'-managed' if managed else ''}"


def namespace_of(release: str) -> str:
    """Return Dynamo's namespace of a deployment.

    A frontend finds the workers of every namespace that begins with its own, so all have the same length.
    """
    import hashlib

    return f"r{hashlib.sha256(release.encode()).hexdigest()[:12]}"


def session_log_group(platform: str) -> str:
    """Return the name of the log group that records sessions of ECS Exec."""
    return f"/inference-blueprints/{platform}/execute-command"
