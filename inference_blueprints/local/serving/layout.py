"""What of a plan is started on this machine: pure, before any process runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from inference_blueprints import catalog
from inference_blueprints.catalog import Accelerator, LatencyProfile
from inference_blueprints.errors import UserError
from inference_blueprints.serving.types import DeploymentPlan, EngineSettings, ModelPlan, Process, ServingPlan
from inference_blueprints.spec.types import Blueprint

#: Up to this many workers of a deployment have a process each, so that one can be lost alone.
WORKER_PROCESSES = 8
#: Workers of all deployments together. On two processors 128 register in seven seconds; of 256 some time out
#: waiting for the lock of Dynamo's file discovery (1.6.1).
WORKER_LIMIT = 128


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """The workers of one role as they are simulated here.

    Parameters
    ----------
    process
        Their process of the plan.
    settings
        The figures behind its arguments.
    accelerator
        What they would run on; None where they need none.
    profile
        Their latencies; None where nothing was measured.
    """

    process: Process
    settings: EngineSettings
    accelerator: Accelerator | None
    profile: LatencyProfile | None

    @property
    def by_process(self) -> tuple[int, ...]:
        """Workers of each process on this machine, spread evenly."""
        replicas = self.process.replicas
        count = min(replicas, WORKER_PROCESSES)
        return tuple(replicas // count + (index < replicas % count) for index in range(count))


@dataclass(frozen=True, slots=True)
class LocalDeployment:
    """One deployment as it is served here.

    Parameters
    ----------
    model
        The model that it serves.
    plan
        Its processes.
    frontend
        The one that answers.
    workers
        Those that run an engine: one kind, or prefill and decode.
    answer_tokens
        Length of an answer whose request states none: the workload's mean.
    """

    model: ModelPlan
    plan: DeploymentPlan
    frontend: Process
    workers: tuple[LocalWorkers, ...]
    answer_tokens: int

    @property
    def worker_count(self) -> int:
        """Workers of all roles."""
        return sum(each.process.replicas for each in self.workers)

    @property
    def context_length(self) -> int:
        """Prompt and answer together at the most, in tokens."""
        return min(each.settings.max_model_len for each in self.workers)

    @property
    def profile(self) -> LatencyProfile | None:
        """Latencies of the workers that write answers; None where something of it was not measured."""
        known = [each.profile for each in self.workers]
        return known[-1] if all(known) else None


def layout(plan: ServingPlan, blueprint: Blueprint) -> Mapping[str, tuple[LocalDeployment, ...]]:
    """Decide what is started.

    Parameters
    ----------
    plan
        The serving plan.
    blueprint
        Where it comes from; names the pools' instance types.

    Returns
    -------
    Mapping
        The deployments of each model, by the model's name.

    Raises
    ------
    UserError
        If the plan has more workers than this machine should simulate.
    """
    models = {
        model.name: tuple(_deployment(model, deployment, blueprint) for deployment in model.deployments)
        for model in plan.models
    }
    workers = sum(deployment.worker_count for each in models.values() for deployment in each)
    if workers > WORKER_LIMIT:
        raise UserError(
            f"the blueprint has {workers} workers, a local run simulates {WORKER_LIMIT} at the most; "
            "lower `replicas` in a copy of it"
        )
    return MappingProxyType(models)


def _deployment(model: ModelPlan, plan: DeploymentPlan, blueprint: Blueprint) -> LocalDeployment:
    """Find the processes of a deployment and the latencies of its workers."""
    return LocalDeployment(
        model=model,
        plan=plan,
        frontend=plan.entry_point,
        workers=tuple(_workers(model, process, blueprint) for process in plan.workers),
        answer_tokens=next(
            each.workload.output_tokens for each in blueprint.spec.models if each.name == model.name
        ),
    )


def _workers(model: ModelPlan, process: Process, blueprint: Blueprint) -> LocalWorkers:
    """Find the latencies of the workers of one role."""
    if process.engine is None:
        raise ValueError(f"{process.name}: a worker has no engine")
    accelerator = _accelerator(process, blueprint)
    size = process.engine.tensor_parallel_size
    return LocalWorkers(
        process=process,
        settings=process.engine,
        accelerator=accelerator,
        profile=catalog.latency_profile(model.catalog_name, accelerator.name, size) if accelerator else None,
    )


def _accelerator(worker: Process, blueprint: Blueprint) -> Accelerator | None:
    """Return what the nodes of a worker's pool have; a pool has one kind."""
    pool = next(pool for pool in blueprint.spec.pools if pool.name == worker.pool)
    return catalog.instance_type(pool.instance_types[0]).accelerator
