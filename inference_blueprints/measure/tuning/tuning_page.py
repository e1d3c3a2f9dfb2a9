"""A self-contained HTML page about a tuning search: the choice, cost against latency, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from inference_blueprints.measure.charts import (
    Axis,
    Crosses,
    Curve,
    Dots,
    Layer,
    Limit,
    Plot,
    Point,
    Ring,
)
from inference_blueprints.measure.tuning.accelerator_comparison import comparison_table
from inference_blueprints.measure.tuning.evaluation import Evaluation
from inference_blueprints.measure.tuning.tune import Tuning
from inference_blueprints.measure.tuning.tuning_text import (
    describe_effort,
    describe_objective,
    describe_search,
    explain_choice,
    rank_configurations,
)
from inference_blueprints.report.pages.render import render_page
from inference_blueprints.spec.types import LATENCY_NAMES, Objective
from inference_contracts.number_text import number

_TEMPLATE = Path(__file__).with_name("page.html.j2")
#: A plot shows latencies up to this multiple of the objective.
_WIDTH = 3.0


def tuning_page(tuning: Tuning) -> str:
    """Render a search.

    Returns: An HTML document.
    """
    return render_page(
        _TEMPLATE,
        name=tuning.blueprint.spec.models[tuning.model_index].name,
        title=describe_search(tuning),
        explanation=explain_choice(tuning),
        objective=describe_objective(tuning),
        effort=describe_effort(tuning) if tuning.covered else "",
        plots=[(plot, Markup(plot.svg())) for plot in plots(tuning)],  # noqa: S704 - Plot.svg escapes
        tables=[
            table for table in (rank_configurations(tuning), comparison_table(tuning.others)) if table.rows
        ],
        notes=tuning.notes,
    )


def plots(tuning: Tuning) -> list[Plot]:
    """Return a plot for each objective, cost against its latency. Empty if nothing was replayed.

    tuning: What a search found.
    """
    if not tuning.evaluations:
        return []
    return [_plot(tuning, each) for each in tuning.objectives]


def frontier(points: Sequence[Point]) -> list[Point]:
    """Return the Pareto-optimal points, in increasing order of the first figure.

    points: Pairs of figures; smaller is better.
    """
    best: list[Point] = []
    for point in sorted(points):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best


def _plot(tuning: Tuning, objective: Objective) -> Plot:
    """Draw each replayed configuration by the latency of an objective and its cost."""
    limit = objective.limit_ms

    def latency(evaluation: Evaluation) -> float:
        return evaluation.percentile_ms(objective.kind, objective.percentile)

    shown = [each for each in tuning.evaluations if latency(each) <= _WIDTH * limit]
    beyond = len(tuning.evaluations) - len(shown)
    points = {each.candidate: (latency(each), _cost(tuning, each)) for each in shown}
    keeping = [points[each.candidate] for each in shown if each.keeps]
    missing = [points[each.candidate] for each in shown if not each.keeps]
    percentile = f"p{objective.percentile:g}"
    layers: list[Layer] = [
        Curve(frontier(keeping), "second"),
        Crosses(missing, "bad"),
        Dots(keeping, "first"),
        Limit(limit, f"objective {percentile} {number(limit, 4)} ms"),
    ]
    if tuning.best is not None:
        layers.append(Ring(points[tuning.best.candidate], "choice", "first"))
    farther = f" Configurations beyond the plot: {beyond}." if beyond else ""
    name = LATENCY_NAMES[objective.kind]
    return Plot(
        f"{name.replace(' ', '-')}-{percentile.replace('.', '-')}",
        f"{name.capitalize()}, {percentile} (simulated)",
        f"Dots meet all objectives ({len(keeping)}). Crosses miss at least one ({len(missing)}). The line "
        f"joins the dots that no other dot beats in both figures.{farther}",
        Axis(f"milliseconds, {percentile}, simulated", max([limit, *(latency(each) for each in shown)])),
        Axis(_cost_label(tuning), max((cost for _, cost in points.values()), default=0.0)),
        layers,
    )


def _cost(tuning: Tuning, evaluation: Evaluation) -> float:
    per_million = tuning.usd_per_million_tokens(evaluation)
    if per_million is None or _by_accelerators(tuning):
        return float(evaluation.candidate.accelerators)
    return per_million


def _by_accelerators(tuning: Tuning) -> bool:
    """Whether a price is unknown. The number of accelerators then replaces the cost."""
    return any(each.cost.usd_per_hour is None for each in tuning.evaluations)


def _cost_label(tuning: Tuning) -> str:
    return "accelerators" if _by_accelerators(tuning) else "USD per million tokens"
