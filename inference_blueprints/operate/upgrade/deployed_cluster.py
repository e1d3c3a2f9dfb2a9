"""EKS's description of a platform's cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_catalog.releases import version_order


@dataclass(frozen=True, slots=True)
class ClusterComponent:
    """An add-on or a managed node group.

    Parameters
    ----------
    version
        Version of the add-on; Kubernetes version of nodes.
    status
        EKS's status, such as ``ACTIVE``.
    """

    version: str
    status: str


@dataclass(frozen=True, slots=True)
class DeployedCluster:
    """A deployed cluster.

    Parameters
    ----------
    name
        Name of the cluster and of its platform.
    version
        Kubernetes version, such as ``1.35``.
    status
        EKS's status, such as ``ACTIVE``.
    add_ons
        Add-ons by name, of those that a platform can have.
    nodegroups
        Managed node groups by name.
    """

    name: str
    version: str
    status: str
    add_ons: Mapping[str, ClusterComponent]
    nodegroups: Mapping[str, ClusterComponent]


def deployed_cluster(account: Account, name: str, add_on_names: Collection[str]) -> DeployedCluster | None:
    """Describe the cluster of a platform.

    Parameters
    ----------
    add_on_names
        Add-ons that the platform has. Others of the cluster are left out.

    Returns
    -------
    DeployedCluster or None
        None if the platform has not been deployed.

    Raises
    ------
    UserError
        If AWS refuses to describe it, or the credentials are missing.
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

    Parameters
    ----------
    account
        Account with the region of the platform.
    installed
        Installed version; it stays if it is compatible and newer than EKS's default.

    Returns
    -------
    str or None
        The newer one of EKS's default and the installed version; without either, the newest compatible one;
        None if no version is compatible.

    Raises
    ------
    UserError
        If AWS refuses the request.
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
