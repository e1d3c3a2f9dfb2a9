"""A process of a controller that has just begun."""

from __future__ import annotations

from collections.abc import Mapping

import boto3
import pytest
from aws_lambda_powertools import Metrics

from operations import aws_clients

REGION = "us-west-2"
#: Credentials for AWS emulated in the process. Its EC2 has no images but those that a test registers: to list
#: the thousands that moto knows takes seconds.
NOBODY = {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": REGION,
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
}


def begin_anew(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    """Set environment variables, and forget clients, and metrics that a killed run did not write.

    monkeypatch: Undoes it.
    """
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    aws_clients.client.cache_clear()
    aws_clients.resource.cache_clear()
    # Powertools keeps metrics and dimensions per process, for all instances.
    metrics = Metrics()
    metrics.clear_metrics()
    metrics.clear_default_dimensions()
