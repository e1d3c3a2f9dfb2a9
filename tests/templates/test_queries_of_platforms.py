"""Two platforms of one account and region: each query that CloudWatch answers selects its own platform."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.templates.conftest import SynthesiseShipped
from tests.templates.support import Templates, text

#: A selector of a query in PromQL: the braces behind a metric's name, or those that hold the name.
_SELECTOR = re.compile(r"{[^}]*}")
#: How a selector names the platform: by our label, or by the cluster of the CloudWatch add-on.
_OWN = re.compile(r'(?:platform|"@resource\.k8s\.cluster\.name")="capacity"')
#: Names of metrics that we record, and of exporters, without a selector: those of all platforms.
_BARE = re.compile(r"\b(?:serving|worker|node|pool|platform|model)_[a-z_]+\b(?![{\w])|\bDCGM_\w+\b(?![{\w])")
#: What is no metric, though it looks like one: labels of sums and joins.
_LABELS = re.compile(r"\b(?:by|on|group_left|without)\s*\([^)]*\)")


def queries(templates: Templates) -> Iterator[str]:
    """Yield the queries in PromQL of alarms and dashboards."""
    for alarm in templates.properties("AWS::CloudWatch::Alarm"):
        if "EvaluationCriteria" in alarm:
            yield text(alarm["EvaluationCriteria"]["PromQLCriteria"]["Query"])
    for dashboard in templates.properties("AWS::CloudWatch::Dashboard"):
        yield from _found(json.loads(text(dashboard["DashboardBody"])))


def _found(content: Any) -> Iterator[str]:
    if isinstance(content, dict):
        yield from (value for name, value in content.items() if name == "query" and isinstance(value, str))
        yield from (each for value in content.values() for each in _found(value))
    elif isinstance(content, list):
        yield from (each for value in content for each in _found(value))


def test_every_query_selects_its_platform(synthesise_shipped: SynthesiseShipped) -> None:
    """Red if a query would read the series of another platform of the account too."""
    found = sorted(set(queries(synthesise_shipped("capacity-and-health"))))
    assert len(found) > 40
    for query in found:
        assert _SELECTOR.search(query), query
        assert all(_OWN.search(each) for each in _SELECTOR.findall(query)), query
        assert not _BARE.search(_LABELS.sub("", query)), query
