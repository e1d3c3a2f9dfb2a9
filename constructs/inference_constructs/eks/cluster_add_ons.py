"""Add-ons that EKS installs and updates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IDependable

from inference_catalog.addresses import WARM_PREFIXES


@dataclass(frozen=True)
class AddOn:
    """One EKS add-on."""

    construct_id: str
    """Construct ID."""
    name: str
    """The add-on's name in EKS."""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """Configuration values, in the add-on's own schema."""
    outlives: bool = False
    """Whether its Kubernetes objects stay when the add-on is removed. They are deleted with the cluster."""


#: Daemons that a node needs to become ready. With prefix delegation every node can run 110 pods, regardless
#: of its network interfaces. Without `enableNetworkPolicy`, a text and no boolean, policies have no effect
#: (Amazon EKS User Guide, "Limit Pod traffic with Kubernetes network policies"). The monitoring agent's
#: program for GPUs, `dcgm-server`, tolerates no taint by default, so nobody would see broken GPUs on nodes of
#: pools (https://github.com/aws/containers-roadmap/issues/2567; charts/eks-node-monitoring-agent/values.yaml
#: and charts/configuration.schema.json in https://github.com/aws/eks-node-monitoring-agent).
BEFORE_NODES = (
    AddOn(
        "VpcCni",
        "vpc-cni",
        {
            "enableNetworkPolicy": "true",
            "env": {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": str(WARM_PREFIXES)},
        },
    ),
    AddOn("KubeProxy", "kube-proxy"),
    AddOn("PodIdentityAgent", "eks-pod-identity-agent"),
    AddOn(
        "NodeMonitoringAgent",
        "eks-node-monitoring-agent",
        {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}},
    ),
)

#: Deployments. They become active only when the cluster has nodes.
AFTER_NODES = (AddOn("CoreDns", "coredns"), AddOn("MetricsServer", "metrics-server"))

#: Provides secrets of Secrets Manager as Kubernetes secrets to the pods that mount them. The driver tolerates
#: all taints by default, but its provider needs tolerations for accelerated nodes. `SecretSync` adds
#: permissions. The objects outlive the add-on, because models are updated after the cluster, and Helm can
#: delete an object only while its kind exists.
SECRETS = AddOn(
    "Secrets",
    "aws-secrets-store-csi-driver-provider",
    {
        "secrets-store-csi-driver": {"syncSecret": {"enabled": True}},
        "tolerations": [{"operator": "Exists"}],
    },
    outlives=True,
)


class ClusterAddOns(Construct):
    """A set of EKS add-ons.

    Parameters
    ----------
    cluster_name
        Name of the cluster.
    add_ons
        The add-ons.
    versions
        Version by name. Without one, EKS chooses its default for the cluster's Kubernetes version when it
        creates the add-on.
    after
        Constructs that must exist before the add-ons.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        add_ons: Sequence[AddOn],
        versions: Mapping[str, str | None] = MappingProxyType({}),
        after: Sequence[IDependable] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        for add_on in add_ons:
            self._install(cluster_name, add_on, versions.get(add_on.name))
        self.node.add_dependency(*after)

    def _install(self, cluster_name: str, add_on: AddOn, version: str | None) -> None:
        """Create an add-on. It overwrites conflicting fields, so that an update does not fail half-way."""
        eks.CfnAddon(
            self,
            add_on.construct_id,
            addon_name=add_on.name,
            addon_version=version,
            cluster_name=cluster_name,
            configuration_values=json.dumps(add_on.configuration) if add_on.configuration else None,
            preserve_on_delete=add_on.outlives or None,
            resolve_conflicts="OVERWRITE",
        )
