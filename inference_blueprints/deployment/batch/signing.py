"""Requests to API Gateway, signed by who sends them (SigV4, service `execute-api`).

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-signing-elements.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from inference_blueprints.errors import UserError

#: Returns the headers of a request with its signature: of method, address, headers and body.
Sign = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]


def signer(session: boto3.Session, *, region: str) -> Sign:
    """Return what signs requests to the batch API.

    Parameters
    ----------
    session
        Whose credentials sign; those that end are made anew in time.

    Raises
    ------
    UserError
        If there are no credentials.
    """
    credentials = session.get_credentials()
    if credentials is None:
        raise UserError("No AWS credentials were found: sign in, or set AWS_PROFILE.")

    def sign(method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        request = AWSRequest(method, address, headers=dict(headers), data=body)
        SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region).add_auth(request)
        return dict(request.headers.items())

    return sign
