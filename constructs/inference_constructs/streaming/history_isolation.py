"""Explicit denials in the policy of the history bucket: no team reaches what another team's jobs wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from inference_constructs.batch.team_isolation import roles_that_empty
from inference_contracts.streaming_job import STREAMING_HISTORY_PREFIX, streaming_role_path


@dataclass(frozen=True)
class OwnedHistory:
    """The history of a job, and who owns it."""

    job: str
    """Name of the job."""
    principals: Sequence[str]
    """ARNs of the IAM roles and users of its team."""


def isolate_histories(bucket: s3.Bucket, *, platform: str, histories: Sequence[OwnedHistory]) -> None:
    """Deny access to the history of a job to everybody but its own roles and its team.

    The reasons and the limits are those of `isolate_teams`.

    Parameters
    ----------
    bucket
        Bucket of the history.
    platform
        `metadata.name`.
    histories
        The jobs.
    """
    stack = cdk.Stack.of(bucket)
    for each in histories:
        path = streaming_role_path(platform, each.job)
        allowed = [
            *each.principals,
            f"arn:{stack.partition}:iam::{stack.account}:role{path}*",
            *roles_that_empty(stack),
        ]
        conditions: Mapping[str, Mapping[str, Sequence[str]]] = {"ArnNotLike": {"aws:PrincipalArn": allowed}}
        bucket.add_to_resource_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY,
                actions=["s3:*"],
                principals=[iam.AnyPrincipal()],
                resources=[bucket.arn_for_objects(f"{STREAMING_HISTORY_PREFIX}{each.job}/*")],
                conditions=conditions,
            )
        )
