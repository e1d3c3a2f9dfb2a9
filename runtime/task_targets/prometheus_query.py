"""Asks Prometheus for one number, and refuses what KEDA refuses.

KEDA 2.20, ``pkg/scalers/prometheus_scaler.go``, with ``ignoreNullValues: "false"``: no element, several
elements and an infinite value are failures, not a load of 0.
"""

from __future__ import annotations

import math
from typing import Any, Final

import urllib3

_TIMEOUT_SECONDS: Final = 10.0


class PrometheusError(Exception):
    """Prometheus did not answer, or not with one number."""


def query_number(address: str, query: str) -> float:
    """Return the number of an expression.

    https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries

    address: Such as ``http://127.0.0.1:9090``.
    query: PromQL expression.
    Raises PrometheusError if there is no answer, or it has not exactly one finite number.
    """
    try:
        answer = urllib3.request(
            "GET", f"{address}/api/v1/query", fields={"query": query}, timeout=_TIMEOUT_SECONDS, retries=False
        )
        # A refusal has another status, and its reason in the same form.
        content: dict[str, Any] = answer.json()
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise PrometheusError(f"no answer: {error}") from error
    return number_of(content)


def number_of(content: dict[str, Any]) -> float:
    """Return the number of an answer. Raises PrometheusError if it has not exactly one finite number."""
    if content.get("status") != "success":
        raise PrometheusError(f"refused: {content.get('error', 'no reason')}")
    data = content["data"]
    if data["resultType"] == "scalar":
        samples = [data["result"]]
    elif data["resultType"] == "vector":
        samples = [each["value"] for each in data["result"]]
    else:
        raise PrometheusError(f"a {data['resultType']} is no number")
    if len(samples) != 1:
        raise PrometheusError(f"{len(samples)} series, must be one")
    value = float(samples[0][1])
    if not math.isfinite(value):
        raise PrometheusError(f"the value is {value}")
    return value
