"""The function `streaming.setup.handle`: custom resources of the stack `<platform>-Streaming`.

=================================  ==========================================================================
Type                               What happens
=================================  ==========================================================================
``Custom::KafkaBrokers``           Asks MSK for the brokers' addresses for clients with IAM access control.
                                   CloudFormation does not return them. Property ``ClusterArn``, attribute
                                   ``Servers``.
``Custom::JobConfiguration``       Writes a job's configuration to S3. The key has its SHA-256, so that a new
                                   configuration is a change of the application, which then restarts from a
                                   snapshot. Properties ``Bucket``, ``Prefix``, ``Document``; attributes
                                   ``Key``, ``Address``. Former ones stay, because a rollback needs them.
``Custom::StartedApplication``     Starts a new Flink application, which CloudFormation does not do
                                   (https://docs.aws.amazon.com/managed-flink/latest/apiv2/API_StartApplication.html),
                                   and waits until it runs. Property ``Application``. A running application
                                   restarts by itself when it is changed, and deleting it stops it.
=================================  ==========================================================================
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import boto3
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

_RETRIES: Final = urllib3.Retry(
    total=5, backoff_factor=0.5, allowed_methods=["PUT"], status_forcelist=[500, 503]
)
_LOOK_SECONDS: Final = 5.0
#: Time reserved for the response before the function's timeout.
_LEFT_MILLISECONDS: Final = 30_000


class SetupError(Exception):
    """A step of the deployment that did not succeed."""


class RemainingTime(Protocol):
    """The context object of Lambda."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the remaining time of the function."""


def handle(event: Mapping[str, Any], context: RemainingTime) -> None:
    """Do what a custom resource says, and respond to CloudFormation."""
    former = event.get("PhysicalResourceId", event["LogicalResourceId"])
    answer: dict[str, Any] = {"Status": "SUCCESS", "Reason": "", "PhysicalResourceId": former}
    if event["RequestType"] != "Delete":
        try:
            name, data = _STEPS[event["ResourceType"]](event, context)
            answer |= {"PhysicalResourceId": name, "Data": data}
        except (BotoCoreError, ClientError, SetupError) as error:
            answer |= {"Status": "FAILED", "Reason": f"{event['ResourceType']}: {error}"}
    body = {**answer, **{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}}
    urllib3.PoolManager().request(
        "PUT",
        event["ResponseURL"],
        body=json.dumps(body).encode(),
        # The address is signed for an empty content type.
        headers={"Content-Type": ""},
        retries=_RETRIES,
    )


def _find_brokers(event: Mapping[str, Any], _: RemainingTime) -> tuple[str, dict[str, str]]:
    arn = event["ResourceProperties"]["ClusterArn"]
    answer = boto3.client("kafka").get_bootstrap_brokers(ClusterArn=arn)
    servers = answer.get("BootstrapBrokerStringSaslIam")
    if not servers:
        raise SetupError(f"{arn} has no brokers for clients with IAM access control")
    return arn, {"Servers": servers}


def _write_configuration(event: Mapping[str, Any], _: RemainingTime) -> tuple[str, dict[str, str]]:
    properties = event["ResourceProperties"]
    document = properties["Document"].encode()
    key = f"{properties['Prefix']}{hashlib.sha256(document).hexdigest()}.json"
    boto3.client("s3").put_object(
        Bucket=properties["Bucket"], Key=key, Body=document, ContentType="application/json"
    )
    return key, {"Key": key, "Address": f"s3://{properties['Bucket']}/{key}"}


def _start(event: Mapping[str, Any], context: RemainingTime) -> tuple[str, dict[str, str]]:
    name = event["ResourceProperties"]["Application"]
    client = boto3.client("kinesisanalyticsv2")
    if event["RequestType"] == "Update" and name == event["OldResourceProperties"]["Application"]:
        return name, {}  # A stopped application is left as it is.
    if _status(client, name) == "READY":
        client.start_application(ApplicationName=name)
    while (status := _status(client, name)) != "RUNNING":
        if status not in {"STARTING", "UPDATING", "AUTOSCALING"}:
            raise SetupError(f"the application {name} is {status} after its start; see its log group")
        if context.get_remaining_time_in_millis() < _LEFT_MILLISECONDS:
            raise SetupError(f"the application {name} is still {status}; see its log group")
        time.sleep(_LOOK_SECONDS)
    return name, {}


def _status(client: Any, name: str) -> str:
    return str(client.describe_application(ApplicationName=name)["ApplicationDetail"]["ApplicationStatus"])


_STEPS: Final[Mapping[str, Callable[[Mapping[str, Any], RemainingTime], tuple[str, dict[str, str]]]]] = {
    "Custom::KafkaBrokers": _find_brokers,
    "Custom::JobConfiguration": _write_configuration,
    "Custom::StartedApplication": _start,
}
