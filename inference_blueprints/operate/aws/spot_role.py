"""The account's role for Spot Instances.

EC2 starts Spot Instances with a service-linked role, and Karpenter may not create it (Amazon EC2 User Guide,
"Service-linked role for Spot Instance requests"; Karpenter, Getting Started, "Create the EC2 Spot Service
Linked Role"). An account that has never used Spot does not have it.
"""

from __future__ import annotations

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.spec.types import Blueprint

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
