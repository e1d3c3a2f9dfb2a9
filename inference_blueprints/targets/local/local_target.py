"""The target on this machine: what is started for each deployment, decided before any process runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inference_blueprints.catalog import Accelerator, LatencyProfile
from inference_blueprints.errors import Finding
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.types import DeploymentPlan, ModelPlan, Process
from inference_blueprints.simulation.simulated_workers import SimulatedWorkers, simulated_workers
from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.types import Blueprint, Media
from inference_blueprints.targets.local.image_requests import TEXT_ALONE, ImageLimits
from inference_blueprints.targets.target import Target

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


class LocalTarget(Target[LocalDeployment]):
    """Dynamo's frontends in front of simulated engines, on this machine.

    Parameters
    ----------
    blueprint
        The blueprint of the plan. It names the instance types of the pools.
    """

    def __init__(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint

    @classmethod
    def findings(cls, blueprint: Blueprint) -> Iterator[Finding]:
        """Yield a finding if the blueprint has more workers than this machine should simulate."""
        workers = sum(
            role.workers.replicas
            for model_index, model in usable(blueprint.spec.models)
            for deployment_index, _ in usable(model.deployments)
            for role in resolve(blueprint, model_index, deployment_index)
        )
        if workers > WORKER_LIMIT:
            message = (
                f"the blueprint has {workers} workers, a local run simulates at most {WORKER_LIMIT}; lower "
                "`replicas` in a copy of it"
            )
            yield Finding(("spec", "models"), message)

    def render(self, model: ModelPlan) -> tuple[LocalDeployment, ...]:
        """Return the processes of each deployment, in the order of the plan."""
        index = [each.name for each in self._blueprint.spec.models].index(model.name)
        return tuple(
            _deployment(model, deployment, resolve(self._blueprint, index, deployment_index))
            for deployment_index, deployment in enumerate(model.deployments)
        )


def _deployment(
    model: ModelPlan, plan: DeploymentPlan, roles: tuple[ResolvedWorkers, ...]
) -> LocalDeployment:
    """Find the processes of a deployment and the latencies of its workers."""
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
