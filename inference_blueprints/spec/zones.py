"""The zones that a platform is in."""

from __future__ import annotations

import inference_catalog as catalog
from inference_blueprints.spec.types import Environment
from inference_catalog.addresses import DEFAULT_ZONES


def platform_zones(environment: Environment) -> list[str]:
    """Return the zones that the blueprint names, or the first that the catalogue knows; no account is asked.

    environment: The blueprint's section; without zones its region is one that the catalogue knows.
    """
    return list(environment.availability_zones or catalog.regions()[environment.region][:DEFAULT_ZONES])
