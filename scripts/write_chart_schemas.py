"""Write ``values.schema.json`` of our charts from the types of their values. ``make generate`` runs it."""

from __future__ import annotations

import json

from values_schema import schema_charts, values_schema

from inference_catalog.charts import charts_directory


def schema_text(chart: str) -> str:
    """Return the text of a chart's schema."""
    return json.dumps(values_schema(chart), indent=2) + "\n"


def main() -> None:
    """Write every schema."""
    for name in schema_charts():
        (charts_directory() / name / "values.schema.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
