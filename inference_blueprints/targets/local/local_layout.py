"""What of a plan is started on this machine: pure, before any process runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from inference_blueprints.catalog import Accelerator, LatencyProfile
from inference_blueprints.errors import UserError
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, Process, ServingPlan
from inference_blueprints.simulation.simulated_workers import SimulatedWorkers, simulated_workers
from inference_blueprints.spec.types import Blueprint, Media
from inference_blueprints.targets.local.image_requests import TEXT_ALONE, ImageLimits

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
    name
        Of their process in the plan.
    arguments
        Engine arguments of that process.
    accelerator
        What they would run on.
    simulated
        What the simulated engine is told.
    """

    name: str
    arguments: tuple[str, ...]
    accelerator: Accelerator
    simulated: SimulatedWorkers

    @property
    def by_process(self) -> tuple[int, ...]:
        """Workers of each process on this machine, spread evenly."""
        replicas = self.simulated.replicas
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
        The one that answers: Dynamo's, whose simulated engines stand behind it, whatever the stack.
    workers
        Those that run an engine: one kind, or prefill and decode.
    answer_tokens
        Length of an answer whose request states none: the workload's mean.
    images
        What requests may hold of images.
    """

    model: ModelPlan
    plan: DeploymentPlan
    frontend: Process
    workers: tuple[LocalWorkers, ...]
    answer_tokens: int
    images: ImageLimits

    @property
    def has_its_router(self) -> bool:
        """Whether the router is the one that the plan names, and no stand-in."""
        return self.frontend == self.plan.entry_point

    @property
    def worker_count(self) -> int:
        """Workers of all roles."""
        return sum(each.simulated.replicas for each in self.workers)

    @property
    def context_length(self) -> int:
        """Prompt and answer together at the most, in tokens."""
        return min(each.simulated.settings.max_model_len for each in self.workers)

    @property
    def profile(self) -> LatencyProfile | None:
        """Latencies of the workers that write answers; None where something of it was not measured."""
        known = [each.simulated.profile for each in self.workers]
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
        model.name: tuple(
            _deployment(model, deployment, blueprint, (model_index, deployment_index))
            for deployment_index, deployment in enumerate(model.deployments)
        )
        for model_index, model in enumerate(plan.models)
    }
    workers = sum(deployment.worker_count for each in models.values() for deployment in each)
    if workers > WORKER_LIMIT:
        raise UserError(
            f"the blueprint has {workers} workers, a local run simulates {WORKER_LIMIT} at the most; "
            "lower `replicas` in a copy of it"
        )
    return MappingProxyType(models)


def _deployment(
    model: ModelPlan, plan: DeploymentPlan, blueprint: Blueprint, place: tuple[int, int]
) -> LocalDeployment:
    """Find the processes of a deployment and the latencies of its workers."""
    roles = resolve(blueprint, *place)
    return LocalDeployment(
        model=model,
        plan=plan,
        frontend=plan.entry_point if plan.stack == "dynamo" else STACKS["dynamo"].entry_point(roles[0]),
        workers=tuple(
            LocalWorkers(process.name, process.arguments, role.accelerator, simulated)
            for role, process, simulated in zip(
                roles, plan.workers, simulated_workers(roles, plan.workers), strict=True
            )
        ),
        answer_tokens=roles[0].model.workload.output_tokens,
        images=_image_limits(roles[0].model.media),
    )


def _image_limits(media: Media | None) -> ImageLimits:
    """Return what requests may hold of images: nothing without the section."""
    if media is None:
        return TEXT_ALONE
    return ImageLimits(media.images_per_request, media.tokens_per_image, tuple(media.allowed_domains))
