"""The report as one self-contained HTML page, without scripts, fonts or requests."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from markupsafe import Markup

from inference_blueprints.measure import statistics
from inference_blueprints.measure.charts import plots_of
from inference_blueprints.report.pages.render import render_page
from inference_local.front_door.front_door_outcome import front_door_lines
from inference_local.real_time.real_time_outcome import real_time_lines
from inference_local.report import report_text
from inference_local.report.plots import health_plots, scaling_plots, shift_plots
from inference_local.report.report_types import ModelRun, Report
from inference_local.streaming.streaming_outcome import streaming_lines

_TEMPLATE = Path(__file__).with_name("page.html.j2")


def render_html(report: Report, runs: list[ModelRun]) -> str:
    """Render a report.

    runs: The runs that the report was built from, for the plots.
    Returns: An HTML document. Values from the blueprint or the endpoint are escaped.
    """
    sections = [
        (model, [(plot, Markup(plot.svg())) for plot in plots])  # noqa: S704 - Plot.svg escapes what it writes
        for position, (model, run) in enumerate(zip(report.models, runs, strict=True))
        for plots in [
            plots_of(run.result, run.objectives, name=f"model-{position}", simulated=report.simulated)
            if report.timed
            else []
        ]
    ]
    return render_page(
        _TEMPLATE,
        report=report,
        created=report.created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        sections=sections,
        scaling_plots=[
            (plot, Markup(plot.svg()))  # noqa: S704 - Plot.svg escapes what it writes
            for plot in (scaling_plots(report.scaling, simulated=report.simulated) if report.scaling else ())
        ],
        shift_plots=[
            (plot, Markup(plot.svg()))  # noqa: S704 - Plot.svg escapes what it writes
            for plot in (shift_plots(report.controllers.shift) if report.controllers else ())
        ],
        health_plots=[
            (plot, Markup(plot.svg()))  # noqa: S704 - Plot.svg escapes what it writes
            for plot in (health_plots(report.controllers.health) if report.controllers else ())
        ],
        controller_text=report_text,
        report_text=report_text,
        real_time_lines=real_time_lines,
        streaming_lines=streaming_lines,
        front_door_lines=front_door_lines,
        figure_text=statistics,
    )
