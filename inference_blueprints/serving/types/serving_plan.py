"""Deployments, models, and the whole serving plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Literal

from inference_blueprints.serving.types.front_door import DoorPlan
from inference_blueprints.serving.types.process import Process
from inference_blueprints.serving.types.process_parts import EnvironmentValue, Name, Positive
from inference_catalog.operating_system import SystemName
from inference_contracts.records import dataclass

#: NIXL's back end: ``libfabric`` over EFA; ``ucx`` over TCP if a pool has no EFA.
KvTransfer = Literal["libfabric", "ucx"]


@dataclass(frozen=True, slots=True)
class WeightsMirrorPlan:
    """A copy of a Hugging Face model in the platform's bucket, made once."""

    release: str
    """Helm release of the copy job. No deployment can have the same name."""
    image: str
    """Container image with Python, huggingface_hub and boto3."""
    environment: Mapping[str, EnvironmentValue]
    """Source and destination, in the variables that ``runtime/weights`` reads."""
    prefix: str
    """Prefix of the copy in the bucket, without a slash at its end."""


@dataclass(frozen=True, slots=True)
class ApproximatePicker:
    """llm-d's router with its approximate scorer: it remembers which prefixes it sent to which worker."""

    prefix_scorer: Literal["approximate"]
    """The scorer."""
    block_size: Positive
    """Tokens of a block of the KV cache."""


@dataclass(frozen=True, slots=True)
class PrecisePicker:
    """llm-d's router with its precise scorer: it reads the events of the workers' caches."""

    prefix_scorer: Literal["precise"]
    """The scorer."""
    block_size: Positive
    """Tokens of a block of the KV cache."""
    render_process: Name
    """Name of the process that turns a prompt into tokens."""


#: Router settings of llm-d.
EndpointPicker = ApproximatePicker | PrecisePicker


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The processes of one deployment of a model."""

    name: str
    """Name of the deployment within its model."""
    release: str
    """Helm release and prefix of its objects: ``<model>-<deployment>``."""
    model: str
    """Name under which the model is served."""
    stack: str
    """Serving stack, such as ``dynamo``."""
    chart: str
    """Chart of the deployment, by the key of ``helm_values/charts.yaml``."""
    service_account: str
    """Kubernetes service account of its workers."""
    framework: str
    """The stack's name of the engine, such as ``vllm``."""
    processes: tuple[Process, ...]
    """Its processes. The entry point comes first."""
    kv_transfer: KvTransfer | None = None
    """Transport of KV cache from prefill to decode workers; None if one worker runs both phases."""
    picker: EndpointPicker | None = None
    """Settings of llm-d's router; None for other stacks."""
    is_waited_for: bool = True
    """Whether anybody waits for its answers, so that objectives hold. For those of a queue, nobody does."""

    @property
    def workers(self) -> tuple[Process, ...]:
        """The processes that run an engine: one kind, or prefill and decode."""
        return tuple(process for process in self.processes if process.is_worker)

    @property
    def may_have_no_worker(self) -> bool:
        """Whether batch alone uses it, and all of its workers may go."""
        return not any(process.replicas for process in self.workers)

    @property
    def entry_point(self) -> Process:
        """The process that answers the OpenAI API."""
        return self.processes[0]

    @property
    def target_port(self) -> int:
        """Port of the entry point to which the models' load balancer connects, with a front door or without.

        Behind a front door, it answers health checks, and the API as long as old host names lead to it.
        """
        return self.entry_point.ports[0].number

    @property
    def accelerator_count(self) -> int:
        """Accelerators of all its processes together."""
        return sum(
            process.pods * process.resources.accelerators.count
            for process in self.processes
            if process.resources.accelerators
        )


@dataclass(frozen=True, slots=True)
class SharedKvCachePlan:
    """A bucket of KV cache that all workers of a model share."""

    content: str
    """Identifier that separates its blocks from those of other weights or engines: 8 hexadecimal digits."""
    expire_days: int
    """Days after which an object is deleted."""


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A model with all its deployments."""

    name: str
    """Name under which the OpenAI API serves it."""
    catalog_name: str
    """Catalogue entry with its architecture, such as ``Qwen/Qwen3-8B``."""
    deployments: tuple[DeploymentPlan, ...]
    """Its deployments, behind one route."""
    weights_mirror: WeightsMirrorPlan | None = None
    """The copy that its workers stream from; None if they do not use a copy."""
    shared_kv_cache: SharedKvCachePlan | None = None
    """Bucket of shared KV cache; None without one."""
    batch_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers with which requests of batch give way to interactive ones. Empty without any."""

    @property
    def has_frontends(self) -> bool:
        """Whether requests of some deployment reach its workers through a frontend, which must find them."""
        return not all(deployment.entry_point.is_worker for deployment in self.deployments)


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """The plan of all models, computed once from the blueprint."""

    models: tuple[ModelPlan, ...] = field(default_factory=tuple)
    """The models in the blueprint's order."""
    node_systems: Mapping[str, SystemName] = field(default_factory=dict)
    """Operating system of the nodes by pool."""
    front_door: DoorPlan | None = None
    """The front door. None without one."""

    @property
    def environments(self) -> Iterator[Mapping[str, EnvironmentValue]]:
        """Environments of all processes and weights mirrors."""
        for model in self.models:
            if model.weights_mirror:
                yield model.weights_mirror.environment
            for deployment in model.deployments:
                yield from (process.environment for process in deployment.processes)
                yield from (each.node_cache.environment for each in deployment.workers if each.node_cache)

    @property
    def spanning_stacks(self) -> frozenset[str]:
        """Serving stacks that have workers spanning several nodes."""
        return frozenset(
            deployment.stack
            for model in self.models
            for deployment in model.deployments
            if any(process.nodes > 1 for process in deployment.processes)
        )

    @property
    def has_frontends(self) -> bool:
        """Whether some model has frontends."""
        return any(model.has_frontends for model in self.models)

    @property
    def schedulers(self) -> frozenset[str]:
        """Schedulers that its pods need on Kubernetes, in addition to that of the cluster."""
        return frozenset(
            process.scheduler
            for model in self.models
            for deployment in model.deployments
            for process in deployment.processes
            if process.scheduler
        )

    @property
    def is_elastic(self) -> bool:
        """Whether the number of some workers follows the load."""
        return any(
            process.scaling is not None
            for model in self.models
            for deployment in model.deployments
            for process in deployment.processes
        )

    def model(self, name: str) -> ModelPlan:
        """Return the plan of one model.

        Raises
        ------
        KeyError
            If the plan has no model with this name.
        """
        by_name = {model.name: model for model in self.models}
        return by_name[name]
