"""A call that AWS refuses for its parameters fails in every test, whatever answers it."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws


@mock_aws
def test_moto_takes_what_aws_refuses_and_the_plugin_does_not() -> None:
    """Red if tests with moto pass for calls that AWS refuses."""
    client = boto3.client("sns", region_name="us-west-2")
    topic = client.create_topic(Name="alarms")["TopicArn"]
    client.publish(TopicArn=topic, Message="text", Subject="a line")
    with pytest.raises(ClientError, match="Invalid parameter: Subject"):
        client.publish(TopicArn=topic, Message="text", Subject="two\nlines")
    with pytest.raises(ClientError, match="Member must have length less than or equal to 80"):
        boto3.client("stepfunctions", region_name="us-west-2").start_execution(
            stateMachineArn="arn:aws:states:us-west-2:123456789012:stateMachine:m", name="n" * 81
        )
