"""Connects to a cluster with a token that is made from the environment's credentials."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from botocore.credentials import Credentials
from botocore.hooks import HierarchicalEmitter
from botocore.model import ServiceId
from botocore.signers import RequestSigner

from inference_blueprints.deployment.aws.account import Account, readable_errors
from inference_blueprints.deployment.kubernetes.kubectl import Kubectl
from inference_blueprints.errors import UserError

_PREFIX = "k8s-aws-v1."
#: Validity of the signature in seconds; EKS accepts a token for 15 minutes after it was signed.
_SIGNED_SECONDS = 60


def token(credentials: Credentials, region: str, cluster: str) -> str:
    """Return the token that ``aws eks get-token`` prints: a signed STS request that is bound to a cluster.

    Parameters
    ----------
    region, cluster
        Region and name of the cluster.

    Returns
    -------
    str
        A bearer token, as https://github.com/kubernetes-sigs/aws-iam-authenticator describes it.
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


def connect(account: Account, cluster: str, directory: Path) -> Kubectl:
    """Return kubectl for a cluster, with the permissions of the environment's credentials.

    Parameters
    ----------
    account
        Account of the cluster.
    directory
        A private folder for the token.

    Raises
    ------
    UserError
        If there is no such cluster, or AWS refuses to describe it.
    """
    description = describe(account, cluster)
    if "endpoint" not in description:
        raise UserError(f"the cluster {cluster} is {description['status']} and has no API server")
    path = directory / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(_kubeconfig(description, token(account.credentials, account.region, cluster)))
    return Kubectl(path)


def describe(account: Account, cluster: str) -> dict[str, Any]:
    """Return EKS's description of a cluster.

    Parameters
    ----------
    account
        Where the cluster is.

    Raises
    ------
    UserError
        If there is no such cluster, or AWS refuses to describe it.
    """
    eks = account.client("eks")
    with readable_errors():
        try:
            description: dict[str, Any] = eks.describe_cluster(name=cluster)["cluster"]
        except eks.exceptions.ResourceNotFoundException as error:
            message = f"the cluster {cluster} does not exist in account {account.number}, {account.region}"
            raise UserError(message) from error
    return description


def _kubeconfig(description: dict[str, Any], bearer: str) -> str:
    """Return a kubeconfig with server, authority and token, as JSON."""
    server = {
        "server": description["endpoint"],
        "certificate-authority-data": description["certificateAuthority"]["data"],
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": server}],
            "users": [{"name": "user", "user": {"token": bearer}}],
            "contexts": [{"name": "context", "context": {"cluster": "cluster", "user": "user"}}],
            "current-context": "context",
        }
    )
