"""The parts of a blueprint, each on its own: a mistake in one does not hide mistakes in the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_blueprints.spec.types import (
    API_VERSION,
    KIND,
    Batch,
    Blueprint,
    Cluster,
    Environment,
    Metadata,
    Model,
    Network,
    Pool,
    Queueing,
    SignalStore,
    Spec,
    Team,
)
from inference_blueprints.spec.wording import Path


@dataclass(frozen=True, slots=True)
class Sections:
    """What of a blueprint fits the types.

    Parameters
    ----------
    metadata, environment, network, cluster
        The section; None when it does not fit.
    queueing, batch, signal_store
        The section; None when it does not fit, or is not there.
    pools, models, teams
        The items that fit, by their index in the file.
    pool_names, model_names
        Names of all of them, also of those that do not fit otherwise; None when one cannot be told.
    team_count, queue_count
        How many teams and queues the file has, also such as do not fit.
    signal_owners
        Teams by the names of their signals, of which there may be none; None when they cannot be told.
    about
        The list of which only one item is in here; rules that do not read it have nothing new to say.
    """

    metadata: Metadata | None
    environment: Environment | None
    network: Network | None
    cluster: Cluster | None
    queueing: Queueing | None
    batch: Batch | None
    signal_store: SignalStore | None
    pools: Mapping[int, Pool]
    models: Mapping[int, Model]
    teams: Mapping[int, Team]
    pool_names: tuple[str, ...] | None
    model_names: tuple[str, ...] | None
    team_count: int
    queue_count: int
    signal_owners: Mapping[str, str] | None
    about: str | None = None

    def blueprint(self) -> Blueprint | None:
        """Return a blueprint of the pools and models that fit; None when another section does not."""
        if self.metadata is None or self.environment is None or self.network is None or self.cluster is None:
            return None
        spec = Spec.model_construct(
            environment=self.environment,
            network=self.network,
            cluster=self.cluster,
            queueing=self.queueing,
            pools=list(self.pools.values()),
            models=list(self.models.values()),
            teams=list(self.teams.values()),
            batch=self.batch,
            signal_store=self.signal_store,
        )
        return Blueprint.model_construct(
            api_version=API_VERSION, kind=KIND, metadata=self.metadata, spec=spec
        )

    def path_in_file(self, path: Path) -> Path:
        """Return the path in the file of a path in that blueprint, whose lists lack what does not fit."""
        for name, items in (("pools", self.pools), ("models", self.models), ("teams", self.teams)):
            match path:
                case ("spec", str(key), int(index), *rest) if key == name:
                    return ("spec", name, list(items)[index], *rest)
        return path

    @classmethod
    def of(cls, blueprint: Blueprint) -> Sections:
        """Take a blueprint apart in which everything fits."""
        spec = blueprint.spec
        return cls(
            metadata=blueprint.metadata,
            environment=spec.environment,
            network=spec.network,
            cluster=spec.cluster,
            queueing=spec.queueing,
            batch=spec.batch,
            signal_store=spec.signal_store,
            pools=dict(enumerate(spec.pools)),
            models=dict(enumerate(spec.models)),
            teams=dict(enumerate(spec.teams)),
            pool_names=tuple(pool.name for pool in spec.pools),
            model_names=tuple(model.name for model in spec.models),
            team_count=len(spec.teams),
            queue_count=len(spec.batch.queues) if spec.batch else 0,
            signal_owners=_owners(spec.signal_store),
        )


def _owners(store: SignalStore | None) -> Mapping[str, str]:
    """Return teams by the names of their signals."""
    return {signal.name: signal.team for signal in store.signals} if store else {}
