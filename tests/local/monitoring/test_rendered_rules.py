"""The values of Prometheus' chart hold rules that a real Prometheus evaluates."""

from __future__ import annotations

import yaml

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.eks.chart_values import chart_values
from inference_blueprints.render.eks.prometheus_size import PrometheusSize
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.render.monitoring.recording_rules import rule_groups
from inference_blueprints.serving.plan import build_plan
from inference_local.prometheus.timed_evaluation import TimedEvaluation, TimedQuery, evaluate
from tests.local.monitoring import series as of

_MINUTES = 20


def test_a_real_prometheus_records_each_series_of_the_rendered_rules() -> None:
    blueprint = load_blueprint("quickstart-g6e").blueprint
    found = platform_rules(blueprint.metadata.name, build_plan(blueprint), blueprint.spec)
    values = chart_values(
        "prometheus",
        size=PrometheusSize(0).quantities,
        namespace="inference",
        gpu_namespace="monitoring",
        keda_namespace="keda",
        dropped="python_.+",
        certificate=None,
        door=None,
        platform=blueprint.metadata.name,
        rules=rule_groups(found),
    )
    file = yaml.safe_dump(values["serverFiles"]["recording_rules.yml"])
    names = sorted({rule.record for rule in found})
    at = 60.0 * _MINUTES
    queries = [TimedQuery(expression=name, start_seconds=at, end_seconds=at) for name in names]
    evaluation = TimedEvaluation(series=of.lines(of.well(_MINUTES)), queries=queries, rules=file)
    (answers,) = evaluate([evaluation], lambda _: None)
    silent = {name for name, answer in zip(names, answers, strict=True) if not answer}
    assert silent == set()
    for answer in answers:
        assert {each.labels["platform"] for each in answer} == {blueprint.metadata.name}
