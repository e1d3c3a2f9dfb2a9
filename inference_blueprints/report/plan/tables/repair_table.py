"""Who replaces broken nodes, in the plan's tables."""

from __future__ import annotations

from inference_blueprints.report.figures import PlanSummary
from inference_blueprints.report.tables.text_table import TextTable


def repairs(summary: PlanSummary) -> TextTable:
    """Return the table of repairs, which has rows if the blueprint says something about them."""
    return TextTable(
        "Broken and slow GPUs",
        ("pool", "repaired by"),
        ("a broken node", "a node with slow GPUs"),
        tuple((each.pool, each.owner, each.broken, each.slow) for each in summary.repairs),
        (
            *dict.fromkeys(each.limits for each in summary.repairs if each.limits),
            "What is broken, what is slow, and which guards hold a replacement back: docs/gpu-health.md.",
        ),
    )
