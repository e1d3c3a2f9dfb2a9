"""Recording rules of a local run: what the controllers read, from what simulated engines report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import yaml

from inference_blueprints.render.monitoring.platform_rules import WORKER_LABELS
from inference_blueprints.render.monitoring.recording_rules import RecordingRule, rule_groups, rules
from inference_blueprints.serving.types import ServingPlan
from inference_contracts import health_names

_READ_BY_THE_SHIFT = ("serving_requests_in_flight", "serving_workers_up")
_WINDOW_SECONDS = 60.0
#: A scrape for which this machine was too busy makes no gap: CloudWatch gets one sample of many.
_IN_FLIGHT = re.compile(r"(dynamo_frontend_inflight_requests\{[^}]*\})")
#: Requests of Dynamo's workers, without those of their router.
_GENERATE = 'role!="frontend",dynamo_endpoint="generate"'


def controllers_rules(platform: str, plan: ServingPlan, health_factor: float) -> str:
    """Return the rules as a file for Prometheus.

    Those that the shift reads are the platform's own. Those of workers are not: they read vLLM's metrics,
    which Dynamo's mocker (1.6.1) does not have. So they are made from the metrics of Dynamo's own runtime in
    each worker: requests, requests in flight, and bytes of answers, of which each token takes as many as the
    frontends' count of all tokens says. Requests in flight divided by tokens per second is the time per
    token (Little's law).

    platform: `metadata.name`.
    health_factor: How much faster the clock of GPU health goes. Its minute is so much shorter.
    """
    every = rules(platform, plan, objectives={})
    own = [
        replace(each, expression=_IN_FLIGHT.sub(r"last_over_time(\1[5s])", each.expression))
        for each in every
        if each.record in _READ_BY_THE_SHIFT
    ]
    content = rule_groups([*own, *_workers(platform, health_factor)])
    for group in content["groups"]:
        group["interval"] = "1s"
    return yaml.safe_dump(content, sort_keys=False, width=10_000)


def _workers(platform: str, factor: float) -> Iterator[RecordingRule]:
    window, by = f"{round(_WINDOW_SECONDS / factor * 1000)}ms", ", ".join(WORKER_LABELS)
    chosen = f'platform="{platform}",{_GENERATE}'
    sent = f"sum by ({by}) (rate(dynamo_component_response_bytes_total{{{chosen}}}[{window}]))"
    all_sent = f"sum(rate(dynamo_component_response_bytes_total{{{chosen}}}[{window}]))"
    all_tokens = f'sum(rate(dynamo_frontend_output_tokens_total{{platform="{platform}"}}[{window}]))'
    tokens = f"{sent} / scalar({all_sent} / ({all_tokens} > 0))"
    running = f"sum by ({by}) (avg_over_time(dynamo_component_inflight_requests{{{chosen}}}[{window}]))"
    ended = f"rate(dynamo_component_request_duration_seconds_count{{{chosen}}}[{window}])"
    yield RecordingRule(health_names.WORKER_LOAD, tokens, {})
    yield RecordingRule(health_names.WORKER_LATENCY, f"{running} / ({tokens} > 0)", {})
    yield RecordingRule(
        health_names.WORKER_REQUESTS, f"{_WINDOW_SECONDS / factor:g} * sum by ({by}) ({ended})", {}
    )
