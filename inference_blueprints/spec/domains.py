"""The private DNS zone of a platform."""

from __future__ import annotations

from inference_blueprints.spec.types import Network


def models_domain(platform: str, network: Network) -> str:
    """Return the private zone in which each model has a name.

    platform: ``metadata.name``.
    network: The blueprint's section.
    """
    return network.domain or f"{platform}.internal"
