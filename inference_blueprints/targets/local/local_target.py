"""The target ``local``: decides which processes each deployment needs, before any process starts."""

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

#: Up to this number, each worker of a role has its own process, so that a single worker can be killed.
WORKER_PROCESSES = 8
#: Maximum number of workers of all deployments. On two processors, 128 workers register in seven seconds. Of
#: 256 workers, some time out while they wait for the lock of Dynamo's file discovery (1.6.1).
WORKER_LIMIT = 128


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """The simulated workers of one role.

    Parameters
    ----------
    name
        Name of their process in the plan.
    arguments
        Engine arguments of that process.
    accelerator
        The accelerator that they are planned for.
    simulated
        Settings of the simulated engine.
    """

    name: str
    arguments: tuple[str, ...]
    accelerator: Accelerator
    simulated: SimulatedWorkers

    @property
    def by_process(self) -> tuple[int, ...]:
        """Number of workers per process on this machine, spread evenly."""
        replicas = self.simulated.replicas
        count = min(replicas, WORKER_PROCESSES)
        return tuple(replicas // count + (index < replicas % count) for index in range(count))


@dataclass(frozen=True, slots=True)
class LocalDeployment:
    """One deployment on this machine.

    Parameters
    ----------
    model
        The model that it serves.
    plan
        Its processes.
    frontend
        The frontend process. It is Dynamo's for every stack, because the simulated engines are Dynamo's.
    workers
        The workers of each role: aggregated, or prefill and decode.
    answer_tokens
        Answer length for requests that state none: the workload's mean.
    images
        Limits on the images in requests.
    """

    model: ModelPlan
    plan: DeploymentPlan
    frontend: Process
    workers: tuple[LocalWorkers, ...]
    answer_tokens: int
    images: ImageLimits

    @property
    def has_its_router(self) -> bool:
        """Whether the router is the one in the plan, not a stand-in."""
        return self.frontend == self.plan.entry_point

    @property
    def worker_count(self) -> int:
        """Number of workers of all roles."""
        return sum(each.simulated.replicas for each in self.workers)

    @property
    def context_length(self) -> int:
        """Maximum length of prompt and answer together, in tokens."""
        return min(each.simulated.settings.max_model_len for each in self.workers)

    @property
    def profile(self) -> LatencyProfile | None:
        """Latency profile of the workers that generate tokens. None if the workers of any role have none."""
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
        """Yield a finding for each part of the blueprint that cannot be simulated on this machine.

        Dynamo's simulated engine writes tokens and no vectors (``dynamo/mocker`` of ai-dynamo 1.6.1).
        """
        for index, model in usable(blueprint.spec.models):
            if model.task == "embed":
                message = (
                    f"the model '{model.name}' has 'task: embed', and the simulated engine computes no "
                    "vectors; remove the model in a copy of the blueprint"
                )
                yield Finding(("spec", "models", index, "task"), message)
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
    """Return the processes of a deployment and the latencies of its workers."""
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
    """Return the limits on images. Without the section, requests may contain no images."""
    if media is None:
        return TEXT_ALONE
    return ImageLimits(media.images_per_request, media.tokens_per_image, tuple(media.allowed_domains))
