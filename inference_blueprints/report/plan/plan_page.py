"""The plan as one page that needs nothing else."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from inference_blueprints.report.pages.render import render_page
from inference_blueprints.report.picture.picture import picture
from inference_blueprints.report.plan.plan_tables import plan_notes, plan_tables
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint

_TEMPLATE = Path(__file__).with_name("plan_page.html.j2")


def plan_page(
    blueprint: Blueprint, plan: ServingPlan, summary: PlanSummary, warnings: Sequence[str] = ()
) -> str:
    """Render a plan with its picture.

    blueprint, plan: The content of the picture.
    summary: Figures of the plan.
    warnings: Warnings about the blueprint, one line each.
    Returns: An HTML document; the same plan gives the same text.
    """
    svg = base64.b64encode(picture(blueprint, plan).encode()).decode()
    return render_page(
        _TEMPLATE,
        summary=summary,
        warnings=warnings,
        # As an image, the picture keeps its own styles, and the page's do not reach into it.
        picture=f"data:image/svg+xml;base64,{svg}",
        description=f"Platform of the blueprint {summary.name}; the tables below have its figures",
        tables=plan_tables(summary),
        notes=plan_notes(summary),
    )
