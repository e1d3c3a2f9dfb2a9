"""The object that replicas of the front door watch: a change of it replaces no pod and no task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.code_staging import function_code
from inference_constructs.storage.buckets import DataBucket
from inference_contracts.door_names import CONFIGURATION_KEY
from inference_runtime import runtime_directory

_TIMEOUT_SECONDS: Final = 60


class WatchedObject(Construct):
    """A versioned object in S3, and the function that writes what a deployment brings.

    Replicas ask for it every few seconds, with the tag of the content that they have, and take a new one
    while they run. The same way serves pods and tasks: a ConfigMap reaches a pod after up to two minutes, has
    at most 1 MiB, and would pass through the event of the function that applies charts, which has at most 256
    KiB (https://kubernetes.io/docs/concepts/configuration/configmap/).

    Parameters
    ----------
    document
        The content, without references.
    encryption_key
        KMS key of the object.
    log_bucket
        Bucket of the access logs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        document: Mapping[str, Any],
        encryption_key: kms.IKey,
        log_bucket: s3.IBucket,
    ) -> None:
        super().__init__(scope, construct_id)
        self._key = encryption_key
        self._bucket = DataBucket(
            self, "Configuration", encryption_key=encryption_key, log_bucket=log_bucket, retain=False
        )
        source = s3_assets.Asset(self, "Source", path=str(_written(self, document)))
        function = add_function(
            self,
            "Copy",
            code=function_code(runtime_directory() / "watched_object"),
            handler="watched_object.handler.handle",
            timeout_seconds=_TIMEOUT_SECONDS,
            memory_mib=128,
            environment={},
            role_path="/",
        )
        self._grant_copy(function, source)
        self._copied = cdk.CustomResource(
            self,
            "Object",
            resource_type="Custom::WatchedObject",
            service_token=function.function_arn,
            properties={
                "SourceBucket": source.s3_bucket_name,
                "SourceKey": source.s3_object_key,
                "Bucket": self._bucket.bucket_name,
                "Key": CONFIGURATION_KEY,
            },
        )
        # The function's permissions come before its first call.
        self._copied.node.add_dependency(cast("iam.IRole", function.role))

    @property
    def address(self) -> str:
        """Address of the object."""
        return f"s3://{self._bucket.bucket_name}/{CONFIGURATION_KEY}"

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading the object, and no former version of it.

        Parameters
        ----------
        grantee
            Role of the program that watches it.
        """
        stack = cdk.Stack.of(self)
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:GetObject"],
            resource_arns=[self._bucket.arn_for_objects(CONFIGURATION_KEY)],
        ).combine(
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["kms:Decrypt"],
                conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}},
                resource_arns=[self._key.key_arn],
            )
        )

    def _grant_copy(self, function: iam.IGrantable, source: s3_assets.Asset) -> None:
        """Allow reading the source and writing the object."""
        stack = cdk.Stack.of(self)
        for action, arn in (
            ("s3:GetObject", source.bucket.arn_for_objects(source.s3_object_key)),
            ("s3:PutObject", self._bucket.arn_for_objects(CONFIGURATION_KEY)),
        ):
            iam.Grant.add_to_principal(grantee=function, actions=[action], resource_arns=[arn])
        iam.Grant.add_to_principal(
            grantee=function,
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}"}},
            resource_arns=[self._key.key_arn],
        )


def _written(scope: Construct, document: Mapping[str, Any]) -> Path:
    """Write the document into the cloud assembly, and return its file."""
    stage = cdk.Stage.of(scope)
    if stage is None:
        raise ValueError(f"{scope.node.path} is not part of an app")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    folder = Path(stage.outdir) / "watched"
    folder.mkdir(exist_ok=True)
    file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    file.write_text(text, encoding="utf-8")
    return file
