"""Every chart of a registry has a folder in a local run: its module's, or one that brings its definitions."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from inference_blueprints import tools
from inference_catalog.charts import charts
from inference_local.control_plane import build
from inference_local.emulator.kubernetes import render
from inference_local.emulator.real_kubernetes import registry_charts

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "targetgroupbindings.elbv2.k8s.aws"},
    # What looks like a template must arrive as it is.
    "spec": {"group": "elbv2.k8s.aws", "description": "such as {{ .Values.name }}"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The written charts, with modules that hold next to nothing."""
    module = tmp_path / "module"
    for _, path in registry_charts.MODULE_CHARTS.values():
        for part in ("manager", "webhook", "visibility"):
            (module / path / "templates" / part).mkdir(parents=True)
    monkeypatch.setattr(build, "module_files", lambda *_: module)
    monkeypatch.setattr(registry_charts, "definitions", lambda _: [DEFINITION])
    registry_charts.write_charts(tmp_path / "charts", lambda _: None)
    return tmp_path / "charts"


def test_every_chart_of_a_registry_is_there(folder: Path) -> None:
    expected = {chart.name for chart in charts().values() if chart.repository}
    assert {path.name for path in folder.iterdir()} == expected


def test_calls_that_nobody_would_answer_are_left_out(folder: Path) -> None:
    assert {path.name for path in (folder / "kueue" / "templates").iterdir()} == {"manager"}


def test_a_stand_in_has_the_version_of_the_chart_and_installs_its_definitions_word_by_word(
    folder: Path,
) -> None:
    chart = charts()["aws-load-balancer-controller"]
    about = yaml.safe_load((folder / chart.name / "Chart.yaml").read_text())
    assert (about["name"], about["version"]) == (chart.name, chart.version)
    assert _objects(folder / chart.name) == [DEFINITION]


def test_a_stand_in_takes_no_definitions_of_others(folder: Path) -> None:
    assert _objects(folder / "dynamo-platform") == []


def _objects(chart: Path) -> list[dict[str, object]]:
    return render(tools.helm(), chart, release="x", namespace="default", values={}, kubernetes_version="1.35")
