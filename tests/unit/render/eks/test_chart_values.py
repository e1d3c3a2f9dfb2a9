from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest
from write_chart_schemas import schema_charts

from inference_blueprints.render.eks.chart_values import chart_values
from inference_catalog.charts import charts, helm_values_directory

TEMPLATES = sorted(helm_values_directory().glob("*/values.yaml.j2"))
UNRESOLVED = "${Token[TOKEN.123]}"
CLUSTER = {"cluster_name": "quickstart", "region": "us-west-2", "vpc_id": UNRESOLVED}


def test_every_chart_has_values_and_all_values_are_of_a_chart() -> None:
    templates = {path.parent.name for path in TEMPLATES}
    assert templates.isdisjoint(schema_charts())
    assert {*templates, *schema_charts()} == charts().keys()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.parent.name)
def test_every_value_passes_through_tojson(template: Path) -> None:
    expressions = re.findall(r"\{\{(.*?)\}\}", template.read_text(encoding="utf-8"), re.DOTALL)
    assert [text for text in expressions if not text.rstrip(" -").endswith("| tojson")] == []


@pytest.mark.parametrize("name", ["karpenter", "aws-load-balancer-controller"])
def test_a_variable_that_is_missing_is_an_error(name: str) -> None:
    with pytest.raises(jinja2.UndefinedError):
        chart_values(name)


def test_an_unknown_chart_is_an_error() -> None:
    with pytest.raises(jinja2.TemplateNotFound):
        chart_values("absent")


def test_tokens_of_the_cdk_arrive_as_they_are() -> None:
    assert chart_values("aws-load-balancer-controller", **CLUSTER)["vpcId"] == UNRESOLVED


@pytest.mark.parametrize("text", ['a"b', "a: b", "no", "1.30", "{x}", "# a", "<&'>", "a\nb", "ü", "", "null"])
def test_no_string_changes_the_document_around_it(text: str) -> None:
    values = chart_values(
        "karpenter",
        cluster_name=text,
        interruption_queue="q",
        keeps_nodes=False,
        repairs_nodes=True,
        reboots=False,
    )
    settings = values["settings"]
    assert (settings["clusterName"], settings["interruptionQueue"]) == (text, "q")
