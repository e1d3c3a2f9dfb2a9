"""What the pods of a model may read of AWS: its weights and its token, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import aws_cdk as cdk
from constructs import Construct

from inference_constructs.eks.pod_identity import PodIdentity, Statement
from inference_constructs.findings import acknowledge_wildcards


class WeightsIdentity(PodIdentity):
    """A role for the service accounts of a model's pods.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    namespace, service_accounts
        Whose pods.
    s3_prefix
        ``s3://bucket/prefix`` of the weights, where they are in S3.
    secret_arn
        Secret with the token that downloads them, where they are gated.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        namespace: str,
        service_accounts: Sequence[str],
        s3_prefix: str | None = None,
        secret_arn: str | None = None,
    ) -> None:
        stack = cdk.Stack.of(scope)
        statements = [
            *(_read_weights(stack, s3_prefix) if s3_prefix else []),
            *(_read_secret(stack, secret_arn) if secret_arn else []),
        ]
        super().__init__(
            scope,
            construct_id,
            cluster_name=cluster_name,
            namespace=namespace,
            service_accounts=service_accounts,
            statements=statements,
        )
        acknowledge_wildcards(
            self,
            statements,
            "Weights are many objects below one prefix; the key that they and the secret are under is their "
            "owner's choice, and is used only through S3 and Secrets Manager for these very objects.",
        )


def _read_weights(stack: cdk.Stack, s3_prefix: str) -> list[Statement]:
    """Read below one prefix, and decrypt what lies there."""
    address = urlsplit(s3_prefix)
    bucket, prefix = f"arn:{stack.partition}:s3:::{address.netloc}", address.path.lstrip("/")
    return [
        {
            "Sid": "ListWeights",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket,
            "Condition": {"StringLike": {"s3:prefix": f"{prefix}*"}},
        },
        {
            "Sid": "ReadWeights",
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": f"{bucket}/{prefix}*",
        },
        # S3's encryption context is the object, or the bucket where the bucket has a key of its own.
        _decrypt(
            stack,
            "DecryptWeights",
            "s3",
            {"kms:EncryptionContext:aws:s3:arn": [bucket, f"{bucket}/{prefix}*"]},
        ),
    ]


def _read_secret(stack: cdk.Stack, secret_arn: str) -> list[Statement]:
    """Read one secret."""
    return [
        {
            "Sid": "ReadToken",
            "Effect": "Allow",
            "Action": ["secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue"],
            "Resource": secret_arn,
        },
        _decrypt(
            stack, "DecryptToken", "secretsmanager", {"kms:EncryptionContext:SecretARN": [f"{secret_arn}*"]}
        ),
    ]


def _decrypt(stack: cdk.Stack, sid: str, service: str, context: dict[str, list[str]]) -> Statement:
    """Decrypt through one service and for named objects only, whatever the key."""
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": f"arn:{stack.partition}:kms:{stack.region}:{stack.account}:key/*",
        "Condition": {
            "StringEquals": {"kms:ViaService": f"{service}.{stack.region}.{stack.url_suffix}"},
            "StringLike": context,
        },
    }
