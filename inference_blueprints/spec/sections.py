"""The parts of a blueprint, each on its own: a mistake in one does not hide mistakes in the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_blueprints.spec.types import (
    Blueprint,
    Cluster,
    Environment,
    Metadata,
    Model,
    Network,
    Pool,
    Spec,
)


@dataclass(frozen=True, slots=True)
class Sections:
    """What of a blueprint fits the types.

    Parameters
    ----------
    metadata, environment, network, cluster
        The section; None when it does not fit.
    pools, models
        The items that fit, by their index in the file.
    whole
        Names of the sections above in which everything fits.
    """

    metadata: Metadata | None
    environment: Environment | None
    network: Network | None
    cluster: Cluster | None
    pools: Mapping[int, Pool]
    models: Mapping[int, Model]
    whole: frozenset[str]

    @classmethod
    def of(cls, blueprint: Blueprint) -> Sections:
        """Take a blueprint apart in which everything fits."""
        spec = blueprint.spec
        return cls(
            metadata=blueprint.metadata,
            environment=spec.environment,
            network=spec.network,
            cluster=spec.cluster,
            pools=dict(enumerate(spec.pools)),
            models=dict(enumerate(spec.models)),
            whole=frozenset({"metadata", *Spec.model_fields}),
        )
