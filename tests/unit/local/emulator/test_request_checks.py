"""Requests are read as boto3 was asked to write them, and refused outside the bounds of their API's model."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.config import Config

from inference_local.emulator.model_constraints import beyond_model
from inference_local.emulator.patches.request_checks import error_answer, refusal_of
from inference_local.emulator.refusals import AwsApiError
from inference_local.emulator.request_parameters import Request, SentRequest, read_request, service_model


class SentError(Exception):
    """A request that was about to be sent."""


def sent_request(service: str, operation: str, parameters: dict[str, Any]) -> SentRequest:
    client = boto3.client(
        service,
        region_name="us-west-2",
        aws_access_key_id="a",
        aws_secret_access_key="b",  # noqa: S106 - of nobody
        # As to an address of this machine: with the name of the bucket in the path.
        config=Config(parameter_validation=False, s3={"addressing_style": "path"}),
    )

    def stop(request: AWSPreparedRequest, **_: object) -> None:
        raise SentError(request)

    client.meta.events.register("before-send", stop)
    with pytest.raises(SentError) as raised:
        getattr(client, operation)(**parameters)
    [request] = raised.value.args
    address = urlsplit(request.url)
    body = request.body or b""
    headers = {
        name.lower(): value.decode() if isinstance(value, bytes) else value
        for name, value in request.headers.items()
    }
    return SentRequest(
        request.method,
        address.path,
        headers,
        body if isinstance(body, bytes) else body.encode(),
        parse_qs(address.query, keep_blank_values=True),
    )


@pytest.mark.parametrize(
    ("service", "operation", "parameters"),
    [
        ("sqs", "receive_message", {"QueueUrl": "q", "MaxNumberOfMessages": 10}),
        ("iam", "create_role", {"RoleName": "r", "Tags": [{"Key": "a", "Value": "b"}]}),
        ("sns", "create_topic", {"Name": "t", "Attributes": {"DisplayName": "d"}}),
        ("ec2", "terminate_instances", {"InstanceIds": ["i-1", "i-2"], "DryRun": True}),
        ("eks", "describe_addon_versions", {"addonName": "a", "maxResults": 5}),
        ("lambda", "put_function_event_invoke_config", {"FunctionName": "f", "MaximumRetryAttempts": 1}),
        ("s3", "delete_objects", {"Bucket": "b", "Delete": {"Objects": [{"Key": "k"}], "Quiet": True}}),
        ("route53", "list_hosted_zones_by_vpc", {"VPCId": "vpc-1", "VPCRegion": "us-west-2"}),
    ],
)
def test_a_request_is_read_as_it_was_written(
    service: str, operation: str, parameters: dict[str, Any]
) -> None:
    """Red if a refusal of the table is never seen, because its parameter is not read in this protocol."""
    read = read_request(service, sent_request(service, operation, parameters))
    assert read is not None
    known = {name: value for name, value in read.parameters.items() if name in parameters}
    assert known.pop("Bucket", "b") == "b"
    assert known == {name: value for name, value in parameters.items() if name != "Bucket"}


def refused(service: str, operation: str, **parameters: Any) -> AwsApiError | None:
    return beyond_model(service_model(service).operation_model(operation), parameters)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (refused("lambda", "PutFunctionEventInvokeConfig", MaximumEventAgeInSeconds=59), "or equal to 60"),
        (refused("lambda", "PutFunctionEventInvokeConfig", MaximumRetryAttempts=3), "or equal to 2"),
        (refused("iam", "CreateRole", RoleName="r" * 65), "at 'roleName' failed"),
        (refused("iam", "CreateRole", RoleName="a b"), "regular expression pattern"),
        (refused("eks", "CreateNodegroup", capacityType="CHEAP"), "satisfy enum value set: [ON_DEMAND"),
        (refused("dynamodb", "TransactWriteItems", TransactItems=[{}] * 101), "less than or equal to 100"),
    ],
)
def test_a_value_outside_the_model_is_refused(error: AwsApiError | None, words: str) -> None:
    """Red if a template or a call passes here that a deployment to AWS would refuse."""
    assert words in str(error)


def test_a_call_within_its_model_passes() -> None:
    """Red if the emulator refuses what AWS takes."""
    assert refused("lambda", "PutFunctionEventInvokeConfig", FunctionName="f", MaximumRetryAttempts=2) is None
    assert refused("iam", "CreateRole", RoleName="r" * 64) is None


@pytest.mark.parametrize("service", ["sqs", "sns", "ec2", "s3", "lambda"])
def test_an_error_is_one_that_boto3_reads(service: str) -> None:
    """Red if a client of this protocol sees an unknown error in the place of AWS's."""
    operation = service_model(service).operation_model(service_model(service).operation_names[0])
    status, headers, body = error_answer(Request(operation, {}), AwsApiError("SomeCode", "a < b"))
    parser = boto3.client(service, region_name="us-west-2")._response_parser
    answer = parser.parse({"status_code": status, "headers": headers, "body": body}, operation.output_shape)[
        "Error"
    ]
    assert (answer["Code"], answer["Message"]) == ("SomeCode", "a < b")


def test_a_row_of_the_table_applies_to_calls() -> None:
    """Red if only the model is asked."""
    operation = service_model("sqs").operation_model("ReceiveMessage")
    error = refusal_of(Request(operation, {"QueueUrl": "q", "MaxNumberOfMessages": 11}))
    assert "Must be between 1 and 10" in str(error)
