"""Tokens for clients of the batch API that cannot sign their requests.

A token is a signed request to STS, which identifies the signer. It is accepted for 10 minutes, by one
platform, whose authorizer checks it (`runtime/batch/authorizer`). It needs no permission
(https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html).
"""

from __future__ import annotations

import base64

import boto3
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest

from inference_blueprints.operate.aws.account import demand_credentials
from inference_contracts import batch_limits, batch_names


def batch_token(session: boto3.Session, *, platform: str, region: str, account: str) -> str:
    """Return a token for a platform's batch API.

    session: Session with the credentials that sign the token.
    platform, region, account: Name, region and AWS account of the platform. No other platform accepts the
        token.
    Raises SignInError if there are no credentials.
    """
    credentials = demand_credentials(session)
    request = AWSRequest(
        "GET",
        f"https://{batch_names.sts_host(region)}/?Action=GetCallerIdentity&Version=2011-06-15",
        headers={batch_names.TOKEN_AUDIENCE_HEADER: batch_names.token_audience(account, platform)},
    )
    SigV4QueryAuth(
        credentials.get_frozen_credentials(), "sts", region, expires=batch_limits.TOKEN_SECONDS
    ).add_auth(request)
    return batch_names.TOKEN_PREFIX + base64.urlsafe_b64encode(request.url.encode()).decode().rstrip("=")
