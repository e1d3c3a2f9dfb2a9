"""Checks that lent capacity can be back as soon as the blueprint says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from inference_blueprints.serving.estimates.worker_start import WorkerStart, worker_start
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.engine_process import engine_image
from inference_contracts.errors import Finding


def longest_start(roles: Iterable[ResolvedWorkers]) -> WorkerStart:
    """Return the start of a worker on a new node whose measured and computed parts take longest.

    Published times are of other hardware and do not count. Neither do images of unknown size.

    roles: Workers of roles of a deployment.
    """
    starts = (
        worker_start(role, engine_image(role), kind, together=1) for role in roles for kind in role.types
    )
    return max(starts, key=lambda start: start.minimum.seconds)


def shift_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check that `reclaimSeconds` is not below the minimum start of a deployment's elastic workers.

    roles: Workers of every role of a deployment.
    """
    shift = roles[0].blueprint.spec.capacity_shift
    elastic = [role for role in roles if role.workers.scaled_by is not None]
    if shift is None or not elastic:
        return
    minimum = longest_start(elastic).minimum
    if shift.reclaim_seconds < minimum.seconds:
        message = (
            f"got {shift.reclaim_seconds}, but a worker of {roles[0].release} on a new node needs at least "
            f"{math.ceil(minimum.seconds)} s ({minimum.clause}); raise it to "
            f"{math.ceil(minimum.seconds)} or more, "
            "so that the forecast looks as far ahead"
        )
        yield Finding(("spec", "capacityShift", "reclaimSeconds"), message)
