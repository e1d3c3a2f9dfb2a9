"""Values of the chart ``front-door``: the pods of the front door, and how they find entry points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from inference_blueprints.render.eks.rendered_values import rendered_values
from inference_blueprints.render.front_door import replica
from inference_blueprints.render.front_door.places import DoorPlaces
from inference_blueprints.render.front_door.replica import DoorReferences
from inference_blueprints.serving.types import Architecture, ServingPlan
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.serving.types.process_parts import EnvironmentName, NonEmpty, Positive
from inference_catalog.charts import charts
from inference_catalog.node_facts import POOL_LABEL, SYSTEM_ARCHITECTURE
from inference_contracts import door_headers, door_identities
from inference_contracts.door_names import DOOR_PORT, METRICS_PORT, entry_point_service
from inference_contracts.metric_labels import PROMETHEUS_NAMESPACE
from inference_contracts.records import dataclass
from inference_contracts.trace_names import TRACES_HOST_ON_EKS

#: Namespace of the pods. It is not that of the models: who may run pods there cannot mount the door's
#: certificate.
DOOR_NAMESPACE: Final = charts()["front-door"].namespace
#: Use of the processors, in percent of what pods request, at which replicas are added.
CPU_PERCENT: Final = 60
#: Time for the policy process to settle after Envoy has ended.
_SETTLE_SECONDS: Final = 60

Words = Annotated[tuple[NonEmpty, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoints:
    """The entry points of a deployment."""

    service: NonEmpty
    """Name of the headless Service."""
    namespace: NonEmpty
    """Namespace of the pods."""
    port: Positive
    selector: Annotated[Mapping[str, NonEmpty], Field(min_length=1)]
    """Labels of the pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorFolders:
    """Where the programs find their files."""

    run: NonEmpty
    log: NonEmpty
    state: NonEmpty
    certificates: NonEmpty


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValues:
    """The policy process."""

    command: Words
    check: Words
    """`command`, `check`: Words that start it, and words of its health check."""
    environment: Annotated[Mapping[EnvironmentName, str], Field(min_length=1)]
    cpu: NonEmpty
    memory_mib: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateValues:
    """The program that keeps the files of the certificate."""

    command: Words
    check: Words
    """`command`, `check`: Words that start it, and words of the check whether the files are there."""
    environment: Annotated[Mapping[EnvironmentName, str], Field(min_length=1)]
    memory_mib: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvoyValues:
    """Envoy."""

    command: Words
    drain: Words
    """`command`, `drain`: Words that start it, and words of what lets its requests end."""
    cpu: NonEmpty
    memory_mib: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorScaling:
    """Replicas that follow the use of the processors."""

    min: Positive
    max: Positive
    cpu_percent: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDoorValues:
    """Values of the chart: either a number of replicas or their scaling."""

    image: NonEmpty
    architecture: Architecture
    pool_label: NonEmpty
    replicas: Positive | None = None
    scaling: DoorScaling | None = None
    port: Positive
    metrics_port: Positive
    metrics_namespace: NonEmpty
    """`metrics_port`, `metrics_namespace`: Port with the metrics, and the namespace of what reads it."""
    health_path: NonEmpty
    grace_seconds: Positive
    folders: DoorFolders
    certificates: CertificateValues
    policy: PolicyValues
    envoy: EnvoyValues
    entry_points: tuple[EntryPoints, ...]


def front_door_values(
    plan: ServingPlan, door: DoorPlan, *, image: str, references: DoorReferences
) -> dict[str, Any]:
    """Return the values of the chart.

    plan: The plan of the models, for the labels of their entry points.
    door: The front door.
    image: Image of both programs.
    references: What the stacks know.
    """
    policy, envoy = replica.policy_size(door), replica.envoy_size(door)
    fewest = replica.fewest_replicas(door)
    values = FrontDoorValues(
        image=image,
        architecture=SYSTEM_ARCHITECTURE,
        pool_label=POOL_LABEL,
        replicas=door.replicas if fewest == door.replicas else None,
        scaling=DoorScaling(min=fewest, max=door.replicas, cpu_percent=CPU_PERCENT)
        if fewest < door.replicas
        else None,
        port=DOOR_PORT,
        metrics_port=METRICS_PORT,
        metrics_namespace=PROMETHEUS_NAMESPACE,
        health_path=door_headers.READY_PATH,
        grace_seconds=replica.DRAIN_SECONDS + _SETTLE_SECONDS,
        folders=DoorFolders(
            run=replica.RUN_FOLDER,
            log=replica.LOG_FOLDER,
            state=replica.STATE_FOLDER,
            certificates=door_identities.FOLDER,
        ),
        certificates=CertificateValues(
            command=tuple(replica.certificates_command()),
            check=tuple(replica.certificates_check()),
            environment=replica.certificates_environment(references),
            memory_mib=replica.CERTIFICATES_MIB,
        ),
        policy=PolicyValues(
            command=tuple(replica.policy_command()),
            check=tuple(replica.policy_check()),
            environment=replica.policy_environment(door, references),
            cpu=_cores(policy.cpu_units),
            memory_mib=policy.memory_mib,
        ),
        envoy=EnvoyValues(
            command=tuple(replica.envoy_command(door, eks_places(door))),
            drain=tuple(replica.drain_command()),
            cpu=_cores(envoy.cpu_units),
            memory_mib=envoy.memory_mib,
        ),
        entry_points=tuple(_entry_points(plan, door)),
    )
    rendered: dict[str, Any] = rendered_values(values)
    return rendered


def eks_places(door: DoorPlan) -> DoorPlaces:
    """Return where the replicas find what they need on EKS."""
    namespace = charts()["dynamo-model"].namespace
    return replica.door_places(
        door,
        lambda each: f"{entry_point_service(each.name)}.{namespace}.svc.cluster.local",
        f"{TRACES_HOST_ON_EKS}.cluster.local",
    )


def _entry_points(plan: ServingPlan, door: DoorPlan) -> list[EntryPoints]:
    found = []
    for cluster in door.clusters:
        [deployment] = [
            each for each in plan.model(cluster.model).deployments if each.name == cluster.deployment
        ]
        found.append(
            EntryPoints(
                service=entry_point_service(cluster.name),
                namespace=charts()[deployment.chart].namespace,
                port=cluster.port,
                # The chart of each stack gives these labels to its pods (`model-library.selector`).
                selector={
                    "app.kubernetes.io/component": deployment.entry_point.name,
                    "app.kubernetes.io/instance": deployment.release,
                    "app.kubernetes.io/name": deployment.chart,
                },
            )
        )
    return found


def _cores(cpu_units: int) -> str:
    return f"{cpu_units * 1000 // 1024}m"
