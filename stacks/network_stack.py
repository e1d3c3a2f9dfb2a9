"""The network: the VPC, and the models' load balancer."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_blueprints.spec.derived import models_domain
from inference_blueprints.spec.types import ExistingNetwork, Network
from inference_catalog.addresses import DEFAULT_CIDR
from inference_constructs.network import ClusterVpc, ModelLoadBalancer


class NetworkStack(cdk.Stack):
    """A new or an existing VPC, and the load balancer and DNS zone of the models.

    network: Section of the blueprint.
    platform: `metadata.name`. It is part of the zone's name unless the section sets a domain.
    log_bucket: Bucket for flow and access logs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        network: Network,
        platform: str,
        availability_zones: Sequence[str],
        log_bucket: s3.IBucket,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        if network.existing:
            self.vpc_cidr = network.existing.vpc_cidr
            self.vpc = self._existing_vpc(network.existing, availability_zones)
        else:
            self.vpc_cidr = network.cidr or DEFAULT_CIDR
            self.vpc = ClusterVpc(
                self, "Vpc", cidr=self.vpc_cidr, availability_zones=availability_zones, log_bucket=log_bucket
            )
        self.models = ModelLoadBalancer(
            self,
            "Models",
            vpc=self.vpc,
            source_cidrs=network.source_cidrs or [self.vpc_cidr],
            zone_name=models_domain(platform, network),
            certificate=acm.Certificate.from_certificate_arn(self, "Certificate", network.certificate_arn)
            if network.certificate_arn
            else None,
            log_bucket=log_bucket,
        )

    def _existing_vpc(self, existing: ExistingNetwork, availability_zones: Sequence[str]) -> ec2.IVpc:
        """Import a VPC by its IDs: synthesis makes no calls to AWS."""
        cdk.Annotations.of(self).acknowledge_warning(
            "@aws-cdk/aws-ec2:noSubnetRouteTableId", "The platform adds no routes to existing subnets."
        )
        return ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=existing.vpc_id,
            vpc_cidr_block=existing.vpc_cidr,
            availability_zones=list(availability_zones),
            private_subnet_ids=list(existing.private_subnet_ids),
        )
