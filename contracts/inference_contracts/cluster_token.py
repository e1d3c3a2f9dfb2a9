"""Tokens for the API server of an EKS cluster, made from AWS credentials."""

from __future__ import annotations

import base64
from typing import Any, Final

from botocore.hooks import HierarchicalEmitter
from botocore.model import ServiceId
from botocore.signers import RequestSigner

_PREFIX: Final = "k8s-aws-v1."
#: Validity of the signature in seconds. EKS accepts a token for 15 minutes after it was signed:
#: https://github.com/kubernetes-sigs/aws-iam-authenticator#api-authorization-from-outside-a-cluster
_SIGNED_SECONDS: Final = 60


def cluster_token(credentials: Any, region: str, cluster: str) -> str:
    """Return the token that ``aws eks get-token`` prints: a signed STS request that is bound to a cluster.

    credentials: Credentials of botocore.
    region, cluster: Region and name of the cluster. The name is in the signed header ``x-k8s-aws-id``.
    Returns: A bearer token, as https://github.com/kubernetes-sigs/aws-iam-authenticator describes it.
    """
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    emitter = HierarchicalEmitter()  # the signer itself holds it weakly
    signer = RequestSigner(ServiceId("sts"), region, "sts", "v4", credentials, emitter)
    request = {
        "method": "GET",
        "url": f"https://sts.{region}.{suffix}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": cluster},
        "context": {},
    }
    address = signer.generate_presigned_url(request, operation_name="", expires_in=_SIGNED_SECONDS)
    return _PREFIX + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")
