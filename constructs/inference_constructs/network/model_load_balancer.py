"""The models' entry point: an internal load balancer with a private DNS zone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.findings import acknowledge

# The models' load balancer as plain values, for stacks that add a model to it.


@dataclass(frozen=True)
class Gateway:
    """The models' load balancer, for references from other stacks."""

    vpc_id: str
    """VPC of the target groups."""
    listener_arn: str
    """Listener that routes by host name."""
    zone_name: str
    """Private zone. Each name in it is an alias of the load balancer."""
    scheme: str
    """``http`` or ``https``."""
    security_group_id: str
    """Security group whose rules admit callers."""

    @property
    def port(self) -> int:
        """TCP port of the listener."""
        return 443 if self.scheme == "https" else 80


#: Idle timeout of a connection, in seconds. A queued prompt or an answer without streaming sends nothing
#: until it is complete, so this limits the longest request. 4000 s is the maximum of the service.
IDLE_TIMEOUT_SECONDS = 3600

_NO_SUCH_MODEL = (
    '{"error":{"message":"no model answers to this host name","type":"not_found_error","code":404}}'
)


class ModelLoadBalancer(Construct):
    """An internal Application Load Balancer, its listener, and the private DNS zone of the models.

    It belongs to the network and not to the cluster. Its address therefore stays when the cluster is
    replaced, and nothing is left behind when the cluster is deleted.

    Parameters
    ----------
    vpc
        The load balancer is in its private subnets, and the zone is visible in it.
    zone_name
        Name of the private zone.
    log_bucket
        Bucket for access logs.
    source_cidrs
        IPv4 ranges that may call the models. Without one, the range of the VPC.
    certificate
        Certificate for HTTPS; None for HTTP.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        zone_name: str,
        log_bucket: s3.IBucket,
        source_cidrs: Sequence[str] = (),
        certificate: acm.ICertificate | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        port = 443 if certificate else 80
        callers = source_cidrs or [vpc.vpc_cidr_block]
        self.security_group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            allow_all_outbound=False,
            description="Callers of the models",
        )
        for cidr in callers:
            self.security_group.add_ingress_rule(ec2.Peer.ipv4(cidr), ec2.Port.tcp(port))
        certificates = (
            [elbv2.ListenerCertificate.from_certificate_manager(certificate)] if certificate else None
        )
        self.load_balancer = elbv2.ApplicationLoadBalancer(
            self,
            "LoadBalancer",
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=vpc.private_subnets),
            internet_facing=False,
            security_group=self.security_group,
            drop_invalid_header_fields=True,
            idle_timeout=cdk.Duration.seconds(IDLE_TIMEOUT_SECONDS),
        )
        self.load_balancer.log_access_logs(log_bucket, "models")
        self.listener = self.load_balancer.add_listener(
            "Listener",
            port=port,
            protocol=elbv2.ApplicationProtocol.HTTPS if certificate else elbv2.ApplicationProtocol.HTTP,
            certificates=certificates,
            default_action=elbv2.ListenerAction.fixed_response(
                404, content_type="application/json", message_body=_NO_SUCH_MODEL
            ),
            open=False,
        )
        self._add_names(vpc, zone_name)
        self.gateway = Gateway(
            vpc_id=vpc.vpc_id,
            listener_arn=self.listener.listener_arn,
            zone_name=zone_name,
            scheme="https" if certificate else "http",
            security_group_id=self.security_group.security_group_id,
        )
        if "0.0.0.0/0" in source_cidrs:
            acknowledge(
                self.security_group,
                {"EC23": "The blueprint allows 0.0.0.0/0, and the load balancer has no public address."},
            )

    def _add_names(self, vpc: ec2.IVpc, zone_name: str) -> None:
        """Make every name of the zone an alias of the load balancer.

        One record per model, in the models' stacks, would still exist when a renamed zone is deleted. Route
        53 refuses to delete such a zone, and the old zone would later conflict with a new one of the same
        name.
        """
        zone = route53.PrivateHostedZone(self, "Zone", vpc=vpc, zone_name=zone_name)
        route53.CfnRecordSet(
            self,
            "Names",
            name=f"*.{zone_name}",
            type="A",
            hosted_zone_id=zone.hosted_zone_id,
            alias_target=route53.CfnRecordSet.AliasTargetProperty(
                dns_name=self.load_balancer.load_balancer_dns_name,
                hosted_zone_id=self.load_balancer.load_balancer_canonical_hosted_zone_id,
                evaluate_target_health=True,
            ),
        )
