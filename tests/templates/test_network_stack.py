"""The VPC and the way to the models."""

from __future__ import annotations

import ipaddress
import json
from typing import Any

import pytest

from inference_catalog.addresses import private_subnet_prefix
from tests.templates.conftest import Change, Synthesise
from tests.templates.support import Templates, text

ZONES = {
    2: ["us-west-2a", "us-west-2b"],
    3: ["us-west-2a", "us-west-2b", "us-west-2c"],
    4: ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"],
}
CERTIFICATE = "arn:aws:acm:us-west-2:111122223333:certificate/0f0f"


def in_zones(zones: int, cidr: str = "10.0.0.0/16") -> Change:
    def change(spec: dict[str, Any]) -> None:
        spec["environment"]["availabilityZones"] = ZONES[zones]
        spec["network"] = {"cidr": cidr}

    return change


def existing_network(spec: dict[str, Any]) -> None:
    spec["environment"]["availabilityZones"] = ZONES[2]
    spec["network"] = {
        "existing": {
            "vpcId": "vpc-0a1b2c3d",
            "vpcCidr": "10.20.0.0/16",
            "privateSubnetIds": ["subnet-0a1b2c3d", "subnet-0a1b2c3e"],
        }
    }


def https(spec: dict[str, Any]) -> None:
    spec["network"] = {
        "certificateArn": CERTIFICATE,
        "domain": "models.example.com",
        "sourceCidrs": ["10.1.0.0/16", "10.2.0.0/16"],
    }


@pytest.mark.parametrize("zones", [2, 3, 4])
def test_one_private_subnet_and_one_nat_gateway_a_zone(synthesise: Synthesise, zones: int) -> None:
    templates = synthesise(in_zones(zones))
    subnets = templates.properties("AWS::EC2::Subnet")
    private = [subnet for subnet in subnets if not subnet["MapPublicIpOnLaunch"] and _is_private(subnet)]
    assert sorted(subnet["AvailabilityZone"] for subnet in private) == ZONES[zones]
    assert len(templates.resources("AWS::EC2::NatGateway")) == zones
    assert not [subnet for subnet in subnets if subnet["MapPublicIpOnLaunch"]]


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "172.20.0.0/20"])
@pytest.mark.parametrize("zones", [2, 3, 4])
def test_subnets_lie_in_the_vpc_and_apart(synthesise: Synthesise, cidr: str, zones: int) -> None:
    templates = synthesise(in_zones(zones, cidr))
    subnets = [ipaddress.IPv4Network(s["CidrBlock"]) for s in templates.properties("AWS::EC2::Subnet")]
    assert all(subnet.subnet_of(ipaddress.IPv4Network(cidr)) for subnet in subnets)
    assert not any(a.overlaps(b) for a in subnets for b in subnets if a != b)
    assert len(set(subnets)) == 2 * zones


def test_private_subnets_take_most_of_the_range() -> None:
    assert [private_subnet_prefix("10.0.0.0/16", zones) for zones in (2, 3, 4)] == [18, 18, 19]


def test_private_nodes_reach_aws_without_leaving_the_vpc(base_templates: Templates) -> None:
    services = {
        text(endpoint["ServiceName"]).replace("${AWS::Region}", "us-west-2").split("us-west-2.")[1]
        for endpoint in base_templates.properties("AWS::EC2::VPCEndpoint")
    }
    assert services == {
        "s3",
        "ec2",
        "ecr.api",
        "ecr.dkr",
        "eks",
        "eks-auth",
        "elasticloadbalancing",
        "secretsmanager",
        "sqs",
        "ssm",
        "sts",
    }


def test_rejected_traffic_is_recorded(base_templates: Templates) -> None:
    flow_log = base_templates.only("AWS::EC2::FlowLog")
    assert (flow_log["TrafficType"], flow_log["LogDestinationType"]) == ("REJECT", "s3")


def test_an_existing_vpc_is_used_and_nothing_is_added_to_it(synthesise: Synthesise) -> None:
    templates = synthesise(existing_network)
    kinds = {resource["Type"] for resource in templates.by_stack["Network"]["Resources"].values()}
    assert not {"AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::NatGateway", "AWS::EC2::VPCEndpoint"} & kinds
    balancer = templates.only("AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert balancer["Subnets"] == ["subnet-0a1b2c3d", "subnet-0a1b2c3e"]
    cluster = templates.only("AWS::EKS::Cluster")["ResourcesVpcConfig"]
    assert cluster["SubnetIds"] == ["subnet-0a1b2c3d", "subnet-0a1b2c3e"]
    node_class = templates.manifest("Capacity", "EC2NodeClass", "l40s")["spec"]
    assert node_class["subnetSelectorTerms"] == [{"id": "subnet-0a1b2c3d"}, {"id": "subnet-0a1b2c3e"}]
    assert _admitted(templates) == [("10.20.0.0/16", 80)]


def test_no_option_leaves_a_warning(synthesise: Synthesise) -> None:
    for change in (None, existing_network, https):
        manifest = json.dumps(synthesise(change).artifacts)
        metadata = [file.read_text() for file in synthesise(change).directory.glob("*.metadata.json")]
        assert "aws:cdk:warning" not in manifest + "".join(metadata)


def test_the_load_balancer_is_internal_logged_and_patient(base_templates: Templates) -> None:
    balancer = base_templates.only("AWS::ElasticLoadBalancingV2::LoadBalancer")
    attributes = {each["Key"]: each["Value"] for each in balancer["LoadBalancerAttributes"]}
    assert balancer["Scheme"] == "internal"
    assert attributes["access_logs.s3.enabled"] == "true"
    assert attributes["idle_timeout.timeout_seconds"] == "3600"
    assert attributes["routing.http.drop_invalid_header_fields.enabled"] == "true"


def test_without_a_certificate_http_from_the_vpc_alone(base_templates: Templates) -> None:
    listener = base_templates.only("AWS::ElasticLoadBalancingV2::Listener")
    assert (listener["Protocol"], listener["Port"]) == ("HTTP", 80)
    assert _admitted(base_templates) == [("10.0.0.0/16", 80)]


def test_with_a_certificate_https_from_the_named_ranges_alone(synthesise: Synthesise) -> None:
    templates = synthesise(https)
    listener = templates.only("AWS::ElasticLoadBalancingV2::Listener")
    assert (listener["Protocol"], listener["Port"]) == ("HTTPS", 443)
    assert listener["Certificates"] == [{"CertificateArn": CERTIFICATE}]
    assert listener["SslPolicy"].startswith("ELBSecurityPolicy-TLS13")
    assert _admitted(templates) == [("10.1.0.0/16", 443), ("10.2.0.0/16", 443)]
    assert templates.only("AWS::Route53::HostedZone")["Name"] == "models.example.com."
    endpoint = templates.by_stack["Model-qwen3-8b"]["Outputs"]["Endpoint"]["Value"]
    assert endpoint == "https://qwen3-8b.models.example.com/v1"


def test_an_unknown_host_is_answered_and_not_forwarded(base_templates: Templates) -> None:
    (action,) = base_templates.only("AWS::ElasticLoadBalancingV2::Listener")["DefaultActions"]
    assert (action["Type"], action["FixedResponseConfig"]["StatusCode"]) == ("fixed-response", "404")


def test_every_name_of_the_zone_leads_to_the_load_balancer(base_templates: Templates) -> None:
    record = base_templates.only("AWS::Route53::RecordSet", "Network")
    assert (record["Name"], record["Type"]) == ("*.try.internal", "A")
    assert "DNSName" in text(record["AliasTarget"]["DNSName"])


def test_the_zone_is_private(base_templates: Templates) -> None:
    zone = base_templates.only("AWS::Route53::HostedZone")
    assert len(zone["VPCs"]) == 1


def _is_private(subnet: dict[str, Any]) -> bool:
    return {"Key": "aws-cdk:subnet-type", "Value": "Private"} in subnet["Tags"]


def _admitted(templates: Templates) -> list[tuple[str, int]]:
    (group,) = [
        group
        for group in templates.properties("AWS::EC2::SecurityGroup", "Network")
        if group["GroupDescription"] == "Callers of the models"
    ]
    return [(rule["CidrIp"], rule["FromPort"]) for rule in group["SecurityGroupIngress"]]
