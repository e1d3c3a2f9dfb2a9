"""What an upgrade would make of a blueprint and its lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inference_blueprints.catalog.releases import NodeImage, Releases, shipped_releases
from inference_blueprints.deployment.aws.account import Account
from inference_blueprints.deployment.upgrade.deployed_cluster import (
    DeployedCluster,
    compatible_add_on,
    deployed_cluster,
)
from inference_blueprints.deployment.versions.locking import own_file
from inference_blueprints.errors import UserError
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.spec import composer, source
from inference_blueprints.spec.lock.differences import Change, differences
from inference_blueprints.spec.lock.lock import Lock, Pin, lock_of, lock_path
from inference_blueprints.spec.lock.lock_reader import read_lock
from inference_blueprints.spec.lock.lock_writer import lock_text, write_text
from inference_blueprints.spec.lock.pins import Pins
from inference_blueprints.spec.text_edit import KUBERNETES_VERSION_PATH, with_kubernetes_version
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.spec.wording import allowed, listing

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Proposal:
    """An upgrade that has not been made.

    Parameters
    ----------
    text
        What is to be in it.
    blueprint
        The same, read with what it will run.
    account
        Where the platform is.
    cluster
        What there is; None where it has not been deployed.
    old_version
        Kubernetes as it is: of the cluster, else of the lock, else of the blueprint.
    add_ons
        Version to have by add-on that is deployed; None where none is compatible.
    pools
        Those whose nodes are to be replaced, where what they boot changes.
    old, new
        The lock as it is, None without one, and as it is to be.
    """

    path: Path
    text: str
    blueprint: Blueprint
    account: Account
    cluster: DeployedCluster | None
    old_version: str
    add_ons: Mapping[str, str | None]
    pools: Sequence[str]
    old: Lock | None
    new: Lock

    @property
    def new_version(self) -> str:
        """Kubernetes as it is to be."""
        return self.new.kubernetes or self.old_version

    @property
    def changes(self) -> list[Change]:
        """What is pinned otherwise; what runs counts where no lock says it."""
        known = self.old or Lock(release=self.new.release)
        found = self.cluster.add_ons if self.cluster else {}
        running = replace(
            known,
            kubernetes=self.old_version,
            add_ons={**{name: part.version for name, part in found.items()}, **known.add_ons},
        )
        return differences(running, self.new)

    def write(self) -> None:
        """Write blueprint and lock.

        Raises
        ------
        UserError
            If one cannot be written.
        """
        write_text(self.path, self.text)
        write_text(lock_path(self.path), lock_text(self.new))


def propose(file: str, to: str | None, pools: Sequence[str] = ()) -> Proposal:
    """Work out an upgrade; nothing is written.

    Parameters
    ----------
    file
        A blueprint of the user's own.
    to
        Kubernetes version; None for the one that the blueprint names.
    pools
        Pools whose nodes follow; the others are held. None named means all.

    Raises
    ------
    UserError
        If the file is a shipped blueprint, or the account cannot be asked.
    BlueprintError
        If blueprint or lock have mistakes, or what is to run does not take the blueprint.
    """
    path = own_file(file)
    locked = read_lock(lock_path(path))
    text = source.read(path, str(path))
    document = composer.parse(text, str(path))
    written = document.value(KUBERNETES_VERSION_PATH)
    if to is not None and written != to and isinstance(written, str):
        text = with_kubernetes_version(text, document, to)
    loaded = parse_blueprint(text, str(path), Pins(shipped_releases()))
    blueprint = loaded.blueprint
    eks = blueprint.spec.cluster.eks
    if eks is None:
        raise UserError(f"{path}: has no EKS cluster to upgrade")
    account = Account(blueprint.spec.environment.region)
    account.demand(blueprint.spec.environment.account)
    _demand_pools(blueprint, pools)
    cluster = deployed_cluster(account, blueprint.metadata.name)
    old = locked.lock if locked else None
    old_version = _old_version(cluster, old, written, eks.version)
    add_ons = _add_ons(account, cluster, eks.version)
    pinned = {
        **(old.add_ons if old else {}),
        **{name: version for name, version in add_ons.items() if version},
    }
    releases = replace(
        blueprint.releases,
        add_ons={**blueprint.releases.add_ons, **pinned},
        held_pools=_held_pools(blueprint, pools, old, old_version) if pools else {},
    )
    has_mark = path.read_bytes().startswith(_BYTE_ORDER_MARK.encode())
    return Proposal(
        path=path,
        text=_BYTE_ORDER_MARK + text if has_mark else text,
        blueprint=blueprint.with_releases(releases),
        account=account,
        cluster=cluster,
        old_version=old_version,
        add_ons=add_ons,
        pools=list(pools) or [pool.name for pool in blueprint.spec.pools],
        old=old,
        new=_new_lock(loaded.written, releases, old),
    )


def _demand_pools(blueprint: Blueprint, pools: Sequence[str]) -> None:
    """Refuse names that are no pool's."""
    names = [pool.name for pool in blueprint.spec.pools]
    unknown = [name for name in pools if name not in names]
    if unknown:
        raise UserError(f"--pools: got {listing(unknown)}, {allowed('pool', names)}")


def _held_pools(
    blueprint: Blueprint, pools: Sequence[str], old: Lock | None, old_version: str
) -> dict[str, NodeImage]:
    """Return what the pools go on booting that are not to follow yet, where that is something else."""
    eks = blueprint.spec.cluster.eks
    new = NodeImage(eks.version if eks else old_version, blueprint.releases.bottlerocket)
    former = NodeImage(old_version, old.bottlerocket if old and old.bottlerocket else new.bottlerocket)
    held = {
        pool.name: old.held_pools.get(pool.name, former) if old else former
        for pool in blueprint.spec.pools
        if pool.name not in pools
    }
    return {name: image for name, image in held.items() if image != new}


def _add_ons(account: Account, cluster: DeployedCluster | None, version: str) -> dict[str, str | None]:
    """Return the version that each deployed add-on is to have."""
    deployed = cluster.add_ons if cluster else {}
    return {name: compatible_add_on(account, name, version, part.version) for name, part in deployed.items()}


def _old_version(cluster: DeployedCluster | None, lock: Lock | None, written: object, version: str) -> str:
    """Return the version that counts as the present one."""
    if cluster:
        return cluster.version
    if lock and lock.kubernetes:
        return lock.kubernetes
    return written if isinstance(written, str) else version


def _new_lock(written: Blueprint, releases: Releases, old: Lock | None) -> Lock:
    """Return the lock to have; of a version that stays, so does the digest that was recorded."""
    new = lock_of(written, releases, old.models if old else {})
    if old is None:
        return new
    return replace(
        new, charts=_digests_of(new.charts, old.charts), engines=_digests_of(new.engines, old.engines)
    )


def _digests_of(new: Mapping[str, Pin], old: Mapping[str, Pin]) -> dict[str, Pin]:
    """Return new pins with the digests of old ones of the same version, where they have none."""
    return {
        name: old[name] if not pin.digest and name in old and old[name].version == pin.version else pin
        for name, pin in new.items()
    }
