"""A blueprint file and its main section."""

from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from inference_blueprints.spec.section import Section, default
from inference_blueprints.spec.sections.batch.keys import Batch, Team
from inference_blueprints.spec.sections.capacity_shift.keys import CapacityShift
from inference_blueprints.spec.sections.environment.keys import Cluster, Environment, Metadata, Network
from inference_blueprints.spec.sections.front_door.keys import FrontDoor
from inference_blueprints.spec.sections.gpu_health.keys import GpuHealth
from inference_blueprints.spec.sections.models.keys import Model
from inference_blueprints.spec.sections.observability.keys import Observability
from inference_blueprints.spec.sections.pools.keys import Pool
from inference_blueprints.spec.sections.queueing.keys import Queueing
from inference_blueprints.spec.sections.signals.keys import SignalStore
from inference_blueprints.spec.sections.streaming.keys import Kafka, StreamingJob
from inference_catalog.releases import Releases, shipped_releases

API_VERSION: Literal["inference-blueprints/v1alpha1"] = "inference-blueprints/v1alpha1"
KIND: Literal["Blueprint"] = "Blueprint"


class Spec(Section):
    """The platform."""

    environment: Environment
    """Account, region and zones of the platform."""
    network: Network = default({})
    """Network of the platform and access to the models."""
    cluster: Cluster
    """Cluster that runs the containers."""
    # Each pool uses about 4 KB of a template of 1 MB. Queues, tags and many instance types may double that.
    pools: list[Pool] = Field(min_length=1, max_length=100)
    """Pools of nodes with accelerators."""
    queueing: Queueing | None = None
    """Job queues on the pools, beside the models. Without it, jobs cannot use the pools."""
    # Each model is a rule of the load balancer (`network_quotas` of the catalogue).
    models: list[Model] = Field(min_length=1, max_length=100)
    """Models to serve."""
    teams: list[Team] = Field(default_factory=list, max_length=200)
    """Teams that submit batch jobs or own signals. Required for batch and streaming."""
    front_door: FrontDoor | None = None
    """One address for all models, with callers, routing, budgets and usage. Without it, whoever reaches the
    load balancer may call the models."""
    batch: Batch | None = None
    """Batch jobs. Without it, batch is off."""
    signal_store: SignalStore | None = None
    """Store of answers by key. Required for streaming. Without it, batch writes answers to files only."""
    kafka: Kafka | None = None
    """Kafka cluster with the events of streaming. Without it, streaming is off."""
    # Each job is an application with a log group and alarms in one stack.
    streaming: list[StreamingJob] = Field(default_factory=list, max_length=10)
    """Jobs that turn events into signals within seconds. Without it, streaming is off."""
    observability: Observability | None = None
    """Metrics, logs, traces, dashboards and alarms. Without it, there are none."""
    capacity_shift: CapacityShift | None = None
    """Lends batch the capacity that real time leaves. Without it, neither depends on a forecast."""
    gpu_health: GpuHealth | None = None
    """Finds broken and slow GPUs, and replaces their nodes. Without it, nothing looks for slow GPUs."""

    @model_validator(mode="before")
    @classmethod
    def _batch_runs_beside_ecs(cls, value: Any) -> Any:
        """Run workers of batch on Fargate if the cluster is ECS and the file does not choose."""
        if not isinstance(value, dict):
            return value
        cluster, batch = value.get("cluster"), value.get("batch")
        if not (isinstance(cluster, dict) and "ecs" in cluster and isinstance(batch, dict)):
            return value
        workers = batch.get("workers", {})
        if not isinstance(workers, dict) or "eks" in workers or "ecs" in workers:
            return value
        return {**value, "batch": {**batch, "workers": {**workers, "ecs": {}}}}


class Blueprint(Section):
    """A blueprint file."""

    api_version: Literal["inference-blueprints/v1alpha1"]
    """Version of this format."""
    kind: Literal["Blueprint"]
    """Always Blueprint."""
    metadata: Metadata
    """Name of the platform."""
    spec: Spec
    """The platform."""

    _releases: Releases = PrivateAttr(default_factory=shipped_releases)

    @property
    def releases(self) -> Releases:
        """Releases of charts, engines and node images: those of the lock, else those of this library."""
        return self._releases

    def with_releases(self, releases: Releases) -> Self:
        """Return a copy of the blueprint with other releases.

        releases: Releases of charts, engines and node images.
        """
        copy = self.model_copy()
        copy._releases = releases
        return copy
