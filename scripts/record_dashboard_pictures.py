"""Draw docs/graphs/dashboard-*.svg: every graph of every Grafana dashboard, as a real Prometheus answers it.

    .venv/bin/python scripts/record_dashboard_pictures.py

Frontends are real, engines simulated. Series of GPUs and KEDA are recorded and keep their values: a busy and
an idle GPU. It takes two minutes, and the figures differ from run to run, so no test compares the pictures.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from inference_blueprints.measure.charts import (
    HEIGHT,
    WIDTH,
    Axis,
    Curve,
    Plot,
)
from inference_blueprints.render.monitoring.dashboard_table import DashboardRow, SeriesPanel, dashboard_rows
from inference_blueprints.render.monitoring.recordings import recordings
from inference_contracts.metric_labels import GPU_JOB, KEDA_JOB
from tests.local.monitoring.exporters import served_files
from tests.local.monitoring.live import LivePlatform, live_platform

GRAPHS = Path(__file__).resolve().parent.parent / "docs/graphs"
_SECONDS = 60
_FILES = {
    "dcgm_t4_busy.prom": GPU_JOB,
    "dcgm_l4_idle.prom": GPU_JOB,
    "keda_operator_1.prom": KEDA_JOB,
}
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
_COLUMNS = 2
_TITLE_HEIGHT, _LEGEND_HEIGHT, _MARGIN = 20, 15, 12
#: Later lines are dashed, so that one below is seen.
_LINES = "".join(
    f".line-{place}{{stroke:{each};stroke-dasharray:{'6 5' if place else 'none'}}}"
    for place, each in enumerate(_COLOURS)
)
_STYLE = (
    "<style>text{font:11px sans-serif;fill:#444}.title{font:bold 13px sans-serif}"
    f".grid{{stroke:#ddd}}polyline{{fill:none;stroke-width:2}}{_LINES}</style>"
)


def main() -> None:
    """Run the platform with recorded exporters, ask every query, and write a picture per dashboard."""
    with (
        tempfile.TemporaryDirectory() as directory,
        served_files(_FILES) as targets,
        live_platform(Path(directory), list(targets.values())) as platform,
    ):
        platform.prometheus.wait_for("model_usd_per_million_output_tokens")
        start = time.time()
        time.sleep(_SECONDS)
        for row in dashboard_rows():
            picture = _picture(row, platform, start)
            (GRAPHS / f"dashboard-{row.name}.svg").write_text(picture + "\n", encoding="utf-8")


def _picture(row: DashboardRow, platform: LivePlatform, start: float) -> str:
    maximum = max(len(panel.series) for panel in row.panels) + 1
    height = HEIGHT + _TITLE_HEIGHT + _LEGEND_HEIGHT * maximum + _MARGIN
    lines = -(-len(row.panels) // _COLUMNS)
    panels = "".join(
        f'<g transform="translate({place % _COLUMNS * WIDTH:g} {place // _COLUMNS * height:g})">'
        f"{_graph(panel, platform, start, f'{row.name}-{place}')}</g>"
        for place, panel in enumerate(row.panels)
    )
    size = f"0 0 {_COLUMNS * WIDTH:g} {lines * height:g}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}">{_STYLE}{panels}</svg>'


def _graph(panel: SeriesPanel, platform: LivePlatform, start: float, name: str) -> str:
    shown = list(_curves(panel, platform, start))
    if not shown:
        raise SystemExit(f"{panel.title}: Prometheus has no such series")
    unit = next(each.unit for each in recordings() if panel.series[0] in each.series)
    highest = max(value for _, points in shown for _, value in points)
    plot = Plot(
        name,
        panel.title,
        ", ".join(panel.series),
        Axis("seconds", _SECONDS),
        Axis(unit, highest),
        [Curve(points, str(place % len(_COLOURS))) for place, (_, points) in enumerate(shown)],
    )
    inner = plot.svg().replace("<svg ", f'<svg y="{_TITLE_HEIGHT}" width="{WIDTH:g}" height="{HEIGHT:g}" ', 1)
    legend = "".join(
        f'<text x="58" y="{_TITLE_HEIGHT + HEIGHT + _LEGEND_HEIGHT * (place + 1) - 3:g}" '
        f'style="fill:{_COLOURS[place % len(_COLOURS)]}">{escape(text)}</text>'
        for place, (text, _) in enumerate(shown)
    )
    return f'<text class="title" x="58" y="15">{escape(panel.title)}</text>{inner}{legend}'


def _curves(
    panel: SeriesPanel, platform: LivePlatform, start: float
) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield the legend and the points of every series of a graph."""
    for name, query in zip(panel.series, panel.queries(f'platform="{platform.name}"'), strict=True):
        end = start + _SECONDS
        for labels, values in platform.prometheus.query_range(query, start=start, end=end, step_seconds=1):
            yield _legend(name, labels), [(at - start, value) for at, value in values]


def _legend(name: str, labels: Mapping[str, str]) -> str:
    told = [value for key, value in labels.items() if key in {"model", "role", "pool", "instance_type"}]
    return " ".join([name, *told])


if __name__ == "__main__":
    main()
