"""Tokens of batch jobs by team and model, which CloudWatch counts when jobs end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice, product
from typing import Any, Final

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_contracts import batch_names
from inference_contracts.units import SECONDS_PER_HOUR

#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
_QUERIES_PER_CALL: Final = 500


def batch_tokens(
    account: Account,
    platform: str,
    *,
    teams: Sequence[str],
    models: Sequence[str],
    start: datetime,
    end: datetime,
) -> Mapping[str, Mapping[str, float]]:
    """Return the answer tokens of jobs that ended in a time, by model and team.

    account: Account of the platform.
    platform: `metadata.name`.
    teams, models: Names of the teams, and of the models of queues.
    start, end: Full hours, which is how CloudWatch keeps old values.
    Raises UserError if CloudWatch refuses it.
    """
    found: dict[str, dict[str, float]] = defaultdict(dict)
    pairs = iter(product(teams, models))
    while some := list(islice(pairs, _QUERIES_PER_CALL)):
        queries = [_query(f"q{number}", platform, *pair) for number, pair in enumerate(some)]
        for identity, values in _answers(account, queries, start, end):
            team, model = some[int(identity.removeprefix("q"))]
            found[model][team] = found[model].get(team, 0.0) + sum(values)
    return {model: {team: count for team, count in by.items() if count} for model, by in found.items()}


def _query(identity: str, platform: str, team: str, model: str) -> dict[str, Any]:
    dimensions = {
        batch_names.PLATFORM_DIMENSION: platform,
        batch_names.TEAM_DIMENSION: team,
        batch_names.MODEL_DIMENSION: model,
    }
    metric = {
        "Namespace": batch_names.METRIC_NAMESPACE,
        "MetricName": batch_names.OUTPUT_TOKENS,
        "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
    }
    return {"Id": identity, "MetricStat": {"Metric": metric, "Period": SECONDS_PER_HOUR, "Stat": "Sum"}}


def _answers(
    account: Account, queries: Sequence[Mapping[str, Any]], start: datetime, end: datetime
) -> Iterator[tuple[str, Sequence[float]]]:
    """Yield values by query; a long answer has several parts."""
    more: dict[str, str] = {}
    while True:
        with readable_errors():
            answer = account.client("cloudwatch").get_metric_data(
                MetricDataQueries=queries, StartTime=start, EndTime=end, **more
            )
        for result in answer["MetricDataResults"]:
            yield result["Id"], result["Values"]
        if not answer.get("NextToken"):
            return
        more = {"NextToken": answer["NextToken"]}
