"""Values of the charts of models: a deployment of the serving plan on EKS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, fields
from typing import Annotated, Any

from pydantic import Field

from inference_blueprints.render.callers.keeper import (
    KEEPER_COMMAND,
    KEEPER_MILLICPU,
    READY_COMMAND,
    keeper_environment,
    keeper_image,
)
from inference_blueprints.render.callers.sidecar import rendered_sidecars
from inference_blueprints.render.eks.environment_entries import (
    EnvironmentEntry,
    MirrorEntry,
    SecretReference,
    environment_entries,
    mirror_entries,
    secret_references,
)
from inference_blueprints.render.eks.rendered_values import BEHIND, rendered_values
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.stacks.known_callers import KEEPER_MEMORY_MIB
from inference_blueprints.serving.types import (
    Architecture,
    DeploymentPlan,
    EndpointPicker,
    Neighbour,
    NodeCache,
    NodeCacheBase,
    Process,
    ProcessBase,
    ReplicaFloor,
    ScaleTrigger,
    Scaling,
    WeightsBucket,
    WeightsMirrorPlan,
)
from inference_blueprints.serving.types.process_parts import Image, NonEmpty, NotNegative, Positive
from inference_catalog.node_facts import ACCELERATORS_LABEL, POOL_LABEL, SYSTEM_ARCHITECTURE
from inference_contracts.door_identities import FOLDER
from inference_contracts.metric_labels import (
    METRICS_PORT_LABEL,
    METRICS_SCHEME_LABEL,
    POD_LABEL_PREFIX,
    PROMETHEUS_ADDRESS,
    SYSTEM_POOL,
)
from inference_contracts.records import dataclass
from inference_runtime import runtime_directory

# Values of the chart ``weights-mirror``: the job that copies a model to the platform's bucket once.

#: Files of ``runtime/weights`` that the Job runs, and with which workers wait for it.
_MIRROR_FILES = ("__init__.py", "attempts.py", "bucket.py", "hub.py", "mirror.py", "settings.py", "wait.py")

FileName = Annotated[str, Field(pattern="^[a-z0-9_]+\\.py$")]


@dataclass(frozen=True, slots=True)
class WeightsMirrorValues:
    """Values of the chart; `program` holds the text of each file of the Job by its name."""

    image: Image
    environment: Annotated[tuple[MirrorEntry, ...], Field(min_length=1)]
    weights_bucket: NonEmpty
    secrets: tuple[SecretReference, ...]
    program: Annotated[Mapping[FileName, NonEmpty], Field(min_length=1)]
    architecture: Architecture
    pool_label: NonEmpty


def program_texts(names: Iterable[str]) -> dict[str, str]:
    """Return the text of files of ``runtime/weights``, by their names and in the order of these."""
    folder = runtime_directory() / "weights"
    return {name: (folder / name).read_text(encoding="utf-8") for name in sorted(set(names))}


def weights_mirror_values(mirror: WeightsMirrorPlan, *, weights_bucket: str) -> dict[str, Any]:
    """Return the values of a weights mirror's chart."""
    values = WeightsMirrorValues(
        image=mirror.image,
        environment=mirror_entries(mirror.environment),
        weights_bucket=weights_bucket,
        secrets=secret_references([mirror.environment]),
        program=program_texts(_MIRROR_FILES),
        architecture=SYSTEM_ARCHITECTURE,
        pool_label=POOL_LABEL,
    )
    rendered: dict[str, Any] = rendered_values(values)
    return rendered


_ServiceAccount = Annotated[str, Field(pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$")]
_SIDECAR_FILES = (
    "__init__.py",
    "attempts.py",
    "hub.py",
    "node_cache.py",
    "node_store.py",
    "s3_reader.py",
    "settings.py",
)
_ARTEFACT_FILES = ("__init__.py", "attempts.py", "neuron_artefacts.py")


def metric_labels(deployment: DeploymentPlan, process: Process, platform: str) -> Mapping[str, str]:
    """Return the labels of a process's pods, as the contract on metric labels names them.

    deployment: The deployment of the process.
    platform: `metadata.name`.
    Raises ValueError if a router of llm-d has no port of metrics, or several.
    """
    labels = {
        "platform": platform,
        "model": deployment.model,
        "release": deployment.release,
        "role": process.role,
        "pool": process.pool or SYSTEM_POOL,
    }
    port = _metrics_port(deployment, process)
    behind_tls = process.callers is not None and process.called_port == port
    return {
        **{f"{POD_LABEL_PREFIX}{name}": value for name, value in labels.items()},
        METRICS_PORT_LABEL: str(port),
        **({METRICS_SCHEME_LABEL: "https"} if behind_tls else {}),
    }


def _metrics_port(deployment: DeploymentPlan, process: Process) -> int:
    """Return the port of a process's metrics: its first, or the endpoint picker's own beside a proxy."""
    if deployment.picker is None or process.is_worker:
        return process.called_port
    ports = [port for sidecar in process.sidecars for port in sidecar.ports if port.name == "metrics"]
    if len(ports) != 1:
        raise ValueError(
            f"'{deployment.release}' has {len(ports)} ports of an endpoint picker's metrics, not 1"
        )
    return ports[0].number


@dataclass(frozen=True, slots=True)
class Packing:
    """Neighbours that a process is placed next to, and the pod label with the number of accelerators."""

    accelerators_label: NonEmpty
    neighbours: Annotated[tuple[Neighbour, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCacheValues(NodeCacheBase):
    """The node's cache of a process, with the environment of the program that fills it."""

    environment: tuple[EnvironmentEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactsValues:
    """Where a process keeps what its compiler makes, with the environment of the programs that move it."""

    folder: Annotated[str, Field(pattern="^/")]
    environment: tuple[EnvironmentEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingValues:
    """How KEDA scales a process: the plan's `Scaling`, and the Prometheus that KEDA asks.

    `shifted`: the capacity shift sets the floor, and with `ceiling` also the ceiling, and a deployment keeps
    them.
    """

    least: Positive
    most: Positive
    ceiling: Positive | None = None
    triggers: Annotated[tuple[ScaleTrigger, ...], Field(min_length=1)]
    floors: tuple[ReplicaFloor, ...]
    polling_seconds: Positive
    up_stabilization_seconds: NotNegative
    down_stabilization_seconds: NotNegative
    down_percent: Positive
    down_period_seconds: Positive
    fallback_after_failures: Positive
    fallback_replicas: Positive
    prometheus_address: NonEmpty
    shifted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessValues(ProcessBase):
    """A process of the plan, with its environment and placement in the form that the charts read."""

    environment: tuple[EnvironmentEntry, ...] = field(metadata={BEHIND: "arguments"})
    pool_label: NonEmpty = field(metadata={BEHIND: "architecture"})
    packing: Packing | None = field(default=None, metadata={BEHIND: "tolerations"})
    node_cache: NodeCacheValues | None = field(default=None, metadata={BEHIND: "awaits_weights"})
    artefacts: ArtefactsValues | None = field(default=None, metadata={BEHIND: "node_cache"})
    scaling: ScalingValues | None = field(default=None, metadata={BEHIND: "replicas"})
    lent: bool = field(default=False, metadata={BEHIND: "scaling"})
    metric_labels: Mapping[str, NonEmpty] | None = field(default=None, metadata={BEHIND: "pool_label"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateKeeperValues:
    """The container that keeps the certificate of a release in `folder`, until which others wait."""

    image: Image
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    ready_command: Annotated[tuple[str, ...], Field(min_length=1)]
    environment: Mapping[str, str]
    folder: Annotated[str, Field(pattern="^/")]
    millicpu: Positive
    memory_mib: Positive


def certificate_values(secret_arn: str) -> CertificateKeeperValues:
    """Return the values of the container that keeps a certificate.

    secret_arn: ARN of its secret.
    """
    return CertificateKeeperValues(
        image=keeper_image(),
        command=KEEPER_COMMAND,
        ready_command=READY_COMMAND,
        environment=keeper_environment(secret_arn),
        folder=FOLDER,
        millicpu=KEEPER_MILLICPU,
        memory_mib=KEEPER_MEMORY_MIB,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ModelValues:
    """Values that all charts have; `program` holds the text of each file that fills the node's cache."""

    secrets: tuple[SecretReference, ...]
    certificate: CertificateKeeperValues | None = None
    weights_bucket: NonEmpty | None = None
    kv_cache_bucket: NonEmpty | None = None
    program: Annotated[Mapping[FileName, NonEmpty], Field(min_length=1)] | None = None
    processes: Annotated[tuple[ProcessValues, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoModelValues(_ModelValues):
    """Values of the chart ``dynamo-model``. `framework` is one of the stack's `frameworks`."""

    framework: str = field(metadata={BEHIND: None})


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectModelValues(_ModelValues):
    """Values of the chart ``direct-model``."""

    service_account: _ServiceAccount = field(metadata={BEHIND: None})


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmDModelValues(_ModelValues):
    """Values of the chart ``llm-d-model``."""

    model: NonEmpty = field(metadata={BEHIND: None})
    service_account: _ServiceAccount = field(metadata={BEHIND: "model"})
    picker: EndpointPicker = field(metadata={BEHIND: "service_account"})


def deployment_values(
    deployment: DeploymentPlan,
    *,
    weights_bucket: str | None = None,
    kv_cache_bucket: str | None = None,
    observed_platform: str | None = None,
    shifted: bool = False,
    certificate_arn: str | None = None,
) -> dict[str, Any]:
    """Return the values of a deployment's chart.

    weights_bucket: Name of the platform's weights bucket, for a mirrored model.
    kv_cache_bucket: Name of the model's KV cache bucket, if its workers share one.
    observed_platform: `metadata.name`, if pods are scraped: then they have the labels of their metrics.
    shifted: Whether the capacity shift sets the floors of elastic processes.
    certificate_arn: ARN of the secret with the certificate of the release, behind a front door.
    Raises ValueError if a process reads mirrored weights and there is no weights bucket, or admits known
        callers and there is no certificate.
    """
    caches = [process.node_cache for process in deployment.processes if process.node_cache]
    environments = [process.environment for process in deployment.processes]
    environments += [cache.environment for cache in caches]
    kept = [process.artefacts for process in deployment.processes if process.artefacts]
    environments += [artefacts.environment for artefacts in kept]
    awaits = any(WeightsBucket() in environment.values() for environment in environments)
    if awaits and weights_bucket is None:
        raise ValueError(f"'{deployment.release}' reads or keeps files in S3: it needs weights_bucket")
    admits = any(process.callers for process in deployment.processes)
    if certificate_arn is None and admits:
        raise ValueError(f"'{deployment.release}' admits known callers: it needs certificate_arn")
    shared: dict[str, Any] = {
        "certificate": certificate_values(certificate_arn) if certificate_arn and admits else None,
        "secrets": secret_references(environments),
        "weights_bucket": weights_bucket if awaits else None,
        "kv_cache_bucket": kv_cache_bucket,
        "program": program_texts([*(_SIDECAR_FILES if caches else ()), *(_ARTEFACT_FILES if kept else ())])
        or None,
        "processes": tuple(
            _process_values(
                each,
                metric_labels(deployment, each, observed_platform) if observed_platform else None,
                shifted=shifted,
            )
            for each in deployment.processes
        ),
    }
    values: _ModelValues
    if deployment.picker:
        values = LlmDModelValues(
            model=deployment.model,
            service_account=deployment.service_account,
            picker=deployment.picker,
            **shared,
        )
    elif STACKS[deployment.stack].serves_directly:
        values = DirectModelValues(service_account=deployment.service_account, **shared)
    else:
        values = DynamoModelValues(framework=deployment.framework, **shared)
    rendered: dict[str, Any] = rendered_values(values)
    return rendered


def _node_cache_values(cache: NodeCache) -> NodeCacheValues:
    return NodeCacheValues(
        environment=environment_entries(cache.environment),
        **{each.name: getattr(cache, each.name) for each in fields(NodeCacheBase)},
    )


def _scaling_values(scaling: Scaling, *, shifted: bool) -> ScalingValues:
    return ScalingValues(
        shifted=shifted,
        fallback_replicas=scaling.fallback_replicas,
        prometheus_address=PROMETHEUS_ADDRESS,
        **{each.name: getattr(scaling, each.name) for each in fields(Scaling)},
    )


def _process_values(process: Process, labels: Mapping[str, str] | None, *, shifted: bool) -> ProcessValues:
    packing = Packing(ACCELERATORS_LABEL, process.neighbours) if process.neighbours else None
    return ProcessValues(
        environment=environment_entries(process.environment),
        pool_label=POOL_LABEL,
        packing=packing,
        metric_labels=labels,
        node_cache=_node_cache_values(process.node_cache) if process.node_cache else None,
        artefacts=ArtefactsValues(
            folder=process.artefacts.folder,
            environment=environment_entries(process.artefacts.environment),
        )
        if process.artefacts
        else None,
        scaling=_scaling_values(process.scaling, shifted=shifted) if process.scaling else None,
        lent=shifted and process.lent_most is not None,
        **{each.name: getattr(process, each.name) for each in fields(ProcessBase)}
        | {"sidecars": rendered_sidecars(process)},
    )
