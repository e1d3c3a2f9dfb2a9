"""Folders of our charts with their dependencies inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference_catalog.charts import charts_directory, stage_chart


def test_a_copy_holds_the_dependency_and_an_earlier_copy_is_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        staged = stage_chart(charts_directory() / "dynamo-model", tmp_path)
        (staged / "templates" / "of-an-earlier-version.yaml").touch()
    staged = stage_chart(charts_directory() / "dynamo-model", tmp_path)
    assert (staged / "charts" / "model-library" / "Chart.yaml").is_file()
    assert not (staged / "templates" / "of-an-earlier-version.yaml").exists()


def test_a_chart_without_dependencies_stays_where_it_is(tmp_path: Path) -> None:
    chart = charts_directory() / "weights-mirror"
    assert stage_chart(chart, tmp_path) == chart
    assert list(tmp_path.iterdir()) == []


def test_a_dependency_elsewhere_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text(
        "dependencies: [{name: common, version: 1.0.0, repository: 'https://charts.example.com'}]"
    )
    with pytest.raises(
        ValueError, match=r"'common' is at https://charts.example.com, allowed are local folders"
    ):
        stage_chart(tmp_path, tmp_path / "copies")
