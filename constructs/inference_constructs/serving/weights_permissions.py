"""IAM statements to read and write a model's weights and to read its token.

The statements are IAM JSON and not CDK grants. The bucket, the secret and their keys belong to the user and
are known only by name, so conditions limit the use of a key to one service and to named objects.
"""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk

from inference_constructs.policy_statements import Statement


def read_weights(stack: cdk.Stack, s3_prefix: str) -> list[Statement]:
    """Return statements to read and decrypt the objects below one prefix.

    Parameters
    ----------
    stack
        Stack of the role.
    s3_prefix
        ``s3://bucket/prefix``; the bucket may be a reference.
    """
    bucket, prefix = bucket_and_prefix(stack, s3_prefix)
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
        use_key(stack, "DecryptWeights", "s3", "kms:Decrypt", s3_context(bucket, prefix)),
    ]


def write_weights(stack: cdk.Stack, s3_prefix: str) -> list[Statement]:
    """Return statements to write below one prefix, to abort uploads, and to delete the manifest.

    Parameters
    ----------
    stack
        Stack of the role.
    s3_prefix
        ``s3://bucket/prefix``; the bucket may be a reference.
    """
    bucket, prefix = bucket_and_prefix(stack, s3_prefix)
    return [
        {
            "Sid": "WriteWeights",
            "Effect": "Allow",
            "Action": ["s3:AbortMultipartUpload", "s3:PutObject"],
            "Resource": f"{bucket}/{prefix}*",
        },
        {
            "Sid": "DeleteManifest",
            "Effect": "Allow",
            "Action": "s3:DeleteObject",
            "Resource": f"{bucket}/{prefix}.json",
        },
        use_key(stack, "EncryptWeights", "s3", "kms:GenerateDataKey", s3_context(bucket, prefix)),
    ]


def keep_artefacts(stack: cdk.Stack, s3_prefix: str, name: str) -> list[Statement]:
    """Return statements to read and write compiled artefacts below one prefix. Nothing may be deleted.

    Parameters
    ----------
    stack
        Stack of the role.
    s3_prefix
        ``s3://bucket/prefix``; the bucket may be a reference.
    name
        End of the names of the statements, which differ within a role.
    """
    bucket, prefix = bucket_and_prefix(stack, s3_prefix)
    return [
        {
            "Sid": f"ListArtefacts{name}",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket,
            "Condition": {"StringLike": {"s3:prefix": f"{prefix}/*"}},
        },
        {
            "Sid": f"KeepArtefacts{name}",
            "Effect": "Allow",
            "Action": ["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"],
            "Resource": f"{bucket}/{prefix}/*",
        },
        use_key(
            stack,
            f"UseArtefactKey{name}",
            "s3",
            ["kms:Decrypt", "kms:GenerateDataKey"],
            s3_context(bucket, f"{prefix}/"),
        ),
    ]


def bucket_and_prefix(stack: cdk.Stack, s3_prefix: str) -> tuple[str, str]:
    """Return the ARN of the bucket and the prefix of an ``s3://`` address.

    Parameters
    ----------
    stack
        Stack that defines the partition.
    s3_prefix
        The address; the bucket may be a reference.
    """
    bucket, _, prefix = s3_prefix.removeprefix("s3://").partition("/")
    return f"arn:{stack.partition}:s3:::{bucket}", prefix


def s3_context(bucket_arn: str, prefix: str) -> dict[str, list[str]]:
    """Return S3's encryption context: the object's ARN, or the bucket's ARN if it uses an S3 Bucket Key.

    Parameters
    ----------
    bucket_arn, prefix
        Bucket and prefix of the objects.
    """
    return {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, f"{bucket_arn}/{prefix}*"]}


def read_secret(stack: cdk.Stack, secret_arn: str) -> list[Statement]:
    """Return statements to read and decrypt one secret.

    Parameters
    ----------
    stack
        Stack of the role.
    secret_arn
        The secret.
    """
    return [
        {
            "Sid": "ReadToken",
            "Effect": "Allow",
            "Action": ["secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue"],
            "Resource": secret_arn,
        },
        use_key(
            stack,
            "DecryptToken",
            "secretsmanager",
            "kms:Decrypt",
            {"kms:EncryptionContext:SecretARN": [f"{secret_arn}*"]},
        ),
    ]


def use_key(
    stack: cdk.Stack, sid: str, service: str, actions: str | list[str], context: Mapping[str, list[str]]
) -> Statement:
    """Return a statement to use any key, but only through one service and for named objects.

    Parameters
    ----------
    stack
        Stack of the role.
    sid
        Name of the statement.
    service
        Service that uses the key, such as ``s3``.
    actions
        KMS actions.
    context
        Encryption context by condition key, with wildcards.
    """
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Action": actions,
        "Resource": f"arn:{stack.partition}:kms:{stack.region}:{stack.account}:key/*",
        "Condition": {
            "StringEquals": {"kms:ViaService": f"{service}.{stack.region}.{stack.url_suffix}"},
            "StringLike": dict(context),
        },
    }
