"""Checks that lent capacity can be back as soon as the blueprint says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inference_blueprints.errors import Finding
from inference_blueprints.serving.estimates.worker_start import worker_start
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.stacks.engine_process import engine_image


def least_start_seconds(role: ResolvedWorkers) -> float:
    """Return the time that a worker on a new node needs at least: computed and measured parts of its start.

    Published times are of other hardware and do not count. Neither do images of unknown size.

    Parameters
    ----------
    role
        Workers of a role of a deployment.
    """
    image = engine_image(role)
    return max(worker_start(role, image, kind, together=1).least_seconds for kind in role.instance_types)


def shift_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check that `reclaimSeconds` is not below the minimum start of a deployment's elastic workers.

    Parameters
    ----------
    roles
        Workers of every role of a deployment.
    """
    shift = roles[0].blueprint.spec.capacity_shift
    elastic = [role for role in roles if role.workers.scaled_by is not None]
    if shift is None or not elastic:
        return
    longest = max(map(least_start_seconds, elastic))
    if shift.reclaim_seconds < longest:
        message = (
            f"got {shift.reclaim_seconds}, but a worker of {roles[0].release} on a new node needs at least "
            f"{math.ceil(longest)} s for image, weights and measured parts; raise it to {math.ceil(longest)} "
            "or more, so that the forecast looks as far ahead"
        )
        yield Finding(("spec", "capacityShift", "reclaimSeconds"), message)
