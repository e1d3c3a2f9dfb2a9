"""The zones that a platform is in."""

from __future__ import annotations

from inference_blueprints import catalog
from inference_blueprints.catalog.addresses import DEFAULT_ZONES
from inference_blueprints.spec.types import Environment


def platform_zones(environment: Environment) -> list[str]:
    """Return the zones that the blueprint names, or the first that the catalogue knows; no account is asked.

    Parameters
    ----------
    environment
        The blueprint's section; without zones its region is one that the catalogue knows.
    """
    return list(environment.availability_zones or catalog.regions()[environment.region][:DEFAULT_ZONES])
