"""The schemas of our charts are those of the types of their values."""

from __future__ import annotations

import runpy

import pytest

from inference_blueprints.resources import charts_directory, root
from inference_blueprints.targets.eks.values_schema import schema_charts

SCRIPT = runpy.run_path(str(root() / "scripts" / "write_chart_schemas.py"))


@pytest.mark.parametrize("chart", schema_charts())
def test_a_schema_is_generated_from_the_types_of_the_values(chart: str) -> None:
    text = (charts_directory() / chart / "values.schema.json").read_text(encoding="utf-8")
    assert text == SCRIPT["schema_text"](chart), "run scripts/write_chart_schemas.py"
