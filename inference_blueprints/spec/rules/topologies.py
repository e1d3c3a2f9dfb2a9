"""A rule on prefill and decode."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.rules.deployments import each_deployment
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding


def one_topology(spec: Spec) -> Iterator[Finding]:
    """Check that a deployment is either aggregated or disaggregated."""
    for placed in each_deployment(spec):
        given = [
            quote(key)
            for key in ("aggregated", "disaggregated")
            if getattr(placed.deployment, key) is not None
        ]
        if len(given) != 1:
            got = " and ".join(given) or "neither"
            yield Finding(placed.path, f"got {got}, expected exactly one of 'aggregated', 'disaggregated'")
