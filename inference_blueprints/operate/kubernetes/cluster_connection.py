"""Connects to a cluster with a token that is made from the environment's credentials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.kubernetes.kubectl import Kubectl
from inference_contracts.cluster_token import cluster_token
from inference_contracts.errors import UserError


def connect(account: Account, cluster: str, directory: Path) -> Kubectl:
    """Return kubectl for a cluster, with the permissions of the environment's credentials.

    account: Account of the cluster.
    directory: A private folder for the token.
    Raises UserError if there is no such cluster, or AWS refuses to describe it.
    """
    description = describe(account, cluster)
    if "endpoint" not in description:
        raise UserError(f"the cluster {cluster} is {description['status']} and has no API server")
    path = directory / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(_kubeconfig(description, cluster_token(account.credentials, account.region, cluster)))
    return Kubectl(path)


def describe(account: Account, cluster: str) -> dict[str, Any]:
    """Return EKS's description of a cluster.

    account: Where the cluster is.
    Raises UserError if there is no such cluster, or AWS refuses to describe it.
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
