"""CDK's `Custom::S3AutoDeleteObjects`: empties a bucket before it is deleted.

CDK's function needs the AWS SDK of the Lambda runtime for Node, which this machine does not have. The handler
does the same through the emulator's S3 API.
"""

from __future__ import annotations

import os
from typing import Any

import boto3
from botocore.exceptions import ClientError
from ministack.core.responses import get_account_id, get_region

from inference_local.emulator.resource_handlers.registry import Made, ResourceRequest, register

RESOURCE_TYPE = "Custom::S3AutoDeleteObjects"
_ALLOWED = {"Key": "aws-cdk:auto-delete-objects", "Value": "true"}


class EmptiedBucketHandler:
    """Empties the bucket at deletion."""

    def create(self, request: ResourceRequest) -> Made:
        """Record the bucket."""
        return request.properties["BucketName"], {}

    update = create

    def delete(self, request: ResourceRequest) -> None:
        """Delete every object and version, unless the bucket no longer has the tag that allows it."""
        storage = boto3.resource(
            "s3",
            endpoint_url=f"http://{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}",
            region_name=get_region(),
            aws_access_key_id=get_account_id(),
            aws_secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        )
        name = request.properties["BucketName"]
        if _ALLOWED in _tags(storage.meta.client, name):
            storage.Bucket(name).object_versions.delete()


def _tags(client: Any, bucket: str) -> list[dict[str, str]]:
    try:
        tags: list[dict[str, str]] = client.get_bucket_tagging(Bucket=bucket)["TagSet"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchTagSet":
            raise
        return []
    return tags


def register_emptied_bucket() -> None:
    """Register the handler in the emulator's CloudFormation."""
    register(RESOURCE_TYPE, EmptiedBucketHandler())
