"""Deployments, models, and all that serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from inference_blueprints.serving.types.process import Process
from inference_blueprints.serving.types.values import EnvironmentValue

#: NIXL's back end: ``libfabric`` over EFA, ``ucx`` over TCP where a pool has none.
KvTransfer = Literal["libfabric", "ucx"]


@dataclass(frozen=True, slots=True)
class WeightsMirror:
    """A copy of a model from the Hugging Face Hub in the platform's bucket, made once.

    Parameters
    ----------
    release
        Helm release of what makes it; no deployment's can have its name.
    image
        Container image with Python, huggingface_hub and boto3.
    environment
        What and where to, as ``runtime/weights`` reads it.
    prefix
        Where it lies in the bucket, without a slash at its end.
    """

    release: str
    image: str
    environment: Mapping[str, EnvironmentValue]
    prefix: str


@dataclass(frozen=True, slots=True)
class EndpointPicker:
    """What llm-d's router chooses a worker by.

    Parameters
    ----------
    prefix_scorer
        How it knows what a worker has cached: ``approximate`` remembers what it sent there, ``precise`` reads
        the workers' own events.
    block_size
        Tokens of a block of KV cache.
    render_process
        Process that turns a prompt into tokens for the precise scorer; None for the other.
    """

    prefix_scorer: Literal["approximate", "precise"]
    block_size: int
    render_process: str | None


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
        Name under which it serves.
    stack
        Serving stack, such as ``dynamo``.
    chart
        The chart that it is rendered with, by the key of ``helm_values/charts.yaml``.
    service_account
        Kubernetes service account of its workers.
    framework
        The engine's name in the stack's words, such as ``vllm``.
    processes
        Its processes; the entry point comes first.
    kv_transfer
        What moves KV cache from prefill to decode workers; None where one worker does both.
    picker
        What llm-d's router chooses by; None for a stack without it.
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
        """Accelerators that all its processes hold together."""
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
        What tells its blocks from those of other weights or another engine: 8 hexadecimal digits.
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
        Catalogue entry with its shape, such as ``Qwen/Qwen3-8B``.
    deployments
        Its deployments, behind one route.
    weights_mirror
        The copy that they stream from; None where they do not.
    shared_kv_cache
        The bucket of KV cache that they share; None without one.
    """

    name: str
    catalog_name: str
    deployments: tuple[DeploymentPlan, ...]
    weights_mirror: WeightsMirror | None = None
    shared_kv_cache: SharedKvCachePlan | None = None


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """All that serves, computed once from the blueprint.

    Parameters
    ----------
    models
        The models in the blueprint's order.
    """

    models: tuple[ModelPlan, ...] = field(default_factory=tuple)

    @property
    def environments(self) -> Iterator[Mapping[str, EnvironmentValue]]:
        """Environment of everything that runs: processes and mirrors."""
        for model in self.models:
            if model.weights_mirror:
                yield model.weights_mirror.environment
            for deployment in model.deployments:
                yield from (process.environment for process in deployment.processes)

    @property
    def spanning_stacks(self) -> frozenset[str]:
        """Serving stacks of which a worker spans nodes."""
        return frozenset(
            deployment.stack
            for model in self.models
            for deployment in model.deployments
            if any(process.nodes > 1 for process in deployment.processes)
        )

    def model(self, name: str) -> ModelPlan:
        """Return the plan of one model.

        Raises
        ------
        KeyError
            If the plan has no model of that name.
        """
        by_name = {model.name: model for model in self.models}
        return by_name[name]
