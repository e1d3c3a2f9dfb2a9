"""Signs requests with the caller's credentials (SigV4): to API Gateway, or to another service.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-signing-elements.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from inference_blueprints.operate.aws.account import demand_credentials

#: Takes method, address, headers and body of a request; returns the headers with the signature.
Sign = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]


def signer(session: boto3.Session, *, region: str, service: str = "execute-api") -> Sign:
    """Return a function that signs requests.

    session: Session with the credentials that sign; temporary ones are renewed in time.
    region: Region of the service.
    service: Its name in signatures; that of API Gateway signs for the batch API.
    Raises SignInError if there are no credentials.
    """
    credentials = demand_credentials(session)

    def sign(method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        request = AWSRequest(method, address, headers=dict(headers), data=body)
        SigV4Auth(credentials.get_frozen_credentials(), service, region).add_auth(request)
        return dict(request.headers.items())

    return sign
