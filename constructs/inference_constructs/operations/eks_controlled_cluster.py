"""What controllers may do in a cluster on Amazon EKS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.operations.controlled_cluster import ControlledCluster
from inference_contracts import operations_names
from inference_contracts.shift_names import ShiftConfiguration

_RBAC: Final = "rbac.authorization.k8s.io"
_HTTPS: Final = 443
#: What the functions may do in the cluster. They patch `spec.unschedulable` and an annotation of nodes; RBAC
#: cannot say which fields a patch has.
_HEALTH_RULES: Final[tuple[Mapping[str, Any], ...]] = (
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    {"apiGroups": ["karpenter.sh"], "resources": ["nodeclaims"], "verbs": ["get", "list", "delete"]},
)
#: What they may do among the serving pods alone: they drain no others.
_EVICTION_RULES: Final[tuple[Mapping[str, Any], ...]] = (
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
)


#: What the capacity shift may list where models are served. RBAC names objects for `get` and `patch`, and
#: not for `list`: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-resources.
#: To get them one by one would be two requests a minute for each elastic role: 4,000 with 2,000 roles.
SHIFT_LISTS: Final[tuple[Mapping[str, Any], ...]] = (
    {"apiGroups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": ["list"]},
    {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["list"]},
)


class EksControlledCluster(ControlledCluster):
    """A cluster whose Kubernetes API controllers call. Each has a group with narrow permissions.

    Access policies of EKS are too broad: none allows to cordon and to evict without more. So a role gets a
    group (https://docs.aws.amazon.com/eks/latest/userguide/create-k8s-group-access-entry.html). Every node of
    a pool has a NodeClaim, so there is no permission for Auto Scaling groups.

    Parameters
    ----------
    name
        Its name, a plain string.
    cluster
        The cluster, created or imported, with a kubectl provider.
    endpoint
        Address of the Kubernetes API.
    authority
        Its certificate authority, PEM in base64.
    security_group_id
        Security group of the control plane's interfaces.
    model_namespace
        Namespace of the serving pods, which a replacement evicts.
    """

    def __init__(
        self,
        name: str,
        *,
        cluster: eks.ICluster,
        endpoint: str,
        authority: str,
        security_group_id: str,
        model_namespace: str,
    ) -> None:
        super().__init__(name)
        self._cluster, self._endpoint, self._authority = cluster, endpoint, authority
        self._security_group_id, self._model_namespace = security_group_id, model_namespace

    @property
    def environment(self) -> Mapping[str, str]:
        """Name, address and certificate authority."""
        return {
            operations_names.CLUSTER: self.name,
            operations_names.CLUSTER_ENDPOINT: self._endpoint,
            operations_names.CLUSTER_AUTHORITY: self._authority,
        }

    def connect(self, scope: Construct, group: ec2.SecurityGroup) -> None:
        """Let controllers reach AWS, and the control plane."""
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(_HTTPS), "Kubernetes and AWS")
        ec2.CfnSecurityGroupIngress(
            scope,
            "ControlPlaneIngress",
            description="Kubernetes API, from the controllers",
            from_port=_HTTPS,
            to_port=_HTTPS,
            group_id=self._security_group_id,
            ip_protocol="tcp",
            source_security_group_id=group.security_group_id,
        )

    def grant_health(self, scope: Construct, role: iam.Role, *, replaces: bool) -> None:
        """Let GPU health read nodes and pods, and if it replaces also cordon, evict and delete NodeClaims."""
        self._grant(
            scope,
            role,
            operations_names.HEALTH_GROUP,
            _HEALTH_RULES if replaces else _reading(_HEALTH_RULES),
            _EVICTION_RULES if replaces else (),
        )

    @property
    def instance_condition(self) -> Mapping[str, Mapping[str, str]]:
        """The tags that Karpenter gives to its instances: those by which it may terminate them too."""
        return {
            "StringEquals": {f"aws:ResourceTag/kubernetes.io/cluster/{self.name}": "owned"},
            "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
        }

    def grant_shift(self, scope: Construct, role: iam.Role, shift: ShiftConfiguration) -> None:
        """Let the capacity shift read ScaledObjects of models, and patch its own and its ClusterQueues.

        It also sets the numbers of workers that serve batch alone, by their subresource ``scale``.
        """
        numbers: dict[str, list[str]] = {}
        for each in shift.workers:
            if each.scale:
                numbers.setdefault(each.scale, []).append(each.name)
        rules = shift_rules(
            [each.name for each in shift.workers if not each.scale],
            [each.pool for each in shift.queues],
            numbers=numbers,
            shifts=shift.action == "shift",
        )
        self._grant(scope, role, operations_names.SHIFT_GROUP, rules, SHIFT_LISTS)

    def _grant(
        self,
        scope: Construct,
        role: iam.IRole,
        group: str,
        rules: Sequence[Mapping[str, Any]],
        model_rules: Sequence[Mapping[str, Any]],
    ) -> None:
        """Add an access entry that gives a role a group, and what the group may do.

        Both roles are always there, with or without rules: ``kubectl apply --prune`` leaves a Role that a
        manifest no longer has, with its rights (kubectl, ``pkg/util/prune``: the kinds that it removes).
        """
        access = Construct(scope, "Access")
        eks.CfnAccessEntry(
            access,
            "Entry",
            cluster_name=self.name,
            kubernetes_groups=[group],
            principal_arn=role.role_arn,
            type="STANDARD",
        )
        among_models = {"namespace": self._model_namespace}
        eks.KubernetesManifest(
            access,
            "Permissions",
            cluster=self._cluster,
            manifest=[
                *_granted(group, "ClusterRole", rules, {}),
                *_granted(group, "Role", model_rules, among_models),
            ],
        )


def shift_rules(
    scaled_objects: Sequence[str],
    cluster_queues: Sequence[str],
    *,
    numbers: Mapping[str, Sequence[str]] = MappingProxyType({}),
    shifts: bool,
) -> list[Mapping[str, Any]]:
    """Return what the function may do in the cluster beside `SHIFT_LISTS`: it names each object.

    numbers: Names of the objects whose number of workers it sets, by group, version and plural.
    shifts: Whether it may patch.
    """
    rules: list[Mapping[str, Any]] = []
    # Without names, a rule would be about all objects.
    if shifts and scaled_objects:
        rules.append(
            {
                "apiGroups": ["keda.sh"],
                "resources": ["scaledobjects"],
                "resourceNames": list(scaled_objects),
                "verbs": ["patch"],
            }
        )
    for kind, names in numbers.items():
        group, _, plural = kind.split("/")
        rules.append(
            {
                "apiGroups": [group],
                "resources": [f"{plural}/scale"],
                "resourceNames": list(names),
                "verbs": ["get", "patch"] if shifts else ["get"],
            }
        )
    if cluster_queues:
        rules.append(
            {
                "apiGroups": ["kueue.x-k8s.io"],
                "resources": ["clusterqueues"],
                "resourceNames": list(cluster_queues),
                "verbs": ["get", "patch"] if shifts else ["get"],
            }
        )
    return rules


def _reading(rules: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rules without what changes something."""
    return [
        {**rule, "verbs": verbs}
        for rule in rules
        if (verbs := [verb for verb in rule["verbs"] if verb in ("get", "list")])
    ]


def _granted(
    group: str, kind: str, rules: Sequence[Mapping[str, Any]], place: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """Return a role, and its binding to the group of the same name."""
    common = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": group, **place}}
    return [
        {**common, "kind": kind, "rules": [dict(rule) for rule in rules]},
        {
            **common,
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": group},
            "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group}],
        },
    ]
