"""What an emulated account holds, whether a stack owns it or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inference_blueprints.operate.ownership.platform_table import TABLE
from inference_local.emulator.emulator import Emulator

#: Service, operation, key of the list in its answer, key of the id that CloudFormation knows too.
_LISTS = (
    ("ec2", "describe_security_groups", "SecurityGroups", "GroupId"),
    ("ec2", "describe_subnets", "Subnets", "SubnetId"),
    ("ec2", "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("ec2", "describe_vpcs", "Vpcs", "VpcId"),
    ("elbv2", "describe_load_balancers", "LoadBalancers", "LoadBalancerArn"),
    ("elbv2", "describe_target_groups", "TargetGroups", "TargetGroupArn"),
    ("events", "list_rules", "Rules", "Name"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("lambda", "list_functions", "Functions", "FunctionName"),
    ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("s3", "list_buckets", "Buckets", "Name"),
)
_DEFAULT_GROUP = "default"


def inventory(emulator: Emulator) -> set[str]:
    """Return the ids of everything of the kinds that a platform is made of."""
    return {
        identifier for service, *how in _LISTS for identifier in _identifiers(emulator.client(service), *how)
    } | set(_others(emulator))


def _identifiers(client: Any, operation: str, key: str, identifier: str) -> Iterator[str]:
    for item in getattr(client, operation)()[key]:
        if item.get("GroupName") != _DEFAULT_GROUP:
            yield item[identifier]


def _others(emulator: Emulator) -> Iterator[str]:
    """Yield what is listed by id alone, or has to be asked for whether it still counts."""
    yield from emulator.client("eks").list_clusters()["clusters"]
    yield from emulator.client("sqs").list_queues().get("QueueUrls", [])
    # The account's table of platforms belongs to none of them.
    yield from set(emulator.client("dynamodb").list_tables()["TableNames"]) - {TABLE}
    for zone in emulator.client("route53").list_hosted_zones()["HostedZones"]:
        yield zone["Id"].removeprefix("/hostedzone/")
    keys = emulator.client("kms")
    for key in keys.list_keys()["Keys"]:
        if keys.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"] == "Enabled":
            yield key["KeyId"]
