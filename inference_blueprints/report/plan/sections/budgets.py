"""The budgets of teams beside what the queues are charged and what the platform costs."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.serving.traffic import queue_traffic
from inference_blueprints.spec.derived import queue_rates
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_DAY, HOURS_PER_MONTH, MILLION


@dataclass(frozen=True, slots=True)
class BudgetSummary:
    """The budgets of all teams in a month. They limit what jobs and requests are charged by `rates`."""

    budgets_usd_per_month: float
    """Sum of `monthlyBudgetUsd`."""
    load_usd_per_month: float | None
    """What the declared loads of all queues are charged; None if a queue declares none."""
    platform_usd_per_month_least: float
    """What the priced parts of the platform cost at least."""
    has_batch: bool
    """Whether there are jobs that budgets can refuse."""
    has_front_door: bool
    """Whether there is a front door, whose requests budgets can refuse."""

    @property
    def covers_load(self) -> bool | None:
        """Whether the budgets pay for the declared load; None if it is not declared."""
        load = self.load_usd_per_month
        return None if load is None else load <= self.budgets_usd_per_month

    @property
    def covers_platform(self) -> bool:
        """Whether the budgets are as large as the least that the platform costs."""
        return self.platform_usd_per_month_least <= self.budgets_usd_per_month


def _summarise(basis: PlanBasis) -> BudgetSummary | None:
    """Return the budgets; None without teams."""
    spec = basis.spec
    if not spec.teams:
        return None
    models = {model.name: model for model in spec.models}
    queues = spec.batch.queues if spec.batch else []
    charged = 0.0
    for queue in queues:
        tokens, rates = queue_traffic(spec, models[queue.model], queue).means, queue_rates(spec, queue)
        each = (
            tokens.input_tokens * rates.usd_per_million_input_tokens
            + tokens.output_tokens * rates.usd_per_million_output_tokens
        ) / MILLION
        charged += each * (queue.load.requests_per_day if queue.load else 0)
    is_declared = bool(queues) and all(queue.load for queue in queues)
    return BudgetSummary(
        budgets_usd_per_month=sum(team.monthly_budget_usd for team in spec.teams),
        load_usd_per_month=round(charged * HOURS_PER_MONTH / HOURS_PER_DAY, 2) if is_declared else None,
        platform_usd_per_month_least=basis[PLATFORM_COST].usd_per_month_least,
        has_batch=spec.batch is not None,
        has_front_door=spec.front_door is not None,
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield warnings of budgets that refuse the declared load, or that read as a limit of the cost."""
    found = summary[BUDGETS]
    if found is None:
        return
    if not found.has_batch and not found.has_front_door:
        yield Label.OPERATION, "budgets of teams limit nothing without batch"
        return
    if found.covers_platform and found.covers_load is not False:
        return
    limited = ["jobs"] * found.has_batch + ["requests of the front door"] * found.has_front_door
    limits = f"Budgets of {found.budgets_usd_per_month:,.0f} USD a month limit {' and '.join(limited)}"
    if not found.covers_platform:
        limits += f", not the platform's {found.platform_usd_per_month_least:,.0f}"
    if found.covers_load is False:
        limits += f". They refuse a part of the load, which is charged {found.load_usd_per_month:,.0f}"
    yield Label.WARNINGS, f"{limits}."


BUDGETS = PlanSection("budgets", _summarise, _in_short, (), ("covers_load", "covers_platform"))
