"""CDK's `Custom::S3AutoDeleteObjects`: empties a bucket before it is deleted.

CDK's function is written for Node with an AWS SDK that the Lambda runtime brings and this machine does not,
so the handler does the same work through the emulator's S3 API.
"""

from __future__ import annotations

import os

import boto3
from ministack.core.responses import get_account_id, get_region

from inference_blueprints.local.emulator.resource_handlers.registry import Attributes, Properties, register

RESOURCE_TYPE = "Custom::S3AutoDeleteObjects"


class EmptiedBucketHandler:
    """Empties the bucket at deletion, and at an update that names another bucket."""

    def create(self, stack: str, logical_id: str, properties: Properties) -> tuple[str, Attributes]:
        """Note the bucket."""
        return properties["BucketName"], {}

    def update(
        self, stack: str, logical_id: str, physical_id: str, old: Properties, new: Properties
    ) -> tuple[str, Attributes]:
        """Return the bucket; CloudFormation deletes the old resource when it is another one."""
        return self.create(stack, logical_id, new)

    def delete(self, physical_id: str, properties: Properties) -> None:
        """Delete every object and version."""
        storage = boto3.resource(
            "s3",
            endpoint_url=f"http://{os.environ['BIND_HOST']}:{os.environ['GATEWAY_PORT']}",
            region_name=get_region(),
            aws_access_key_id=get_account_id(),
            aws_secret_access_key="emulator",  # noqa: S106 - no secret: the emulator checks none
        )
        storage.Bucket(properties["BucketName"]).object_versions.delete()


def register_emptied_bucket() -> None:
    """Let the emulator's CloudFormation empty buckets."""
    register(RESOURCE_TYPE, EmptiedBucketHandler())
