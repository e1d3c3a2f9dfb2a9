"""The function `image_build.handler.handle`: a custom resource that starts a build in CodeBuild.

Its properties are ``Project``, the project's name, and ``Tag``, the tag of the image; a build is started when
the resource is made and when its tag changes. It answers at once: deployment does not wait for the image
(https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import boto3
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

_RETRIES = urllib3.Retry(total=5, backoff_factor=0.5, allowed_methods=["PUT"], status_forcelist=[500, 503])


def handle(event: Mapping[str, Any], _context: object) -> None:
    """Start a build, and tell CloudFormation.

    Parameters
    ----------
    event
        CloudFormation's request.
    """
    properties = event["ResourceProperties"]
    answer = {"Status": "SUCCESS", "Reason": ""}
    if event["RequestType"] != "Delete":
        try:
            _start(properties["Project"], properties["Tag"])
        except (BotoCoreError, ClientError) as error:
            answer = {"Status": "FAILED", "Reason": f"the build of the image did not start: {error}"}
    body = {
        **answer,
        "PhysicalResourceId": properties["Tag"],
        **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")},
    }
    urllib3.PoolManager().request(
        "PUT",
        event["ResponseURL"],
        body=json.dumps(body).encode(),
        # The address is signed for an empty content type.
        headers={"Content-Type": ""},
        retries=_RETRIES,
    )


def _start(project: str, tag: str) -> None:
    """Start a build of one tag."""
    boto3.client("codebuild").start_build(
        projectName=project,
        environmentVariablesOverride=[{"name": "TAG", "value": tag, "type": "PLAINTEXT"}],
    )
