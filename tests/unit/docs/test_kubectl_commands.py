"""Names in the commands of runbooks are those of the platform: namespaces, labels, objects and log groups."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.ecs.front_door_task import door_log_group
from inference_blueprints.render.ecs.metrics_task import metrics_log_group
from inference_blueprints.render.eks.chart_values import scaled_kinds
from inference_blueprints.render.eks.front_door_values import DOOR_NAMESPACE
from inference_blueprints.resources import root
from inference_blueprints.serving.plan import build_plan
from inference_catalog.charts import charts
from inference_catalog.log_groups import (
    canary_log_group,
    controller_log_group,
    flink_log_group,
    model_log_group,
)
from inference_contracts.metric_labels import POD_LABEL_PREFIX, POD_LABELS, PROMETHEUS_ADDRESS
from inference_contracts.operations_names import CONTROLLER_CALLS
from tests.charts.front_door import CONTAINERS as DOOR_CONTAINERS
from tests.unit.docs.test_commands import commands

RUNBOOKS = sorted((root() / "docs/runbooks").glob("*.md"))
#: Of the CloudWatch add-on: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/install-CloudWatch-Observability-EKS-addon.html
_ADDON_NAMESPACE = "amazon-cloudwatch"
#: Of Karpenter's nodes: https://karpenter.sh/v1.15/concepts/scheduling/#labels
_NODE_LABELS = {"karpenter.sh/nodepool"}
#: The charts set them: tests/charts/test_metric_labels.py.
_POD_LABELS = {f"{POD_LABEL_PREFIX}{name}" for name in POD_LABELS}
#: https://docs.aws.amazon.com/cli/latest/reference/logs/tail.html
_TAIL_OPTIONS = {"--since", "--follow", "--format", "--filter-pattern", "--log-stream-name-prefix"}
#: Words in capitals stand for a name that the reader has.
_PLACEHOLDER = re.compile("[A-Z]+")

_prometheus, _prometheus_namespace = (urlsplit(PROMETHEUS_ADDRESS).hostname or "").split(".")[:2]
#: Objects by namespace. KEDA's are those of its chart 2.20.2.
OBJECTS = {
    _prometheus_namespace: {f"service/{_prometheus}"},
    DOOR_NAMESPACE: {f"deployment/{charts()['front-door'].release or 'front-door'}"},
    "keda": {"deployment/keda-operator", "deployment/keda-operator-metrics-apiserver"},
}
#: Containers of the pods that commands name, by namespace.
CONTAINERS = {DOOR_NAMESPACE: DOOR_CONTAINERS}


def _namespaces() -> set[str]:
    charts = yaml.safe_load((root() / "helm_values/charts.yaml").read_text(encoding="utf-8"))
    return {chart["namespace"] for chart in charts.values()} | {_ADDON_NAMESPACE}


def _options(words: list[str], name: str) -> list[str]:
    return [after for word, after in itertools.pairwise(words) if word == name]


def _kubectl(page: Path) -> list[list[str]]:
    return [words for words in commands(page) if words[0] == "kubectl"]


def test_runbooks_have_commands() -> None:
    assert sum(len(_kubectl(page)) for page in RUNBOOKS) >= 10


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_namespaces_are_those_of_charts(page: Path) -> None:
    for words in _kubectl(page):
        assert set(_options(words, "--namespace")) <= _namespaces(), words


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_selectors_have_labels_of_the_charts(page: Path) -> None:
    for words in _kubectl(page):
        known = _NODE_LABELS if words[2] == "nodes" else _POD_LABELS
        for selector in _options(words, "--selector"):
            assert {part.partition("=")[0] for part in selector.split(",")} <= known, words


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_named_objects_exist(page: Path) -> None:
    for words in _kubectl(page):
        for word in words[2:]:
            if re.fullmatch("(deployment|service)/.+", word):
                (namespace,) = _options(words, "--namespace")
                assert word in OBJECTS[namespace], words


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_named_containers_exist(page: Path) -> None:
    for words in _kubectl(page):
        for container in _options(words, "--container"):
            (namespace,) = _options(words, "--namespace")
            assert container in CONTAINERS[namespace], words


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_no_placeholder_stands_for_a_name_that_is_known(page: Path) -> None:
    for words in _kubectl(page):
        assert not [each for each in _options(words, "--namespace") if _PLACEHOLDER.fullmatch(each)], words


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.stem)
def test_no_command_stands_in_a_sentence(page: Path) -> None:
    """Commands outside fences are not checked."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"`(?:kubectl|aws) [^`]*`", text) == []


def test_what_is_scaled_by_hand_is_what_keda_scales() -> None:
    named = {
        words[2].partition("/")[0]
        for page in RUNBOOKS
        for words in _kubectl(page)
        if "scaling" in words[2] or words[1] == "scale"
    }
    plan = build_plan(load_blueprint("elastic-g6e").blueprint)
    assert named == {each.resource for each in scaled_kinds(plan, None)}


def test_the_logs_of_functions_and_tasks_are_where_the_runbooks_look() -> None:
    functions = {controller_log_group("PLATFORM", name) for name in CONTROLLER_CALLS}
    tasks = {model_log_group("PLATFORM", "MODEL"), metrics_log_group("PLATFORM"), door_log_group("PLATFORM")}
    groups = {canary_log_group("PLATFORM"), flink_log_group("PLATFORM-JOB"), *functions, *tasks}
    tails = [words for page in RUNBOOKS for words in commands(page) if words[:3] == ["aws", "logs", "tail"]]
    # A page that asks for the name of a group that CloudFormation has chosen.
    assert {words[3] for words in tails} == groups | {"LOG_GROUP"}
    assert {word for words in tails for word in words if word.startswith("--")} <= _TAIL_OPTIONS
