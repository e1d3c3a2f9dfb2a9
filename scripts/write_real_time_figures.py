"""Write the figures of docs/real-time.md for peaks of 100,000 and 300,000 requests per second.

They are between ``<!-- peaks -->`` and ``<!-- end of peaks -->``: results of `blueprints plan` for the model
of a shipped blueprint with another workload. ``make generate`` runs this script.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from generated_files import fill_section, rewrite

from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.plan.sections.edges import (
    EDGE_FIGURES,
    EdgeSummary,
    edge_cells,
    edge_sentences,
    edge_summary,
    worker_usd_per_hour,
)
from inference_blueprints.report.pricing.rates import prices_for
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.derived import platform_zones
from inference_blueprints.spec.types import ModelWorkload, Objectives

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "real-time.md"
PEAKS: Final = (100_000.0, 300_000.0)
_BLUEPRINT: Final = "quickstart-g6e"
#: Short prompts and answers, as ad servers send them, and a few hundred milliseconds for a request.
_OBJECTIVES: Final = Objectives(time_to_first_token_p90_ms=150.0, time_per_output_token_p90_ms=18.0)


def edge_of(peak: float) -> EdgeSummary:
    """Return the edge of the model at a peak.

    peak: Requests per second.
    """
    blueprint = load_blueprint(_BLUEPRINT).blueprint
    spec = blueprint.spec
    workload = ModelWorkload(input_tokens=500, output_tokens=8, peak_requests_per_second=peak)
    model = spec.models[0].model_copy(update={"workload": workload, "objectives": _OBJECTIVES})
    prices = prices_for(spec.environment.region, None)
    return edge_summary(
        spec,
        model,
        rules=len(spec.models),
        zones=len(platform_zones(spec.environment)),
        is_zonal=False,
        worker_usd_per_hour=worker_usd_per_hour(resolve(blueprint, 0, 0), prices),
        prices=prices,
        region=spec.environment.region,
    )


def page_text(page: str) -> str:
    """Return the page with new figures."""
    return fill_section(page, "peaks", "\n".join(_lines()))


def _lines() -> Iterator[str]:
    edges = [edge_of(peak) for peak in PEAKS]
    yield f"| {' | '.join(EDGE_FIGURES)} |"
    yield f"|{' ---: |' * len(EDGE_FIGURES)}"
    for edge in edges:
        yield f"| {' | '.join(edge_cells(edge))} |"
    for edge in edges:
        yield f"\n**{edge.requests_per_second:,.0f} requests per second**\n"
        yield from (f"- {sentence.removeprefix(f'{edge.model}: ')}" for sentence in edge_sentences(edge))


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
