"""What batch has spent in the month in which a front door comes is spent at the door too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.code_staging import function_code
from inference_constructs.front_door.door_store import DoorStore
from inference_runtime import runtime_directory

#: Enough for ten thousand admitted jobs, each read with one call.
_MINUTES: Final = 5


class CarriedSpending(Construct):
    """A function that writes each team's first checkpoint of the ledger, when the stack is created.

    The replicas come after it: they fill their store from the checkpoints. It replaces no checkpoint of a
    replica, so a second call is harmless, and nothing happens at updates and deletions.

    Parameters
    ----------
    jobs
        Tables of batch.
    store
        Tables and buckets of the front door.
    teams
        Names of the teams.
    time_zone
        Time zone of the budgets, such as ``Europe/Berlin``.
    role_path
        IAM path of the function's role.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        jobs: BatchStore,
        store: DoorStore,
        teams: Sequence[str],
        time_zone: str,
        role_path: str = "/",
    ) -> None:
        super().__init__(scope, construct_id)
        function = add_function(
            self,
            "CarryOver",
            # Lambda's image promises no time zones.
            code=function_code(runtime_directory() / "batch", packages=("tzdata",)),
            handler="batch.carry_over.handler.handle",
            timeout_seconds=60 * _MINUTES,
            memory_mib=512,
            environment={},
            role_path=role_path,
        )
        jobs.grant_read_spending(function)
        store.grant_first_checkpoints(function)
        # The key of both tables.
        store.grant_use_key(function, "dynamodb")
        step = cdk.CustomResource(
            self,
            "Month",
            resource_type="Custom::CarriedSpending",
            service_token=function.function_arn,
            properties={
                "JobTable": jobs.table_name,
                "LedgerTable": store.ledger_table,
                "TimeZone": time_zone,
                "Teams": list(teams),
            },
        )
        # The function's permissions come before its first call.
        step.node.add_dependency(cast("iam.IRole", function.role))
