"""Where a platform is deployed, how it is reached, and what runs its containers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from inference_blueprints.spec.types.section import (
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
    """What the platform is called."""

    name: Name
    """Prefix of every stack and name of the cluster, so two platforms never meet in one account."""


class Environment(Section):
    """Where the platform is deployed."""

    region: Region
    """AWS region, such as us-west-2."""
    account: AccountId | None = None
    """Account that the stacks are bound to; without it the account of the credentials is used."""
    availability_zones: list[AvailabilityZone] | None = Field(default=None, min_length=2, max_length=4)
    """Zones to use, two to four of the region; without it the first three that the catalogue knows."""
    data_removal: Literal["retain", "destroy"] = "retain"
    """What becomes of buckets and tables on destroy: `retain` keeps them."""
    tags: dict[str, str] = Field(default_factory=dict, max_length=40)
    """Tags for every resource, beside the library's own; AWS takes 50 in all."""


class ExistingNetwork(Section):
    """A VPC that is there already."""

    vpc_id: VpcId
    """Id of the VPC."""
    vpc_cidr: Cidr
    """Its IPv4 range, which the models' load balancer admits unless `sourceCidrs` says otherwise."""
    private_subnet_ids: list[SubnetId] = Field(min_length=2, max_length=4)
    """Private subnets, one a zone, in the order of `environment.availabilityZones`."""


class Network(Section):
    """How the platform is reached; without this section a VPC of its own over plain HTTP inside it."""

    cidr: Cidr | None = None
    """IPv4 range of the new VPC, /16 to /20; without it 10.0.0.0/16."""
    existing: ExistingNetwork | None = None
    """Use this VPC and create none; mutually exclusive with `cidr`."""
    source_cidrs: list[Cidr] | None = Field(default=None, min_length=1)
    """Ranges that may call the models; without it the VPC alone."""
    certificate_arn: CertificateArn | None = None
    """ACM certificate of the models' load balancer: HTTPS instead of HTTP; needs `domain`."""
    domain: Domain | None = None
    """Private zone in which each model gets a name; without it `<metadata.name>.internal`."""


class EksCluster(Section):
    """An EKS cluster."""

    version: KubernetesVersion
    """Kubernetes version, quoted: "1.35"."""
    endpoint_access: Literal["private", "publicAndPrivate"] = "private"
    """Whether the Kubernetes API can be reached from outside the VPC."""


class Cluster(Choice):
    """What runs the containers."""

    eks: EksCluster | None = None
    """Amazon EKS with Karpenter."""
