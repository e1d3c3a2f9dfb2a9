"""IAM statements to read and write a model's weights and to read its token.

The statements are IAM JSON and not CDK grants, so no function is called ``grant_…``: it takes no grantee, and
adds nothing to a role. The bucket, the secret and their keys belong to the user and are known only by name,
so conditions limit the use of a key to one service and to named objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk

from inference_constructs.policy_statements import Statement


def read_weights(stack: cdk.Stack, s3_prefix: str, *, has_manifest: bool) -> list[Statement]:
    """Return statements to list, read and decrypt the objects below one prefix.

    Below ``s3://bucket/llama`` are the objects of ``llama/``, and not those of ``llama-70b/``. Who streams
    weights lists the prefix with a slash at its end (``list_files`` of runai_model_streamer_s3 0.17.1).

    Parameters
    ----------
    stack
        Stack of the role.
    s3_prefix
        ``s3://bucket/prefix``; the bucket may be a reference.
    has_manifest
        Whether it is the platform's copy, whose manifest is ``prefix.json``.
    """
    bucket, prefix = bucket_and_prefix(stack, s3_prefix)
    keys = _keys(prefix, has_manifest=has_manifest)
    return [
        {
            "Sid": "ListWeights",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket,
            "Condition": {"StringLike": {"s3:prefix": keys}},
        },
        {
            "Sid": "ReadWeights",
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": [f"{bucket}/{each}" for each in keys],
        },
        use_key(stack, "DecryptWeights", "s3", "kms:Decrypt", s3_context(bucket, keys)),
    ]


def write_weights(stack: cdk.Stack, s3_prefix: str) -> list[Statement]:
    """Return statements to write a copy and its manifest, to abort uploads, and to delete the manifest.

    stack: Stack of the role.
    s3_prefix: ``s3://bucket/prefix``; the bucket may be a reference.
    """
    bucket, prefix = bucket_and_prefix(stack, s3_prefix)
    keys = _keys(prefix, has_manifest=True)
    return [
        {
            "Sid": "WriteWeights",
            "Effect": "Allow",
            "Action": ["s3:AbortMultipartUpload", "s3:PutObject"],
            "Resource": [f"{bucket}/{each}" for each in keys],
        },
        {
            "Sid": "DeleteManifest",
            "Effect": "Allow",
            "Action": "s3:DeleteObject",
            "Resource": f"{bucket}/{keys[-1]}",
        },
        use_key(stack, "EncryptWeights", "s3", "kms:GenerateDataKey", s3_context(bucket, keys)),
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
            s3_context(bucket, [f"{prefix}/*"]),
        ),
    ]


def bucket_and_prefix(stack: cdk.Stack, s3_prefix: str) -> tuple[str, str]:
    """Return the ARN of the bucket and the prefix of an ``s3://`` address.

    stack: Stack that defines the partition.
    s3_prefix: The address; the bucket may be a reference.
    """
    bucket, _, prefix = s3_prefix.removeprefix("s3://").partition("/")
    return f"arn:{stack.partition}:s3:::{bucket}", prefix


def s3_context(bucket_arn: str, keys: Sequence[str]) -> dict[str, list[str]]:
    """Return S3's encryption context: the object's ARN, or the bucket's ARN if it uses an S3 Bucket Key.

    bucket_arn, keys: Bucket, and keys of the objects with wildcards.
    """
    return {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, *(f"{bucket_arn}/{each}" for each in keys)]}


def _keys(prefix: str, *, has_manifest: bool) -> list[str]:
    """Return the keys of a model's files with a wildcard, and the key of their manifest."""
    folder = prefix.rstrip("/")
    return [f"{folder}/*" if folder else "*", *([f"{folder}.json"] if has_manifest else [])]


def read_secret(stack: cdk.Stack, secret_arn: str) -> list[Statement]:
    """Return statements to read and decrypt one secret.

    The encryption context has the secret's whole ARN (AWS Secrets Manager User Guide, "Secret encryption and
    decryption").
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
            {"kms:EncryptionContext:SecretARN": [secret_arn]},
        ),
    ]


def read_certificates(secret_arns: Sequence[str]) -> Statement:
    """Return the statement to read secrets of the platform, which have the key of the account."""
    return {
        "Sid": "ReadCertificates",
        "Effect": "Allow",
        "Action": "secretsmanager:GetSecretValue",
        "Resource": list(secret_arns),
    }


def use_key(
    stack: cdk.Stack, sid: str, service: str, actions: str | list[str], context: Mapping[str, list[str]]
) -> Statement:
    """Return a statement to use any key, but only through one service and for named objects.

    sid: Name of the statement.
    service: Service that uses the key, such as ``s3``.
    actions: KMS actions.
    context: Encryption context by condition key, with wildcards.
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
