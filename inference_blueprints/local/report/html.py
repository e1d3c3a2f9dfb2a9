"""The report as one page that needs nothing else: no script, no font, no request."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from inference_blueprints.local.report import words
from inference_blueprints.local.report.plots import plots_of
from inference_blueprints.local.report.types import ModelRun, Report

_TEMPLATES = Path(__file__).parent


def render_html(report: Report, runs: list[ModelRun]) -> str:
    """Render a report.

    Parameters
    ----------
    report
        What `build_report` returned.
    runs
        What it was built from, for the plots.

    Returns
    -------
    str
        An HTML document; values from the blueprint or the endpoint are escaped.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    sections = [
        (model, [(plot, Markup(plot.svg())) for plot in plots])  # noqa: S704 - Plot.svg escapes what it writes
        for position, (model, run) in enumerate(zip(report.models, runs, strict=True))
        for plots in [plots_of(run, name=f"model-{position}", simulated=report.simulated)]
    ]
    return environment.get_template("page.html.j2").render(
        report=report,
        created=report.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        sections=sections,
        words=words,
    )
