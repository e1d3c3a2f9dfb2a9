"""The function `image_build.handler.handle`: a custom resource that starts a build in CodeBuild.

Its properties are ``Project``, the project's name, and ``Tag``, the tag of the image; a build is started when
the resource is created and when its tag changes. By default it responds at once, so the deployment does not
wait
for the image. If ``Wait`` is ``true``, it responds when the build has ended, or shortly before its own
timeout
(https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Protocol

import boto3
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

_RETRIES = urllib3.Retry(total=5, backoff_factor=0.5, allowed_methods=["PUT"], status_forcelist=[500, 503])
_LOOK_SECONDS = 5.0
#: Time reserved for the response before the function's timeout.
_LEFT_MILLISECONDS = 30_000


class BuildError(Exception):
    """A build that did not create an image."""


class Context(Protocol):
    """The context object of Lambda."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the remaining time of the function."""


def handle(event: Mapping[str, Any], context: Context) -> None:
    """Start a build, wait for it if requested, and respond to CloudFormation."""
    properties = event["ResourceProperties"]
    answer = {"Status": "SUCCESS", "Reason": ""}
    if event["RequestType"] != "Delete":
        try:
            build = _start(properties["Project"], properties["Tag"])
            if properties.get("Wait") == "true":
                _wait(build, context)
        except (BotoCoreError, ClientError) as error:
            answer = {"Status": "FAILED", "Reason": f"the image build did not start: {error}"}
        except BuildError as error:
            answer = {"Status": "FAILED", "Reason": str(error)}
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


def _start(project: str, tag: str) -> str:
    """Start a build of one tag, and return its identifier."""
    answer = boto3.client("codebuild").start_build(
        projectName=project,
        environmentVariablesOverride=[{"name": "TAG", "value": tag, "type": "PLAINTEXT"}],
    )
    return str(answer["build"]["id"])


def _wait(build: str, context: Context) -> None:
    """Wait until a build has succeeded."""
    client = boto3.client("codebuild")
    while (status := client.batch_get_builds(ids=[build])["builds"][0]["buildStatus"]) == "IN_PROGRESS":
        if context.get_remaining_time_in_millis() < _LEFT_MILLISECONDS:
            raise BuildError(f"the image build {build} takes too long; deploy again when it has ended")
        time.sleep(_LOOK_SECONDS)
    if status != "SUCCEEDED":
        raise BuildError(f"the image build {build} ended with {status}; see its log in CodeBuild")
