"""Client of CloudWatch's PromQL, which has the API of Prometheus.

The service is documented at
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL-API-QueryMetrics.html: POST
to ``/api/v1/query`` and ``/api/v1/query_range``, signed for the service ``monitoring``; it needs
cloudwatch:GetMetricData and cloudwatch:ListMetrics.

**An answer that may lack series is refused**, and none is ever used in part. The document says: "A single …
response can return up to 500 unique time series", and without ``limit`` "CloudWatch returns up to the maximum
(500)". Which series are left out is not defined. So an answer is complete only if

1. its ``status`` is ``success``,
2. it has no ``warnings``: Prometheus returns 200 with data and ``warnings`` for what is cut at ``limit`` or
   otherwise incomplete (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview), and
3. it has fewer than 500 series: an answer with exactly 500 cannot be told from one that was cut.

Queries send no ``limit``, because it could only lower the maximum. A query that may have more series is
divided by its caller.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import urllib3

#: Takes method, address, headers and body of a request; returns the headers with the signature.
SignRequest = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]

#: Series that an answer has at most.
SERIES_PER_ANSWER: Final = 500
#: Time limit of one query:
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL.html#CloudWatch-PromQL-Limits
_EXECUTION_SECONDS: Final = 20.0
#: Too many queries at once, too many a second (422, as other limits), and failures.
_PASSING: Final = (422, 429, 500, 502, 503, 504)
#: Waits before another attempt, in seconds.
_WAITS: Final = (0.2, 1.0)


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """A series."""

    labels: Mapping[str, str]
    """Its labels, without its name."""
    points: tuple[tuple[float, float], ...]
    """Times in seconds since the epoch, and values, which may be ``nan`` or ``inf``. A time without a value
    is left out."""


class CloudWatchPromql:
    """CloudWatch's PromQL in one region.

    address: Such as ``https://monitoring.us-east-1.amazonaws.com``.
    sign: Signs requests to the service ``monitoring``.
    failure: Class of the errors.
    timeout_seconds: How long an answer may take.
    connections: Connections that are kept for queries at the same time.
    wait: Waits some seconds before another attempt.
    """

    def __init__(
        self,
        address: str,
        sign: SignRequest,
        *,
        failure: type[Exception],
        timeout_seconds: float = _EXECUTION_SECONDS,
        connections: int = 1,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address = address.rstrip("/")
        self._sign = sign
        self._failure = failure
        self._pool = urllib3.PoolManager(
            maxsize=connections, timeout=urllib3.Timeout(timeout_seconds), retries=False
        )
        self._wait = wait
        # Queries that were sent, and series that they returned.
        self.queries, self.series = 0, 0

    def instant(self, query: str, at: float) -> tuple[MetricSeries, ...]:
        """Return the series of a query at one time, each with one point.

        query: PromQL.
        at: Seconds since the epoch.
        Raises Exception of the class `failure`, if there is no complete answer.
        """
        found = self._ask("/api/v1/query", {"query": query, "time": f"{at:.3f}"})
        return tuple(_series(each, [each["value"]]) for each in found)

    def range(self, query: str, start: float, end: float, step_seconds: float) -> tuple[MetricSeries, ...]:
        """Return the series of a query from a time to another.

        start, end: Times of the first and the last point, in seconds since the epoch.
        step_seconds: Time between two points.
        Raises Exception of the class `failure`, if there is no complete answer.
        """
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_seconds:g}"}
        found = self._ask("/api/v1/query_range", {"query": query, **times})
        return tuple(_series(each, each["values"]) for each in found)

    def _ask(self, path: str, parameters: Mapping[str, str]) -> list[Any]:
        for wait in (*_WAITS, None):
            try:
                return self._once(path, parameters)
            except _RefusedError as error:
                if wait is None or not error.passing:
                    raise self._failure(str(error)) from error
                self._wait(wait)
        raise AssertionError  # the last attempt returns or raises

    def _once(self, path: str, parameters: Mapping[str, str]) -> list[Any]:
        self.queries += 1
        address, body = f"{self._address}{path}", urlencode(parameters).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        signed = dict(self._sign("POST", address, headers, body))
        try:
            answer = self._pool.request("POST", address, headers=signed, body=body)
        except urllib3.exceptions.HTTPError as error:
            raise _RefusedError(
                f"CloudWatch did not answer a query at {self._address}: {error}; check the network",
                passing=True,
            ) from error
        query = parameters["query"]
        if answer.status != HTTPStatus.OK:
            raise _RefusedError(
                f"CloudWatch answered {answer.status} to the query {query}: {_reason(answer.data)}; it needs "
                "cloudwatch:GetMetricData and cloudwatch:ListMetrics",
                passing=answer.status in _PASSING,
            )
        result = _complete(query, answer.data)
        self.series += len(result)
        return result


class _RefusedError(Exception):
    """There is no complete answer; another attempt may have one."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


def _complete(query: str, text: bytes) -> list[Any]:
    """Return the series of an answer of which nothing is missing."""
    try:
        content = json.loads(text)
        status, result = content["status"], content["data"]["result"]
    except (ValueError, KeyError, TypeError) as error:
        raise _RefusedError(f"CloudWatch's answer to {query} cannot be read: {text[:200]!r}") from error
    if status != "success" or not isinstance(result, list):
        raise _RefusedError(f"CloudWatch's answer to {query} is no success: {text[:200]!r}")
    if content.get("warnings"):
        raise _RefusedError(f"CloudWatch's answer to {query} is not complete: {content['warnings']}")
    if len(result) >= SERIES_PER_ANSWER:
        raise _RefusedError(
            f"got {len(result)} series for {query}; CloudWatch returns at most {SERIES_PER_ANSWER}, so some "
            "may be missing"
        )
    return result


def _series(content: Mapping[str, Any], points: list[Any]) -> MetricSeries:
    labels = {name: value for name, value in content["metric"].items() if name != "__name__"}
    return MetricSeries(labels, tuple((float(at), float(value)) for at, value in points))


def _reason(data: bytes) -> str:
    """Return the message of a refusal in the format of Prometheus or of AWS, or its beginning."""
    try:
        content: Any = json.loads(data)
    except ValueError:
        content = None
    if isinstance(content, dict):
        for key in ("error", "message", "Message"):
            if key in content:
                return str(content[key])
    return data[:300].decode(errors="replace")
