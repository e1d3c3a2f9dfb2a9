"""A deployed platform whose API server answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_blueprints.operate.verify.cluster_access import ClusterAccess
from inference_blueprints.operate.verify.serving_access import Transferred
from inference_blueprints.operate.verify.verified_platform import ClusterReader, VerifiedPlatform
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint


@dataclass(frozen=True, slots=True)
class RunningPlatform:
    """A platform with its API server."""

    platform: VerifiedPlatform
    kubectl: ClusterReader
    transferred: Mapping[str, Transferred] = field(default_factory=dict)
    answered: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """`transferred`, `answered`: Counters before the requests of the checks, as `ServedPlatform` describes
    them."""

    @property
    def blueprint(self) -> Blueprint:
        """The blueprint."""
        return self.platform.blueprint

    @property
    def plan(self) -> ServingPlan:
        """The blueprint's plan."""
        return self.platform.plan

    @property
    def access(self) -> ClusterAccess:
        """Access to its pods."""
        return ClusterAccess(self.platform, self.kubectl)
