"""Draw docs/graphs/killed-worker.svg: a worker of a simulated platform is killed.

A real Prometheus answers the queries of the dashboards. The engines are simulated. It takes a minute, and the
figures differ from run to run, so no test compares the picture.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from inference_blueprints.measure.charts import (
    Axis,
    Curve,
    Layer,
    Plot,
)
from tests.local.monitoring.live import live_platform

PICTURE = Path(__file__).resolve().parent.parent / "docs/graphs/killed-worker.svg"
_BEFORE_SECONDS, _AFTER_SECONDS = 20, 30
_STYLE = (
    "<style>text{font:11px sans-serif;fill:#444}.grid{stroke:#ddd}"
    ".line-up{fill:none;stroke:#1f77b4;stroke-width:2}"
    ".line-least{fill:none;stroke:#d62728;stroke-dasharray:4 3}"
    ".line-flight{fill:none;stroke:#2ca02c;stroke-width:2}</style>"
)
_SERIES = (
    ("serving_workers_up", "up"),
    ("serving_workers_least", "least"),
    ("serving_requests_in_flight", "flight"),
)


def main() -> None:
    """Run the platform, kill a worker, ask Prometheus, and write the picture."""
    with tempfile.TemporaryDirectory() as directory, live_platform(Path(directory)) as platform:
        start = time.time()
        time.sleep(_BEFORE_SECONDS)
        platform.serving.kill(platform.serving.first_workers()[0])
        time.sleep(_AFTER_SECONDS)
        end = time.time()
        layers: list[Layer] = []
        highest = 0.0
        for name, style in _SERIES:
            query = f'{name}{{platform="{platform.name}"}}'
            for _, values in platform.prometheus.query_range(query, start=start, end=end, step_seconds=1):
                layers.append(Curve([(at - start, value) for at, value in values], style))
                highest = max([highest, *(value for _, value in values)])
    plot = Plot(
        "killed-worker",
        "Workers and requests in flight (simulated)",
        "Blue: workers that answer. Red, dashed: smallest number of the plan. Green: requests in flight.",
        Axis("seconds", _BEFORE_SECONDS + _AFTER_SECONDS),
        Axis("workers, requests", highest),
        layers,
    )
    svg = plot.svg().replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    PICTURE.write_text(svg.replace("</desc>", f"</desc>{_STYLE}", 1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
