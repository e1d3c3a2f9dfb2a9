"""The recorded series of a local run, by the engine of a real Prometheus: what each worker's minute was."""

from __future__ import annotations

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_contracts import health_names
from inference_local.controllers.metric_answers import controllers_rules
from inference_local.prometheus.timed_evaluation import TimedEvaluation, TimedQuery, evaluate

FACTOR, SECONDS = 4.0, 40
LABELS = 'platform="capacity",model="qwen3-8b",release="r",role="worker",pool="l40s"'
FRONTEND = 'platform="capacity",model="qwen3-8b",release="r",role="frontend",pool="system",pod="f",node="n"'


def worker(pod: str, *, in_flight: int, bytes_per_second: int) -> list[str]:
    """Return the series of a worker that ends a request in each second."""
    mine = f'{LABELS},pod="{pod}",node="node-{pod}",dynamo_endpoint="generate"'
    others = f'{LABELS},pod="{pod}",node="node-{pod}",dynamo_endpoint="worker_kv_query"'
    return [
        f"dynamo_component_inflight_requests{{{mine}}} {in_flight}x{SECONDS}",
        f"dynamo_component_inflight_requests{{{others}}} 50x{SECONDS}",
        f"dynamo_component_response_bytes_total{{{mine}}} 0+{bytes_per_second}x{SECONDS}",
        f"dynamo_component_request_duration_seconds_count{{{mine}}} 0+1x{SECONDS}",
    ]


def test_time_per_token_is_requests_in_flight_over_tokens_per_second() -> None:
    plan = build_plan(load_blueprint("capacity-and-health").blueprint)
    series = [
        *worker("a", in_flight=10, bytes_per_second=30_000),
        *worker("b", in_flight=20, bytes_per_second=30_000),
        f"dynamo_frontend_output_tokens_total{{{FRONTEND}}} 0+600x{SECONDS}",  # 100 bytes each
        f"dynamo_frontend_inflight_requests{{{FRONTEND}}} 30x20 _x{SECONDS - 21}",  # no scrape after 20 s
        f'up{{{LABELS},pod="a",node="node-a"}} 1x{SECONDS}',
    ]
    names = (*health_names.WORKER_SERIES[:3], "serving_requests_in_flight", "serving_workers_up")
    at = {"start_seconds": 30.0, "end_seconds": 30.0}
    queries = [TimedQuery(expression=name, **at) for name in names]
    queries.append(TimedQuery(expression=names[3], start_seconds=24.0, end_seconds=24.0))
    (answers,) = evaluate(
        [
            TimedEvaluation(
                series=series,
                queries=queries,
                rules=controllers_rules("capacity", plan, FACTOR),
                interval_seconds=1.0,
            )
        ],
        lambda _: None,
    )
    tokens, latency, requests, in_flight, up, shortly_after = (
        {each.labels.get("pod", ""): each.values[0][1] for each in answer} for answer in answers
    )
    assert tokens == {"a": pytest.approx(300.0), "b": pytest.approx(300.0)}
    assert latency == {"a": pytest.approx(10 / 300), "b": pytest.approx(20 / 300)}
    assert requests == {"a": pytest.approx(15.0), "b": pytest.approx(15.0)}  # in a minute of 15 s
    assert (in_flight, shortly_after) == ({}, {"": 30.0})
    assert up == {"": 1.0}
