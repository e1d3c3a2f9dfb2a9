"""Roles that an account has once, for all platforms: of API Gateway and of Spot Instances."""

from __future__ import annotations

import json
import time

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.spec.types import Blueprint

# The role with which API Gateway writes the access logs of the batch API and the API of keys.
#
# It is one setting per account and region, shared by all APIs, so no stack owns it. Without it CloudFormation
# cannot create a stage that logs: "CloudWatch Logs role ARN must be set in account settings to enable
# logging" (Amazon API Gateway Developer Guide, "Set up CloudWatch logging for REST APIs";
# https://github.com/aws-solutions/virtual-waiting-room-on-aws/issues/74).

#: Name of the role that `ensure_api_log_role` creates. All regions of an account share it.
API_LOG_ROLE = "InferenceBlueprintsApiGatewayLogs"
_POLICY = "service-role/AmazonAPIGatewayPushToCloudWatchLogs"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "apigateway.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
# A new role is not known everywhere at once, and API Gateway refuses a role that it cannot assume.
_ATTEMPTS, _PAUSE_SECONDS = 10, 5


def has_api(blueprint: Blueprint) -> bool:
    """Return whether the platform has an API that logs: that of batch, or that of API keys."""
    door = blueprint.spec.front_door
    has_keys = door is not None and door.identity.api_keys is not None
    return has_keys or blueprint.spec.batch is not None


def api_log_role(account: Account) -> str | None:
    """Return the ARN of the role in the settings of API Gateway; None if they name none."""
    return account.client("apigateway").get_account().get("cloudwatchRoleArn") or None


def ensure_api_log_role(account: Account) -> bool:
    """Create and set the role if the settings name none; return whether they were changed."""
    if api_log_role(account):
        return False
    _set_role(account, _create_role(account))
    return True


def _create_role(account: Account) -> str:
    """Return the ARN of the role, which a bootstrap of another region may have created."""
    iam = account.client("iam")
    try:
        role = iam.create_role(RoleName=API_LOG_ROLE, AssumeRolePolicyDocument=json.dumps(_TRUST))["Role"]
    except iam.exceptions.EntityAlreadyExistsException:
        role = iam.get_role(RoleName=API_LOG_ROLE)["Role"]
    arn = str(role["Arn"])
    partition = arn.split(":")[1]
    iam.attach_role_policy(RoleName=API_LOG_ROLE, PolicyArn=f"arn:{partition}:iam::aws:policy/{_POLICY}")
    return arn


def _set_role(account: Account, arn: str) -> None:
    """Name the role in the settings."""
    client = account.client("apigateway")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            client.update_account(
                patchOperations=[{"op": "replace", "path": "/cloudwatchRoleArn", "value": arn}]
            )
        except client.exceptions.BadRequestException:
            if attempt == _ATTEMPTS:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


# The account's role for Spot Instances.
#
# EC2 starts Spot Instances with a service-linked role, and Karpenter may not create it (Amazon EC2 User
# Guide, "Service-linked role for Spot Instance requests"; Karpenter, Getting Started, "Create the EC2 Spot
# Service Linked Role"). An account that has never used Spot does not have it.

SPOT_SERVICE = "spot.amazonaws.com"
SPOT_ROLE = "AWSServiceRoleForEC2Spot"


def spot_pools(blueprint: Blueprint) -> list[str]:
    """Return the names of the pools that use Spot Instances."""
    return [pool.name for pool in blueprint.spec.pools if pool.purchase.spot]


def spot_role_exists(account: Account) -> bool:
    """Return whether the account has the role."""
    # The path of a service-linked role names its service (IAM User Guide, "Service-linked roles").
    pages = account.client("iam").get_paginator("list_roles")
    found = pages.paginate(PathPrefix=f"/aws-service-role/{SPOT_SERVICE}/")
    return any(page["Roles"] for page in found)


def ensure_spot_role(account: Account) -> bool:
    """Create the role if the account does not have it; return whether it was created."""
    if spot_role_exists(account):
        return False
    account.client("iam").create_service_linked_role(AWSServiceName=SPOT_SERVICE)
    return True
