"""Deployments, models, and the whole serving plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from inference_blueprints.serving.types.constraints import Name, Positive
from inference_blueprints.serving.types.process import Process
from inference_blueprints.serving.types.values import EnvironmentValue
from inference_catalog.operating_system import SystemName

#: NIXL's back end: ``libfabric`` over EFA; ``ucx`` over TCP if a pool has no EFA.
KvTransfer = Literal["libfabric", "ucx"]


@dataclass(frozen=True, slots=True)
class WeightsMirrorPlan:
    """A copy of a Hugging Face model in the platform's bucket, made once.

    Parameters
    ----------
    release
        Helm release of the copy job. No deployment can have the same name.
    image
        Container image with Python, huggingface_hub and boto3.
    environment
        Source and destination, in the variables that ``runtime/weights`` reads.
    prefix
        Prefix of the copy in the bucket, without a slash at its end.
    """

    release: str
    image: str
    environment: Mapping[str, EnvironmentValue]
    prefix: str


@dataclass(frozen=True, slots=True)
class ApproximatePicker:
    """llm-d's router with its approximate scorer: it remembers which prefixes it sent to which worker.

    Parameters
    ----------
    prefix_scorer
        The scorer.
    block_size
        Tokens of a block of the KV cache.
    """

    prefix_scorer: Literal["approximate"]
    block_size: Positive


@dataclass(frozen=True, slots=True)
class PrecisePicker:
    """llm-d's router with its precise scorer: it reads the events of the workers' caches.

    Parameters
    ----------
    prefix_scorer
        The scorer.
    block_size
        Tokens of a block of the KV cache.
    render_process
        Name of the process that turns a prompt into tokens.
    """

    prefix_scorer: Literal["precise"]
    block_size: Positive
    render_process: Name


#: Router settings of llm-d.
EndpointPicker = ApproximatePicker | PrecisePicker


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The processes of one deployment of a model.

    Parameters
    ----------
    name
        Name of the deployment within its model.
    release
        Helm release and prefix of its objects: ``<model>-<deployment>``.
    model
        Name under which the model is served.
    stack
        Serving stack, such as ``dynamo``.
    chart
        Chart of the deployment, by the key of ``helm_values/charts.yaml``.
    service_account
        Kubernetes service account of its workers.
    framework
        The stack's name of the engine, such as ``vllm``.
    processes
        Its processes. The entry point comes first.
    kv_transfer
        Transport of KV cache from prefill to decode workers; None if one worker runs both phases.
    picker
        Settings of llm-d's router; None for other stacks.
    """

    name: str
    release: str
    model: str
    stack: str
    chart: str
    service_account: str
    framework: str
    processes: tuple[Process, ...]
    kv_transfer: KvTransfer | None = None
    picker: EndpointPicker | None = None

    @property
    def workers(self) -> tuple[Process, ...]:
        """The processes that run an engine: one kind, or prefill and decode."""
        return tuple(process for process in self.processes if process.is_worker)

    @property
    def entry_point(self) -> Process:
        """The process that answers the OpenAI API."""
        return self.processes[0]

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
    """A bucket of KV cache that all workers of a model share.

    Parameters
    ----------
    content
        Identifier that separates its blocks from those of other weights or engines: 8 hexadecimal digits.
    expire_days
        Days after which an object is deleted.
    """

    content: str
    expire_days: int


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A model with all its deployments.

    Parameters
    ----------
    name
        Name under which the OpenAI API serves it.
    catalog_name
        Catalogue entry with its architecture, such as ``Qwen/Qwen3-8B``.
    deployments
        Its deployments, behind one route.
    weights_mirror
        The copy that its workers stream from; None if they do not use a copy.
    shared_kv_cache
        Bucket of shared KV cache; None without one.
    batch_headers
        Headers with which requests of batch give way to interactive ones. Empty without any.
    """

    name: str
    catalog_name: str
    deployments: tuple[DeploymentPlan, ...]
    weights_mirror: WeightsMirrorPlan | None = None
    shared_kv_cache: SharedKvCachePlan | None = None
    batch_headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_frontends(self) -> bool:
        """Whether requests of some deployment reach its workers through a frontend, which must find them."""
        return not all(deployment.entry_point.is_worker for deployment in self.deployments)


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """The plan of all models, computed once from the blueprint.

    Parameters
    ----------
    models
        The models in the blueprint's order.
    node_systems
        Operating system of the nodes by pool.
    """

    models: tuple[ModelPlan, ...] = field(default_factory=tuple)
    node_systems: Mapping[str, SystemName] = field(default_factory=dict)

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
