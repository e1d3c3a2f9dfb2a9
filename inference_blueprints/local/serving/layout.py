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
class LocalDeployment:
    """One deployment as it is served here.

    Parameters
    ----------
    model
        The model that it serves.
    plan
        Its processes.
    frontend, worker
        The two kinds of process among them.
    settings
        The figures behind the worker's arguments.
    accelerator
        What its workers would run on; None where they need none.
    profile
        Its latencies; None where nothing was measured.
    answer_tokens
        Length of an answer whose request states none: the workload's mean.
    """

    model: ModelPlan
    plan: DeploymentPlan
    frontend: Process
    worker: Process
    settings: EngineSettings
    accelerator: Accelerator | None
    profile: LatencyProfile | None
    answer_tokens: int

    @property
    def workers_by_process(self) -> tuple[int, ...]:
        """Workers of each worker process, spread evenly."""
        replicas = self.worker.replicas
        count = min(replicas, WORKER_PROCESSES)
        return tuple(replicas // count + (index < replicas % count) for index in range(count))


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
    workers = sum(deployment.worker.replicas for each in models.values() for deployment in each)
    if workers > WORKER_LIMIT:
        raise UserError(
            f"the blueprint has {workers} workers, a local run simulates {WORKER_LIMIT} at the most; "
            "lower `replicas` in a copy of it"
        )
    return MappingProxyType(models)


def _deployment(model: ModelPlan, plan: DeploymentPlan, blueprint: Blueprint) -> LocalDeployment:
    """Find the processes of a deployment and the latencies of its workers."""
    (worker,) = (process for process in plan.processes if process.role == "worker")
    if worker.engine is None:
        raise ValueError(f"{plan.release}: the worker has no engine")
    accelerator = _accelerator(worker, blueprint)
    size = worker.engine.tensor_parallel_size
    return LocalDeployment(
        model=model,
        plan=plan,
        frontend=plan.entry_point,
        worker=worker,
        settings=worker.engine,
        accelerator=accelerator,
        profile=catalog.latency_profile(model.catalog_name, accelerator.name, size) if accelerator else None,
        answer_tokens=next(
            each.workload.output_tokens for each in blueprint.spec.models if each.name == model.name
        ),
    )


def _accelerator(worker: Process, blueprint: Blueprint) -> Accelerator | None:
    """Return what the nodes of a worker's pool have; a pool has one kind."""
    pool = next(pool for pool in blueprint.spec.pools if pool.name == worker.pool)
    return catalog.instance_type(pool.instance_types[0]).accelerator
