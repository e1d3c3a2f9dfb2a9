"""Environment, network and cluster of a platform."""

from typing import Literal

from pydantic import Field

from inference_blueprints.spec.section import (
    AccountId,
    AvailabilityZone,
    CertificateArn,
    Choice,
    Cidr,
    Domain,
    KubernetesVersion,
    Name,
    Region,
    Section,
    SubnetId,
    VpcId,
)


class Metadata(Section):
    """Name of the platform."""

    name: Name
    """Prefix of all stacks and name of the cluster. Platforms with different names can share an account."""


class Environment(Section):
    """Account, region and zones of the platform."""

    region: Region
    """AWS region, such as us-west-2."""
    account: AccountId | None = None
    """AWS account of the stacks. Without it, the account of the credentials is used."""
    availability_zones: list[AvailabilityZone] | None = Field(default=None, min_length=2, max_length=4)
    """Two to four zones of the region. Without it, the first three zones in the catalogue."""
    data_removal: Literal["retain", "destroy"] = "retain"
    """Whether `destroy` keeps (`retain`) or deletes (`destroy`) buckets and tables."""
    tags: dict[str, str] = Field(default_factory=dict, max_length=40)
    """Tags for every resource, in addition to the library's own. AWS allows 50 per resource."""


class ExistingNetwork(Section):
    """An existing VPC."""

    vpc_id: VpcId
    """ID of the VPC."""
    vpc_cidr: Cidr
    """IPv4 range of the VPC. It may call the models unless `sourceCidrs` is set."""
    private_subnet_ids: list[SubnetId] = Field(min_length=2, max_length=4)
    """Private subnets, one per zone, in the order of `environment.availabilityZones`."""


class Network(Section):
    """Network of the platform. Without this section, a new VPC in which models answer over plain HTTP."""

    cidr: Cidr | None = None
    """IPv4 range of the new VPC, /16 to /20. Without it, 10.0.0.0/16."""
    existing: ExistingNetwork | None = None
    """Existing VPC to use instead of a new one. Mutually exclusive with `cidr`."""
    source_cidrs: list[Cidr] | None = Field(default=None, min_length=1)
    """IPv4 ranges that may call the models. Without it, only the VPC may."""
    certificate_arn: CertificateArn | None = None
    """ACM certificate for HTTPS on the models' load balancer. Requires `domain`."""
    domain: Domain | None = None
    """Private DNS zone in which each model gets a name. Without it, `<metadata.name>.internal`."""


class EksCluster(Section):
    """An EKS cluster."""

    version: KubernetesVersion
    """Kubernetes version, quoted: "1.35"."""
    endpoint_access: Literal["private", "publicAndPrivate"] = "private"
    """Whether the Kubernetes API is reachable only inside the VPC, or also from the internet."""
    extended_support: bool = False
    """Whether EKS keeps this version, at a higher price, after its standard support. Else EKS upgrades it."""


class EcsCluster(Section):
    """An ECS cluster. It has no control plane to maintain, so the keys of `eks` have no effect here."""

    managed_instances: Literal["allowed", "never"] = "allowed"
    """Whether ECS itself may run the hosts of pools that fit its limits. Else all are Auto Scaling groups."""
    execute_command: bool = False
    """Whether `aws ecs execute-command` may run commands, as root, in containers of models (ECS Exec). Its
    sessions are encrypted and recorded. A change replaces the tasks."""
    version: KubernetesVersion | None = None
    """Accepted from a file for EKS. It has no effect."""
    endpoint_access: Literal["private", "publicAndPrivate"] | None = None
    """Accepted from a file for EKS. It has no effect."""
    extended_support: bool | None = None
    """Accepted from a file for EKS. It has no effect."""


class Cluster(Choice):
    """Cluster that runs the containers."""

    eks: EksCluster | None = None
    """Amazon EKS with Karpenter."""
    ecs: EcsCluster | None = None
    """Amazon ECS with Managed Instances and Auto Scaling groups."""
