"""The target ``local``: decides which processes each deployment needs, before any process starts."""

from __future__ import annotations

from inference_blueprints.render.target import Target
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.types import ModelPlan
from inference_blueprints.spec.types import Blueprint, Media
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.image_requests import TEXT_ALONE, ImageLimits
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.simulated_kind import SimulatedKind


class LocalTarget(Target[LocalDeployment]):
    """Frontends in front of engines on this machine.

    blueprint: The blueprint of the plan. It names the instance types of the pools.
    engines: The engines, such as those of ``engine_kinds.ENGINE_KINDS``. By default, simulated ones.
    """

    def __init__(self, blueprint: Blueprint, engines: EngineKind | None = None) -> None:
        self._blueprint = blueprint
        self._engines = engines or SimulatedKind(blueprint)

    def render(self, model: ModelPlan) -> tuple[LocalDeployment, ...]:
        """Return the processes of each deployment, in the order of the plan."""
        index = [each.name for each in self._blueprint.spec.models].index(model.name)
        return tuple(self._deployment(model, index, number) for number in range(len(model.deployments)))

    def _deployment(self, model: ModelPlan, model_index: int, index: int) -> LocalDeployment:
        plan = model.deployments[index]
        roles = resolve(self._blueprint, model_index, index)
        section = roles[0].model
        return LocalDeployment(
            model=model,
            plan=plan,
            frontend=self._engines.frontend(plan, roles),
            workers=self._engines.workers(plan, roles),
            answer_tokens=roles[0].traffic.means.output_tokens,
            images=None if self._engines.reads_images else _image_limits(section.media),
        )


def _image_limits(media: Media | None) -> ImageLimits:
    """Return the limits on images. Without the section, requests may contain no images."""
    if media is None:
        return TEXT_ALONE
    return ImageLimits(media.images_per_request, media.tokens_per_image, tuple(media.allowed_domains))
