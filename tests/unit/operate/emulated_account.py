"""An account whose answers are all known: each operation that `doctor` calls has one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from botocore.stub import validate_parameters

import inference_catalog as catalog
from inference_blueprints.operate.aws.account import Account

REGION = "us-west-2"
ZONES = [f"{REGION}{letter}" for letter in "abcd"]
TYPE = "g6e.2xlarge"
VPC = "vpc-0a1b2c3d"
SUBNETS = ["subnet-0a1b2c01", "subnet-0a1b2c02"]
CERTIFICATE = f"arn:aws:acm:{REGION}:123456789012:certificate/12345678-1234-1234-1234-123456789012"
SECRET = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:hub-AbCdEf"
BLOCK = "cr-0a1b2c3d4e5f60718"
KEY = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"

Answer = Mapping[str, Any]
#: Answer by service and operation.
Answers = Mapping[tuple[str, str], Answer]


def failed(code: str) -> Answer:
    """Return the answer of an operation that fails."""
    return {"Error": {"Code": code, "Message": "no"}}


def endpoint_services(zones: list[str], *, without: str = "") -> Answer:
    """Return the region's endpoint services, each in the same zones."""
    services = [*(each.service for each in catalog.endpoints().values()), "execute-api"]
    details = [
        {"ServiceName": f"com.amazonaws.{REGION}.{service}", "AvailabilityZones": zones}
        for service in services
        if service != without
    ]
    return {"ServiceDetails": details}


def offerings(*zones: str) -> Answer:
    """Return the zones that offer the instance type of the quickstart."""
    return {"InstanceTypeOfferings": [{"InstanceType": TYPE, "Location": zone} for zone in zones]}


def subnets(*zones: str, free: int = 4000) -> Answer:
    """Return the subnets of the existing VPC."""
    pairs = zip(SUBNETS, zones, strict=True)
    common = {"VpcId": VPC, "AvailableIpAddressCount": free}
    return {"Subnets": [{"SubnetId": name, "AvailabilityZone": zone, **common} for name, zone in pairs]}


def reservation(**facts: Any) -> Answer:
    """Return a Capacity Block of two P5 in one zone."""
    block = {
        "CapacityReservationId": BLOCK,
        "ReservationType": "capacity-block",
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": ZONES[1],
        "State": "active",
        "TotalInstanceCount": 2,
        "StartDate": datetime(2026, 11, 20, 11, 30, tzinfo=UTC),
        "EndDate": datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
    }
    return {"CapacityReservations": [block | facts]}


def key_policy(*principals: dict[str, str]) -> Answer:
    """Return the policy of a key: the account decides by IAM, and these principals may publish."""
    use = {"Effect": "Allow", "Action": ["kms:GenerateDataKey*", "kms:Decrypt"], "Resource": "*"}
    account = {"AWS": "arn:aws:iam::123456789012:root"}
    statements = [
        {"Effect": "Allow", "Action": "kms:*", "Resource": "*", "Principal": account},
        *({**use, "Principal": each} for each in principals),
    ]
    return {"Policy": json.dumps({"Version": "2012-10-17", "Statement": statements})}


def certificate(**facts: Any) -> Answer:
    """Return a certificate that covers the models' names."""
    return {"Certificate": {"Status": "ISSUED", "DomainName": "*.models.example.com", **facts}}


_SPOT_ROLE = {
    "Path": "/aws-service-role/spot.amazonaws.com/",
    "RoleName": "AWSServiceRoleForEC2Spot",
    "RoleId": "AROA0123456789ABCDEF",
    "Arn": "arn:aws:iam::123456789012:role/AWSServiceRoleForEC2Spot",
    "CreateDate": datetime(2026, 1, 1, tzinfo=UTC),
}
#: An account in which nothing is wrong.
HEALTHY: Answers = {
    ("sts", "GetCallerIdentity"): {"Account": "123456789012"},
    ("ssm", "GetParameter"): {"Parameter": {"Value": "30"}},
    ("ssm", "GetParameters"): {"Parameters": []},
    ("ec2", "DescribeAvailabilityZones"): {
        "AvailabilityZones": [
            {"ZoneName": zone, "ZoneId": f"usw2-az{at}"} for at, zone in enumerate(ZONES, 1)
        ]
    },
    ("eks", "DescribeAddonVersions"): {
        "addons": [{"addonVersions": [{"addonVersion": "v1.2.3-eksbuild.1"}]}]
    },
    ("ec2", "DescribeVpcEndpointServices"): endpoint_services(ZONES),
    ("service-quotas", "GetServiceQuota"): {"Quota": {"Value": 10000.0}},
    ("ec2", "DescribeAddresses"): {"Addresses": []},
    ("lambda", "GetAccountSettings"): {
        "AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 1000}
    },
    ("apigateway", "GetAccount"): {"cloudwatchRoleArn": "arn:aws:iam::123456789012:role/api-logs"},
    ("ec2", "DescribeInstanceTypeOfferings"): offerings(*ZONES),
    ("iam", "ListRoles"): {"Roles": [_SPOT_ROLE]},
    ("iam", "GetOutboundWebIdentityFederationInfo"): {
        "IssuerIdentifier": "https://0a1b2c3d.tokens.sts.global.api.aws",
        "JwtVendingEnabled": True,
    },
    ("ec2", "DescribeCapacityReservations"): reservation(),
    ("secretsmanager", "DescribeSecret"): {
        "VersionIdsToStages": {"0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f": ["AWSCURRENT"]}
    },
    ("ec2", "DescribeVpcs"): {"Vpcs": [{"VpcId": VPC, "CidrBlock": "10.7.0.0/16"}]},
    ("ec2", "DescribeVpcAttribute"): {
        "EnableDnsSupport": {"Value": True},
        "EnableDnsHostnames": {"Value": True},
    },
    ("ec2", "DescribeSubnets"): subnets(*ZONES[:2]),
    ("route53", "ListHostedZonesByVPC"): {"HostedZoneSummaries": [], "MaxItems": "100"},
    ("route53", "ListTagsForResource"): {"ResourceTagSet": {"Tags": [{"Key": "team", "Value": "other"}]}},
    ("ec2", "DescribeVpcEndpoints"): {"VpcEndpoints": []},
    ("acm", "DescribeCertificate"): certificate(),
    ("sns", "GetTopicAttributes"): {"Attributes": {"KmsMasterKeyId": "alias/alarms"}},
    ("kms", "DescribeKey"): {"KeyMetadata": {"KeyId": KEY}},
    ("kms", "GetKeyPolicy"): key_policy({"Service": "cloudwatch.amazonaws.com"}, {"AWS": "*"}),
}


class EmulatedAccount(Account):
    """An account that answers from memory. Answers are compared with the shapes of AWS's APIs.

    wrong: Answers that differ from those of the healthy account.
    """

    def __init__(self, wrong: Answers) -> None:
        super().__init__(REGION)
        self._answers = {**HEALTHY, **wrong}

    def client(self, service: str) -> Any:
        client = super().client(service)
        client.meta.events.register_first("before-call", self._answer, unique_id="emulated")
        return client

    def _answer(self, model: Any, **_call: object) -> tuple[SimpleNamespace, Answer]:
        answer = self._answers[model.service_model.service_name, model.name]
        if "Error" in answer:
            return SimpleNamespace(status_code=400), answer
        validate_parameters(answer, model.output_shape)
        return SimpleNamespace(status_code=200), answer
