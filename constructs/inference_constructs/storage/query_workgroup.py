"""Workgroups of Amazon Athena."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_athena as athena
from aws_cdk import aws_kms as kms
from constructs import Construct


def add_workgroup(
    scope: Construct, *, name: str, description: str, results: str, encryption_key: kms.IKey
) -> None:
    """Add a workgroup that encrypts all results. Clients cannot override this setting.

    scope: Parent; the construct ID is ``Workgroup``.
    name, description: What people see.
    results: Where results go, as ``s3://BUCKET/PREFIX/``. The bucket is of the same account.
    encryption_key: KMS key of the results.
    """
    athena.CfnWorkGroup(
        scope,
        "Workgroup",
        description=description,
        name=name,
        recursive_delete_option=True,
        work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
            enforce_work_group_configuration=True,
            publish_cloud_watch_metrics_enabled=True,
            result_configuration=athena.CfnWorkGroup.ResultConfigurationProperty(
                encryption_configuration=athena.CfnWorkGroup.EncryptionConfigurationProperty(
                    encryption_option="SSE_KMS", kms_key=encryption_key.key_arn
                ),
                expected_bucket_owner=cdk.Stack.of(scope).account,
                output_location=results,
            ),
        ),
    )
