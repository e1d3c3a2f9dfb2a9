"""The images of each deployment that makes some."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from inference_blueprints.report.figures import PoolSummary, ProcessSummary
from inference_blueprints.report.figures.image_summary import ImageSummary
from inference_blueprints.report.pricing.deployment_share import share_of
from inference_blueprints.serving.performance.image_rate import image_speed, images_per_second
from inference_blueprints.serving.resolved import ResolvedWorkers

_SECONDS_AN_HOUR = 3600.0
_THOUSAND = 1000.0


def summarise_images(
    roles: Iterable[ResolvedWorkers],
    pools: Sequence[PoolSummary],
    processes: Sequence[ProcessSummary],
) -> Iterator[ImageSummary]:
    """Yield the images of each deployment that makes some, in the blueprint's order.

    Parameters
    ----------
    roles
        Workers of all roles.
    pools, processes
        Figures of the plan, for the deployment's share of the nodes' price.
    """
    for resolved in roles:
        images = resolved.model.workload.images
        if images is None:
            continue
        speed = image_speed(resolved)
        rate = speed.images_per_second * resolved.workers.most if speed else None
        _, usd = share_of({(resolved.model.name, resolved.deployment.name)}, pools, processes)
        yield ImageSummary(
            deployment=f"{resolved.model.name}/{resolved.label}",
            size=images.size,
            steps=images.steps,
            peak_images_per_second=images_per_second(resolved),
            workers=resolved.workers.most,
            images_per_second=rate,
            usd_per_thousand_images=None
            if rate is None or usd is None
            else usd / _SECONDS_AN_HOUR / rate * _THOUSAND,
            source=f"{speed.source} ({speed.date}). {speed.conditions}" if speed else "",
        )
