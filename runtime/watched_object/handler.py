"""The function `watched_object.handler.handle`: a custom resource that copies an object of S3.

Its properties are ``SourceBucket``, ``SourceKey``, ``Bucket`` and ``Key``. The source is an asset of the
deployment, whose key has the digest of its content, so that another content is a change of the resource. The
target has one key, which programs ask for again and again: they get a new content without being replaced. If
a deployment is taken back, CloudFormation calls with the former source, and the former content returns.

The document is no property, because an event has at most 256 KiB, the former properties included
(https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import boto3
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

_RETRIES: Final = urllib3.Retry(
    total=5, backoff_factor=0.5, allowed_methods=["PUT"], status_forcelist=[500, 503]
)


def handle(event: Mapping[str, Any], _context: object) -> None:
    """Copy the object, and respond to CloudFormation. At deletion, the copy stays: programs may still run."""
    properties = event["ResourceProperties"]
    target = f"s3://{properties['Bucket']}/{properties['Key']}"
    answer: dict[str, Any] = {"Status": "SUCCESS", "Reason": "", "PhysicalResourceId": target}
    if event["RequestType"] != "Delete":
        source = {"Bucket": properties["SourceBucket"], "Key": properties["SourceKey"]}
        try:
            copied = boto3.client("s3").copy_object(
                Bucket=properties["Bucket"],
                Key=properties["Key"],
                CopySource=source,
                ContentType="application/json",
                MetadataDirective="REPLACE",
            )
            answer["Data"] = {"Version": copied.get("VersionId", "")}
        except (BotoCoreError, ClientError) as error:
            answer |= {
                "Status": "FAILED",
                "Reason": f"s3://{source['Bucket']}/{source['Key']} was not copied to {target}: {error}",
            }
    body = {**answer, **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}}
    urllib3.PoolManager().request(
        "PUT",
        event["ResponseURL"],
        body=json.dumps(body).encode(),
        # The address is signed for an empty content type.
        headers={"Content-Type": ""},
        retries=_RETRIES,
    )
