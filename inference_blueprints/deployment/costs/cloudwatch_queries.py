"""Client of CloudWatch's PromQL, which has the API of Prometheus.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL-API-QueryMetrics.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import urllib3

from inference_blueprints.deployment.batch.signing import Sign
from inference_blueprints.errors import UserError

_TIMEOUT: Final = urllib3.Timeout(connect=5, read=60)
_RETRIES: Final = urllib3.Retry(
    total=4,
    connect=1,
    redirect=0,
    allowed_methods=None,
    status_forcelist=(HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
    backoff_factor=0.5,
    raise_on_status=False,
)
#: CloudWatch leaves out what an answer would have more, without saying so.
_SERIES_PER_ANSWER: Final = 500


@dataclass(frozen=True, slots=True)
class SampledSeries:
    """One series of an answer.

    Parameters
    ----------
    labels
        Its labels.
    values
        Its values at the asked times. A time without a value is left out.
    """

    labels: Mapping[str, str]
    values: tuple[float, ...]


class CloudWatchQueries:
    """Asks CloudWatch in PromQL.

    Parameters
    ----------
    address
        Such as ``https://monitoring.us-east-1.amazonaws.com``.
    sign
        Signs requests to the service ``monitoring``.
    """

    def __init__(self, address: str, sign: Sign) -> None:
        self._address = f"{address}/api/v1/query_range"
        self._sign = sign
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=_RETRIES)

    def ask(
        self, expression: str, start: datetime, end: datetime, step_seconds: int
    ) -> tuple[SampledSeries, ...]:
        """Return the values of an expression at the start and each step after it.

        Parameters
        ----------
        expression
            PromQL.
        start, end
            First and last time.
        step_seconds
            Time between two.

        Raises
        ------
        UserError
            If CloudWatch refuses it, is not reached, or may have left out series.
        """
        asked = {
            "query": expression,
            "start": f"{start.timestamp():.0f}",
            "end": f"{end.timestamp():.0f}",
            "step": f"{step_seconds}",
        }
        body = urlencode(asked).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            answer = self._pool.request(
                "POST",
                self._address,
                headers=self._sign("POST", self._address, headers, body),
                body=body,
            )
        except urllib3.exceptions.HTTPError as error:
            raise UserError(f"{self._address} is not reached: {error}; check the network") from error
        if answer.status != HTTPStatus.OK:
            raise UserError(
                f"CloudWatch answered {answer.status} to the query {expression}: {_reason(answer.data)}; "
                "it needs cloudwatch:GetMetricData and cloudwatch:ListMetrics"
            )
        series = tuple(
            SampledSeries(each["metric"], tuple(float(value) for _, value in each["values"]))
            for each in json.loads(answer.data)["data"]["result"]
        )
        if len(series) >= _SERIES_PER_ANSWER:
            raise UserError(
                f"got {len(series)} series for {expression}; CloudWatch returns at most "
                f"{_SERIES_PER_ANSWER}, so some may be missing"
            )
        return series


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
