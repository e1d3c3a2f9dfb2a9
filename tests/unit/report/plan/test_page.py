"""The plan as a page: whole, escaped, and needing nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.report.plan.plan_page import plan_page
from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.summary import summarise
from tests.unit.plan_samples import ChangedScene


def _page(scene: Scene, warnings: Sequence[str] = ()) -> str:
    return plan_page(scene.blueprint, scene.plan, summarise(scene.blueprint, scene.plan), warnings)


@pytest.fixture(scope="module")
def page(scene: Scene, summary: PlanSummary) -> str:
    return plan_page(scene.blueprint, scene.plan, summary, ())


def test_every_table_is_on_the_page(page: str, summary: PlanSummary) -> None:
    tables = plan_tables(summary)
    for table in tables:
        assert f">{table.title}</h2>" in page
    assert page.count("<table>") == page.count("</table>") == len(tables)


def test_it_loads_nothing_and_says_so(page: str) -> None:
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in page
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!data:image/svg\+xml;base64,)', page) == []
    assert '<meta name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_texts_are_escaped(changed: ChangedScene) -> None:
    page = _page(changed(lambda spec: spec), ["<b>bold</b>"])
    assert "Warning: &lt;b&gt;bold&lt;/b&gt;" in page


def test_the_same_plan_gives_the_same_page(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec)
    assert _page(scene) == _page(scene)
