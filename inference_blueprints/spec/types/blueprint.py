"""The whole of a blueprint file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PrivateAttr

from inference_blueprints.catalog.releases import Releases, shipped_releases
from inference_blueprints.spec.types.batch import Batch, Team
from inference_blueprints.spec.types.environment import Cluster, Environment, Metadata, Network
from inference_blueprints.spec.types.models import Model
from inference_blueprints.spec.types.pools import Pool
from inference_blueprints.spec.types.queueing import Queueing
from inference_blueprints.spec.types.section import Section, default
from inference_blueprints.spec.types.signals import SignalStore


class Spec(Section):
    """The platform."""

    environment: Environment
    """Where it is deployed."""
    network: Network = default({})
    """How it is reached."""
    cluster: Cluster
    """What runs the containers."""
    # Of 4 KB each in a template of 1 MB; queues, tags and long lists of types may double that.
    pools: list[Pool] = Field(min_length=1, max_length=100)
    """Accelerated nodes."""
    queueing: Queueing | None = None
    """What lets jobs onto the pools, beside the models; without it nothing does."""
    # Each is a rule of the one load balancer, which has a hundred.
    models: list[Model] = Field(min_length=1, max_length=100)
    """Models that are served."""
    teams: list[Team] = Field(default_factory=list, max_length=200)
    """Those who submit jobs; needed for batch."""
    batch: Batch | None = None
    """Jobs of many requests; without it there is no batch."""
    signal_store: SignalStore | None = None
    """Where jobs leave answers by key; without it they are in files alone."""


class Blueprint(Section):
    """A whole blueprint file."""

    api_version: Literal["inference-blueprints/v1alpha1"]
    """Version of this format."""
    kind: Literal["Blueprint"]
    """Always Blueprint."""
    metadata: Metadata
    """What the platform is called."""
    spec: Spec
    """The platform."""

    _releases: Releases = PrivateAttr(default_factory=shipped_releases)

    @property
    def releases(self) -> Releases:
        """What it runs that others release: this library's pins, or those of its lock."""
        return self._releases

    def with_releases(self, releases: Releases) -> Blueprint:
        """Return the same blueprint with other releases.

        Parameters
        ----------
        releases
            What it runs.
        """
        copy = self.model_copy()
        copy._releases = releases
        return copy
