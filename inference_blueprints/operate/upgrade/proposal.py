"""The effect of an upgrade on a blueprint and its lock."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.platform_add_ons import platform_add_ons
from inference_blueprints.operate.versions import own_file
from inference_blueprints.spec import composer, source, validation
from inference_blueprints.spec.lock.adjacent_files import AdjacentFiles
from inference_blueprints.spec.lock.lock import Change, Lock, Pin, differences, lock_of, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text, read_lock, write_text
from inference_blueprints.spec.text_edit import KUBERNETES_VERSION_PATH, with_kubernetes_version
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.spec.wording import allowed, listing
from inference_catalog.releases import NodeImage, Releases, shipped_releases, version_order
from inference_contracts.errors import BlueprintError, Problem, UserError
from inference_contracts.records import dataclass

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class ClusterComponent:
    """An add-on or a managed node group."""

    version: str
    """Version of the add-on; Kubernetes version of nodes."""
    status: str
    """EKS's status, such as ``ACTIVE``."""


@dataclass(frozen=True, slots=True)
class DeployedCluster:
    """A deployed cluster."""

    name: str
    """Name of the cluster and of its platform."""
    version: str
    """Kubernetes version, such as ``1.35``."""
    status: str
    """EKS's status, such as ``ACTIVE``."""
    add_ons: Mapping[str, ClusterComponent]
    """Add-ons by name, of those that a platform can have."""
    nodegroups: Mapping[str, ClusterComponent]
    """Managed node groups by name."""


def deployed_cluster(account: Account, name: str, add_on_names: Collection[str]) -> DeployedCluster | None:
    """Describe the cluster of a platform.

    add_on_names: Add-ons that the platform has. Others of the cluster are left out.
    Returns: None if the platform has not been deployed.
    Raises UserError if AWS refuses to describe it, or the credentials are missing.
    """
    eks = account.client("eks")
    with readable_errors():
        try:
            cluster = eks.describe_cluster(name=name)["cluster"]
        except eks.exceptions.ResourceNotFoundException:
            return None
        add_ons = {}
        for page in eks.get_paginator("list_addons").paginate(clusterName=name):
            for add_on in set(page["addons"]) & set(add_on_names):
                found = eks.describe_addon(clusterName=name, addonName=add_on)["addon"]
                add_ons[add_on] = ClusterComponent(found["addonVersion"], found["status"])
        nodegroups = {}
        for page in eks.get_paginator("list_nodegroups").paginate(clusterName=name):
            for group in page["nodegroups"]:
                found = eks.describe_nodegroup(clusterName=name, nodegroupName=group)["nodegroup"]
                nodegroups[group] = ClusterComponent(found["version"], found["status"])
    return DeployedCluster(
        name, cluster["version"], cluster["status"], dict(sorted(add_ons.items())), nodegroups
    )


def compatible_add_on(account: Account, name: str, kubernetes: str, installed: str) -> str | None:
    """Return the version of an add-on for a version of Kubernetes.

    account: Account with the region of the platform.
    installed: Installed version; it stays if it is compatible and newer than EKS's default.
    Returns: The newer one of EKS's default and the installed version; without either, the newest compatible
        one; None if no version is compatible.
    Raises UserError if AWS refuses the request.
    """
    compatible: dict[str, bool] = {}
    with readable_errors():
        pages = account.client("eks").get_paginator("describe_addon_versions")
        for page in pages.paginate(addonName=name, kubernetesVersion=kubernetes):
            for add_on in page["addons"]:
                for each in add_on["addonVersions"]:
                    compatible[each["addonVersion"]] = any(
                        entry.get("defaultVersion") and entry.get("clusterVersion") == kubernetes
                        for entry in each["compatibilities"]
                    )
    defaults = [version for version, is_default in compatible.items() if is_default]
    kept = [installed] if installed in compatible else []
    return max([*defaults, *kept] or compatible, key=version_order, default=None)


@dataclass(frozen=True, slots=True)
class Proposal:
    """An upgrade that has not been made."""

    path: Path
    text: str
    """New text of the blueprint."""
    blueprint: Blueprint
    """The new blueprint with its releases."""
    account: Account
    """Account of the platform."""
    cluster: DeployedCluster | None
    """Deployed EKS cluster; None if there is none."""
    old_version: str
    """Present Kubernetes version: of the cluster, else of the lock, else of the blueprint. Empty on ECS."""
    add_ons: Mapping[str, str | None]
    """New version by deployed add-on; None if no version is compatible."""
    pools: Sequence[str]
    """Pools whose nodes are replaced if their image changes."""
    old: Lock | None
    new: Lock
    """`old`, `new`: The present lock, None if there is none, and the new one."""

    @property
    def on_ecs(self) -> bool:
        """Whether the platform runs on ECS, which has no Kubernetes version."""
        return self.blueprint.spec.cluster.ecs is not None

    @property
    def new_version(self) -> str:
        """Kubernetes version after the upgrade."""
        return self.new.kubernetes or self.old_version

    @property
    def changes(self) -> list[Change]:
        """Changed pins. A version that runs but is not in the lock counts as the old one."""
        known = self.old or Lock(release=self.new.release)
        found = self.cluster.add_ons if self.cluster else {}
        running = replace(
            known,
            kubernetes=self.old_version,
            add_ons={**{name: part.version for name, part in found.items()}, **known.add_ons},
        )
        return differences(running, self.new)

    def write(self) -> None:
        """Write blueprint and lock. Raises UserError if a file cannot be written."""
        write_text(self.path, self.text)
        write_text(lock_path(self.path), lock_text(self.new))


class UnfitError(BlueprintError):
    """A blueprint does not fit the new releases, or has errors of its own.

    problems: Why.
    changes: Pins that the upgrade would change. Empty if the blueprint has values of wrong types.
    """

    def __init__(self, problems: Sequence[Problem], changes: Sequence[Change]) -> None:
        super().__init__([*problems])
        self.changes = tuple(changes)


def _changes_of_pins(text: str, path: Path, written: object, old: Lock | None) -> list[Change]:
    """Return what an upgrade would change of the lock; add-ons, which EKS chooses, are left out.

    text: New text of the blueprint. Its types alone count.
    written: Kubernetes version in the present text.
    """
    checked = validation.validate(composer.parse(text, str(path)))
    if not checked.is_complete:
        return []
    shipped, known = shipped_releases(), old or Lock(release="")
    new = _new_lock(checked.blueprint, replace(shipped, add_ons={**shipped.add_ons, **known.add_ons}), old)
    present = known.kubernetes or (written if isinstance(written, str) else new.kubernetes)
    return differences(replace(known, release=known.release or new.release, kubernetes=present), new)


def propose(file: str, to: str | None, pools: Sequence[str] = ()) -> Proposal:
    """Plan an upgrade; nothing is written.

    file: The user's own blueprint.
    to: Kubernetes version; None for the one in the blueprint.
    pools: Pools whose nodes are upgraded; the others are held. Empty for all.
    Raises UserError if the file is a shipped blueprint, or AWS refuses a request. Raises UnfitError if the
        blueprint or the lock has errors, or the new releases do not support the blueprint.
    """
    path = own_file(file)
    locked = read_lock(lock_path(path))
    text = source.read(path, str(path))
    document = composer.parse(text, str(path))
    written = document.value(KUBERNETES_VERSION_PATH)
    if to is not None and written != to and isinstance(written, str):
        text = with_kubernetes_version(text, document, to)
    pins = replace(AdjacentFiles(path).pins(), releases=shipped_releases(), lock=None)
    try:
        loaded = parse_blueprint(text, str(path), pins)
    except BlueprintError as error:
        old = locked.lock if locked else None
        raise UnfitError(error.problems, _changes_of_pins(text, path, written, old)) from error
    blueprint = loaded.blueprint
    eks = blueprint.spec.cluster.eks
    if eks is None and (to is not None or pools):
        raise UserError(
            f"{path}: got {'--to' if to else '--pools'}, but the platform runs on ECS: there is no "
            "Kubernetes version, and hosts have the image of this release; leave it out"
        )
    account = Account(blueprint.spec.environment.region)
    account.demand(blueprint.spec.environment.account)
    _demand_pools(blueprint, pools)
    old = locked.lock if locked else None
    cluster, old_version = None, ""
    if eks is not None:
        cluster = deployed_cluster(account, blueprint.metadata.name, platform_add_ons(blueprint.spec))
        old_version = _old_version(cluster, old, written, eks.version)
    add_ons = _add_ons(account, cluster, eks.version) if eks else {}
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
    """Refuse names that are not pools."""
    names = [pool.name for pool in blueprint.spec.pools]
    unknown = [name for name in pools if name not in names]
    if unknown:
        raise UserError(f"--pools: got {listing(unknown)}, {allowed('pool', names)}")


def _held_pools(
    blueprint: Blueprint, pools: Sequence[str], old: Lock | None, old_version: str
) -> dict[str, NodeImage]:
    """Return the node images of the pools that are held, if they differ from the new one."""
    eks = blueprint.spec.cluster.eks
    releases = blueprint.releases
    new = NodeImage(eks.version if eks else old_version, releases.bottlerocket, releases.al2023)
    former = replace(new, kubernetes=old_version)
    if old:
        systems = {"bottlerocket": old.bottlerocket, "al2023": old.al2023}
        former = replace(former, **{name: release for name, release in systems.items() if release})
    held = {
        pool.name: old.held_pools.get(pool.name, former) if old else former
        for pool in blueprint.spec.pools
        if pool.name not in pools
    }
    return {name: image for name, image in held.items() if image != new}


def _add_ons(account: Account, cluster: DeployedCluster | None, version: str) -> dict[str, str | None]:
    """Return the new version of each deployed add-on."""
    deployed = cluster.add_ons if cluster else {}
    return {name: compatible_add_on(account, name, version, part.version) for name, part in deployed.items()}


def _old_version(cluster: DeployedCluster | None, lock: Lock | None, written: object, version: str) -> str:
    """Return the present Kubernetes version."""
    if cluster:
        return cluster.version
    if lock and lock.kubernetes:
        return lock.kubernetes
    return written if isinstance(written, str) else version


def _new_lock(written: Blueprint, releases: Releases, old: Lock | None) -> Lock:
    """Return the new lock; a version that stays keeps its recorded digest."""
    new = lock_of(written, releases, old.models if old else {})
    if old is None:
        return new
    return replace(
        new,
        charts=_digests_of(new.charts, old.charts),
        engines=_digests_of(new.engines, old.engines),
        identity=old.identity,
    )


def _digests_of(new: Mapping[str, Pin], old: Mapping[str, Pin]) -> dict[str, Pin]:
    """Return new pins; a pin without a digest gets the old one if the version is the same."""
    return {
        name: old[name] if not pin.digest and name in old and old[name].version == pin.version else pin
        for name, pin in new.items()
    }
