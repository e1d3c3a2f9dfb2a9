"""Queries of CloudWatch in PromQL with the credentials of a function."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from inference_contracts.operations_names import NAMES_PER_QUERY, QUERIES_AT_ONCE
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
from operations.operations_errors import MetricsError


def function_promql(
    endpoint: str | None = None, *, wait: Callable[[float], None] = time.sleep
) -> CloudWatchPromql:
    """Return CloudWatch's PromQL in the region of the environment. It raises `MetricsError`.

    endpoint: Address. None for that of the region.
    wait: Waits some seconds before another attempt.
    """
    session = boto3.Session()
    region = str(session.region_name)
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"

    def sign(method: str, address: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        credentials = session.get_credentials()
        if credentials is None:
            raise MetricsError("there are no AWS credentials")
        request = AWSRequest(method, address, headers=dict(headers), data=body)
        SigV4Auth(credentials.get_frozen_credentials(), "monitoring", region).add_auth(request)
        return dict(request.headers.items())

    return CloudWatchPromql(
        endpoint or f"https://monitoring.{region}.{suffix}",
        sign,
        failure=MetricsError,
        connections=QUERIES_AT_ONCE,
        wait=wait,
    )


def text_literal(value: str) -> str:
    """Return a text as PromQL writes it, in quotation marks."""
    return json.dumps(value)


def name_matchers(label: str, names: Iterable[str]) -> Iterator[str]:
    """Yield matchers of a label that together match the names, each as many as one query may have.

    label: Label of a series.
    names: Names of pods or of nodes: letters, digits, hyphens and dots.
    """
    left = list(names)
    for start in range(0, len(left), NAMES_PER_QUERY):
        pattern = "|".join(left[start : start + NAMES_PER_QUERY]).replace(".", "[.]")
        yield f"{label}=~{text_literal(pattern)}"
