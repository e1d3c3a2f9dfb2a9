"""A VPC for a cluster with private nodes only."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

import inference_catalog as catalog
from inference_catalog.addresses import PUBLIC_SUBNET_PREFIX, private_subnet_prefix


class ClusterVpc(ec2.Vpc):
    """A VPC with private subnets for nodes, a NAT gateway per zone in small public subnets, and endpoints.

    It writes flow logs.

    Parameters
    ----------
    cidr
        IPv4 range, /16 to /20. The public subnets are /27 each, and the private subnets share the rest.
    availability_zones
        Names of the zones, so that synthesis needs no account.
    log_bucket
        Bucket for flow logs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cidr: str,
        availability_zones: Sequence[str],
        log_bucket: s3.IBucket,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            availability_zones=list(availability_zones),
            flow_logs={
                "FlowLogs": ec2.FlowLogOptions(
                    destination=ec2.FlowLogDestination.to_s3(log_bucket, "vpc-flow-logs/"),
                    traffic_type=ec2.FlowLogTrafficType.REJECT,
                )
            },
            gateway_endpoints={
                endpoint.name: ec2.GatewayVpcEndpointOptions(
                    service=ec2.GatewayVpcEndpointAwsService(endpoint.service)
                )
                for endpoint in _endpoints("gateway")
            },
            ip_addresses=ec2.IpAddresses.cidr(cidr),
            nat_gateways=len(availability_zones),
            # Nothing uses the default group, and removing its rules would need an additional Lambda function.
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Public",
                    subnet_type=ec2.SubnetType.PUBLIC,
                    cidr_mask=PUBLIC_SUBNET_PREFIX,
                    map_public_ip_on_launch=False,
                ),
                ec2.SubnetConfiguration(
                    name="Private",
                    subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS,
                    cidr_mask=private_subnet_prefix(cidr, len(availability_zones)),
                ),
            ],
        )
        self._add_interface_endpoints(cidr)

    def _add_interface_endpoints(self, cidr: str) -> None:
        """Add all interface endpoints, with one security group that admits the VPC."""
        security_group = ec2.SecurityGroup(
            self,
            "Endpoints",
            vpc=self,
            allow_all_outbound=False,
            description="HTTPS from the VPC to AWS endpoints",
        )
        security_group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(443))
        subnets = ec2.SubnetSelection(subnets=self.private_subnets)
        for endpoint in _endpoints("interface"):
            ec2.InterfaceVpcEndpoint(
                self,
                endpoint.name,
                vpc=self,
                service=ec2.InterfaceVpcEndpointAwsService(endpoint.service),
                open=False,
                security_groups=[security_group],
                subnets=subnets,
            )


def _endpoints(kind: str) -> list[catalog.Endpoint]:
    """Return the endpoints of a kind. Calls through an endpoint do not depend on a NAT gateway."""
    return [endpoint for endpoint in catalog.endpoints().values() if endpoint.kind == kind]
