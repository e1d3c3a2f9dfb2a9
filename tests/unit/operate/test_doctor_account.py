"""What an account has before a deployment: zones, addresses, the role for Spot, names in an existing VPC."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.aws.account_roles import ensure_spot_role
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor import access_checks, network_checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from tests.unit.operate.faults import Faults

Make = Callable[..., DoctorContext]
PLATFORM = {"Key": "inference-blueprints:platform", "Value": "quickstart"}


# Zones


def zones_of(make_context: Make, region: str, *zones: str) -> list[CheckResult]:
    """Check the zones of a platform in a region of moto, which gives every account the same IDs."""

    def change(spec: dict[str, Any]) -> None:
        spec["environment"] = {"region": region, **({"availabilityZones": [*zones]} if zones else {})}

    return list(network_checks.zones(replace(make_context(change), account=Account(region))))


def test_zones_that_eks_accepts_are_shown_with_their_ids(make_context: Make) -> None:
    (finding,) = zones_of(make_context, "us-east-1")
    assert finding.severity == "ok"
    assert finding.message == "us-east-1a (use1-az6), us-east-1b (use1-az1), us-east-1c (use1-az2)"


def test_a_zone_in_which_eks_has_no_control_plane_comes_with_another(make_context: Make) -> None:
    (finding,) = zones_of(make_context, "us-east-1", "us-east-1e", "us-east-1b", "us-east-1f")
    assert finding.severity == "error"
    assert "us-east-1e is use1-az3 in this account, where EKS accepts no control plane" in finding.message
    assert finding.message.endswith("set environment.availabilityZones: [us-east-1a, us-east-1b, us-east-1f]")


def test_a_zone_that_the_account_lacks(make_context: Make) -> None:
    context = make_context()
    account = Account("us-west-2")
    zones = "".join(
        f"<item><zoneName>us-west-2{letter}</zoneName><zoneId>usw2-az{number}</zoneId></item>"
        for number, letter in enumerate("bcd", 1)
    )
    answer = f"<DescribeAvailabilityZonesResponse><availabilityZoneInfo>{zones}</availabilityZoneInfo>"
    body = f"{answer}</DescribeAvailabilityZonesResponse>".encode()
    Faults((200, body)).into(account.client("ec2"), "DescribeAvailabilityZones")
    (finding,) = network_checks.zones(replace(context, account=account))
    assert finding.severity == "error"
    assert "this account has no zone us-west-2a; set environment.availabilityZones" in finding.message
    assert "[us-west-2b, us-west-2c, us-west-2d]" in finding.message


def test_a_region_with_one_usable_zone_is_no_region_for_a_platform(make_context: Make) -> None:
    context = make_context(lambda spec: spec["environment"].update(region="us-west-1"))
    account = Account("us-west-1")
    zones = (
        "<item><zoneName>us-west-1a</zoneName><zoneId>usw1-az2</zoneId></item>"
        "<item><zoneName>us-west-1b</zoneName><zoneId>usw1-az3</zoneId></item>"
    )
    answer = f"<DescribeAvailabilityZonesResponse><availabilityZoneInfo>{zones}</availabilityZoneInfo>"
    body = f"{answer}</DescribeAvailabilityZonesResponse>".encode()
    Faults((200, body)).into(account.client("ec2"), "DescribeAvailabilityZones")
    (finding,) = network_checks.zones(replace(context, account=account))
    assert finding.message.endswith("a platform needs two zones; use another region")


# Elastic IP addresses


def addresses(make_context: Make, account: Account, granted: float, *owners: str) -> CheckResult:
    """Check the addresses of a platform with three NAT gateways; each owner has one address."""
    ec2 = account.client("ec2")
    for owner in owners:
        tags = [{**PLATFORM, "Value": owner}]
        ec2.allocate_address(Domain="vpc", TagSpecifications=[{"ResourceType": "elastic-ip", "Tags": tags}])
    answer = json.dumps({"Quota": {"Value": granted}}).encode()
    Faults((200, answer)).into(account.client("service-quotas"), "GetServiceQuota")
    (finding,) = network_checks.elastic_addresses(make_context())
    return finding


@pytest.mark.parametrize(
    ("owners", "severity"),
    [
        ((), "ok"),
        (("other", "other"), "ok"),
        (("other", "other", "other"), "error"),
        # The platform stands: its own addresses are those that it needs.
        (("other", "other", "quickstart", "quickstart", "quickstart"), "ok"),
    ],
)
def test_nat_gateways_need_free_addresses(
    make_context: Make, account: Account, owners: tuple[str, ...], severity: str
) -> None:
    finding = addresses(make_context, account, 5, *owners)
    assert finding.severity == severity
    assert ("--quota-code L-0263D0A3 --desired-value 6" in (finding.command or "")) == (severity == "error")


def test_an_existing_vpc_needs_no_addresses(make_context: Make) -> None:
    assert list(network_checks.elastic_addresses(make_context(in_vpc("vpc-0a1b2c3d")))) == []


# The role for Spot Instances


def spot(spec: dict[str, Any]) -> None:
    spec["pools"][0]["purchase"] = {"spot": {}}


def test_a_pool_on_spot_needs_the_account_s_role(make_context: Make, account: Account) -> None:
    (finding,) = access_checks.spot_role(make_context(spot))
    assert finding.severity == "error"
    assert finding.command == "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
    assert [ensure_spot_role(account), ensure_spot_role(account)] == [True, False]
    (finding,) = access_checks.spot_role(make_context(spot))
    assert finding.severity == "ok"


def test_without_spot_nobody_asks_for_the_role(make_context: Make) -> None:
    assert list(access_checks.spot_role(make_context())) == []


# Names in an existing VPC


def in_vpc(vpc: str, **more: Any) -> Callable[[dict[str, Any]], None]:
    """Return the change of a blueprint that uses a VPC."""

    def change(spec: dict[str, Any]) -> None:
        spec["environment"]["availabilityZones"] = ["us-west-2a", "us-west-2b"]
        subnets = ["subnet-0a1b2c01", "subnet-0a1b2c02"]
        spec["network"] = {"existing": {"vpcId": vpc, "vpcCidr": "10.7.0.0/16", "privateSubnetIds": subnets}}
        spec.update(more)

    return change


def vpc_with_zone(account: Account, name: str, *, own: bool = False) -> str:
    """Return a VPC with a private zone, which may be the platform's own."""
    vpc = str(account.client("ec2").create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"])
    route53 = account.client("route53")
    zone = route53.create_hosted_zone(
        Name=name,
        CallerReference=name,
        HostedZoneConfig={"PrivateZone": True},
        VPC={"VPCRegion": "us-west-2", "VPCId": vpc},
    )["HostedZone"]["Id"].rpartition("/")[2]
    if own:
        route53.change_tags_for_resource(ResourceType="hostedzone", ResourceId=zone, AddTags=[PLATFORM])
    return vpc


@pytest.mark.parametrize(
    ("name", "own", "severity"),
    [
        ("quickstart.internal", False, "error"),
        ("quickstart.internal", True, "ok"),
        ("other.internal", False, "ok"),
    ],
)
def test_a_private_zone_of_the_models_name_is_in_the_way(
    make_context: Make, account: Account, name: str, *, own: bool, severity: str
) -> None:
    vpc = vpc_with_zone(account, name, own=own)
    (finding,) = network_checks.private_names(make_context(in_vpc(vpc)))
    assert finding.severity == severity
    assert ("set network.domain to another name" in finding.message) == (severity == "error")


BATCH = {
    "teams": [
        {
            "name": "search",
            "principals": ["arn:aws:iam::123456789012:role/search"],
            "monthlyBudgetUsd": 100,
        }
    ],
    "batch": {
        "queues": [
            {
                "name": "night",
                "model": "qwen3-8b",
                "rates": {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 1},
            }
        ]
    },
}


@pytest.mark.parametrize(
    ("private", "tags", "severity"),
    [(True, [], "error"), (False, [], "ok"), (True, [PLATFORM], "ok")],
)
def test_another_endpoint_of_api_gateway_is_in_the_way_of_batch(
    make_context: Make, account: Account, *, private: bool, tags: list[dict[str, str]], severity: str
) -> None:
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    ec2.create_vpc_endpoint(
        VpcEndpointType="Interface",
        VpcId=vpc,
        ServiceName="com.amazonaws.us-west-2.execute-api",
        PrivateDnsEnabled=private,
        TagSpecifications=[{"ResourceType": "vpc-endpoint", "Tags": tags}] if tags else [],
    )
    (finding,) = network_checks.private_names(make_context(in_vpc(vpc, **BATCH)))
    assert finding.severity == severity
    (finding,) = network_checks.private_names(make_context(in_vpc(vpc)))
    assert finding.severity == "ok", "without batch there is no endpoint"


def test_a_new_vpc_has_no_names_yet(make_context: Make) -> None:
    assert list(network_checks.private_names(make_context())) == []
