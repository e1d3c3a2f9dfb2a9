"""First compilations in the plan's tables."""

from __future__ import annotations

from inference_blueprints.report.figures import PlanSummary
from inference_blueprints.report.figures.compilation_summary import CompilationSummary
from inference_blueprints.report.tables.text_table import TextTable


def compilations(summary: PlanSummary) -> TextTable:
    """Return the table of first compilations, which has rows if a deployment compiles its model."""
    return TextTable(
        "First compilation",
        ("deployment",),
        ("published time, min", "cost of the node, USD", "kept in S3 below"),
        tuple(map(_row, summary.compilations)),
        (
            *dict.fromkeys(f"Published: {each.source}." for each in summary.compilations if each.source),
            "The time is that of the published model of the closest size, not a measurement of this one. "
            "Artefacts are kept below the key until something that it holds changes; without a commit as "
            "'revision' they are not kept. docs/neuron.md lists what the key holds.",
        ),
    )


def _row(each: CompilationSummary) -> tuple[str, ...]:
    minutes = "no data"
    if each.minutes:
        least, most = each.minutes
        minutes = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    return (
        each.deployment,
        minutes,
        "no data" if each.usd is None else f"{each.usd:.2f}",
        each.key or "not kept",
    )
