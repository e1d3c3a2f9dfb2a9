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
#: Workers of all deployments together; each takes some 15 MB beside its process, and a share of the processors.
WORKER_LIMIT = 256


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
    """

    model: ModelPlan
    plan: DeploymentPlan
    frontend: Process
    worker: Process
    settings: EngineSettings
    accelerator: Accelerator | None
    profile: LatencyProfile | None

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
    accelerators = {
        pool.name: catalog.instance_type(pool.instance_types[0]).accelerator for pool in blueprint.spec.pools
    }
    models = {
        model.name: tuple(_deployment(model, deployment, accelerators) for deployment in model.deployments)
        for model in plan.models
    }
    workers = sum(deployment.worker.replicas for each in models.values() for deployment in each)
    if workers > WORKER_LIMIT:
        raise UserError(
            f"the blueprint has {workers} workers, a local run simulates {WORKER_LIMIT} at the most; "
            "lower `replicas` in a copy of it"
        )
    return MappingProxyType(models)


def _deployment(
    model: ModelPlan, plan: DeploymentPlan, accelerators: Mapping[str, Accelerator | None]
) -> LocalDeployment:
    """Find the processes of a deployment and the latencies of its workers."""
    (worker,) = (process for process in plan.processes if process.role == "worker")
    if worker.engine is None or worker.pool is None:
        raise ValueError(f"{plan.release}: the worker has no engine or no pool")
    accelerator = accelerators[worker.pool]
    profile = accelerator and catalog.latency_profile(
        model.catalog_name, accelerator.name, worker.engine.tensor_parallel_size
    )
    return LocalDeployment(model, plan, plan.entry_point, worker, worker.engine, accelerator, profile)
