"""Queries of CloudWatch in PromQL.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL-API-QueryMetrics.html: POST
to ``https://monitoring.<region>.amazonaws.com/api/v1/query`` and ``…/query_range``, signed for the service
``monitoring``; it needs cloudwatch:GetMetricData and cloudwatch:ListMetrics.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import boto3
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from inference_blueprints.contracts.operations_names import NAMES_PER_QUERY, QUERIES_AT_ONCE
from operations.operations_errors import MetricsError

#: Limit of one query's time:
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL.html#CloudWatch-PromQL-Limits
_EXECUTION_SECONDS: Final = 20.0
_OK: Final = 200
#: Too many queries at once, too many a second (422, as other limits), and failures.
_PASSING: Final = (422, 429, 500, 502, 503, 504)
#: Waits before another attempt, in seconds.
_WAITS: Final = (0.2, 1.0)


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """A series.

    Parameters
    ----------
    labels
        Its labels, without its name.
    points
        Times in seconds since the epoch, and values, which may be ``nan`` or ``inf``.
    """

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class Promql:
    """CloudWatch's PromQL in one region.

    Parameters
    ----------
    endpoint
        Address. None for that of the region of the environment.
    timeout_seconds
        How long an answer may take.
    wait
        Waits some seconds before another attempt.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        timeout_seconds: float = _EXECUTION_SECONDS,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._session = boto3.Session()
        self._region = self._session.region_name
        suffix = "amazonaws.com.cn" if str(self._region).startswith("cn-") else "amazonaws.com"
        self._endpoint = (endpoint or f"https://monitoring.{self._region}.{suffix}").rstrip("/")
        self._pool = urllib3.PoolManager(
            maxsize=QUERIES_AT_ONCE, timeout=urllib3.Timeout(timeout_seconds), retries=False
        )
        self._wait = wait
        #: Queries that were sent, and series that they returned.
        self.queries, self.series = 0, 0

    def instant(self, query: str, at: float) -> tuple[MetricSeries, ...]:
        """Return the series of a query at one time, each with one point.

        Parameters
        ----------
        query
            PromQL.
        at
            Seconds since the epoch.

        Raises
        ------
        MetricsError
            If there is no complete answer.
        """
        found = self._ask("/api/v1/query", {"query": query, "time": f"{at:.3f}"})
        return tuple(_series(each, [each["value"]]) for each in found)

    def range(self, query: str, start: float, end: float, step_seconds: float) -> tuple[MetricSeries, ...]:
        """Return the series of a query from a time to another.

        Parameters
        ----------
        query
            PromQL.
        start, end
            Times of the first and the last point, in seconds since the epoch.
        step_seconds
            Time between two points.

        Raises
        ------
        MetricsError
            If there is no complete answer.
        """
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_seconds:g}"}
        found = self._ask("/api/v1/query_range", {"query": query, **times})
        return tuple(_series(each, each["values"]) for each in found)

    def _ask(self, path: str, parameters: Mapping[str, str]) -> list[Any]:
        for wait in (*_WAITS, None):
            try:
                return self._once(path, parameters)
            except _PassingError as error:
                if wait is None:
                    raise MetricsError(str(error)) from error
                self._wait(wait)
        raise AssertionError  # the last attempt returns or raises

    def _once(self, path: str, parameters: Mapping[str, str]) -> list[Any]:
        self.queries += 1
        request = AWSRequest(
            "POST",
            f"{self._endpoint}{path}",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            data=urlencode(parameters),
        )
        credentials = self._session.get_credentials()
        if credentials is None:
            raise MetricsError("there are no AWS credentials")
        SigV4Auth(credentials.get_frozen_credentials(), "monitoring", self._region).add_auth(request)
        try:
            answer = self._pool.request(
                "POST", request.url, body=request.data, headers=dict(request.headers.items())
            )
            text = answer.data
        except urllib3.exceptions.HTTPError as error:
            raise _PassingError(f"CloudWatch did not answer a query: {error}") from error
        if answer.status != _OK:
            kind = _PassingError if answer.status in _PASSING else MetricsError
            raise kind(f"CloudWatch refused a query with {answer.status}: {text[:300]!r}")
        return self._result(text)

    def _result(self, text: bytes) -> list[Any]:
        try:
            content = json.loads(text)
            result: list[Any] = content["data"]["result"]
        except (ValueError, KeyError, TypeError) as error:
            raise MetricsError(f"CloudWatch's answer cannot be read: {text[:200]!r}") from error
        if content.get("warnings"):
            # More series than one answer may have: the status is 200 all the same.
            raise MetricsError(f"CloudWatch's answer is not complete: {content['warnings']}")
        self.series += len(result)
        return result


class _PassingError(MetricsError):
    """An attempt failed, and another may succeed."""


def _series(content: Mapping[str, Any], points: list[Any]) -> MetricSeries:
    labels = {name: value for name, value in content["metric"].items() if name != "__name__"}
    return MetricSeries(labels, tuple((float(at), float(value)) for at, value in points))


def text_literal(value: str) -> str:
    """Return a text as PromQL writes it, in quotation marks."""
    return json.dumps(value)


def name_matchers(label: str, names: Iterable[str]) -> Iterator[str]:
    """Yield matchers of a label that together match the names, each as many as one query may have.

    Parameters
    ----------
    label
        Label of a series.
    names
        Names of pods or of nodes: letters, digits, hyphens and dots.
    """
    left = list(names)
    for start in range(0, len(left), NAMES_PER_QUERY):
        pattern = "|".join(left[start : start + NAMES_PER_QUERY]).replace(".", "[.]")
        yield f"{label}=~{text_literal(pattern)}"
