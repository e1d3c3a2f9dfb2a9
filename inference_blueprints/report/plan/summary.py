"""Computes the figures of a plan from a blueprint and its serving plan."""

from __future__ import annotations

import dataclasses
from typing import Any

from inference_blueprints.report.plan.section import PlanBasis, PlanSummary
from inference_blueprints.report.plan.sections import SECTIONS
from inference_blueprints.report.pricing.rates import CustomRates
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.spec.used_features import support_of

#: Readers of the JSON know its keys in this order. Keys of later sections follow.
_FIRST_KEYS = (
    *("name", "region", "support", "pools", "processes", "frontends", "scaling", "memory", "totals"),
    *("prices", "platformCost", "tokenPrices", "withoutProfile", "embedding", "objectives", "quotas"),
    *("batchDays", "serviceQuotas", "signalStore", "batchWorkers", "repairs", "compilations", "images"),
    *("shift", "edges", "streaming", "kafka", "coldStarts", "addresses", "fits"),
)


def summarise(blueprint: Blueprint, plan: ServingPlan, rates: CustomRates | None = None) -> PlanSummary:
    """Summarise nodes, memory, prices and limits of a blueprint.

    plan: The serving plan computed from it.
    rates: The user's own rates. Without them, only on-demand prices are known.
    """
    basis = PlanBasis(blueprint, plan, rates)
    figures = {section.key: basis[section] for section in SECTIONS}
    spec = blueprint.spec
    return PlanSummary(blueprint.metadata.name, spec.environment.region, support_of(spec), figures)


def as_dict(summary: PlanSummary) -> dict[str, Any]:
    """Return a summary as JSON values under camelCase keys."""
    values = {
        "name": summary.name,
        "region": summary.region,
        "support": summary.support.as_dict(),
        **{section.key: _values(summary[section], section.computed) for section in SECTIONS},
    }
    return {key: values[key] for key in (*_FIRST_KEYS, *values)}


def _values(figures: Any, computed: tuple[str, ...]) -> Any:
    """Return records as JSON values, with some of their properties."""
    if isinstance(figures, tuple):
        return [_values(each, computed) for each in figures]
    if dataclasses.is_dataclass(figures) and not isinstance(figures, type):
        properties = {name: getattr(figures, name) for name in computed}
        return camel_case({**dataclasses.asdict(figures), **properties})
    return figures


def camel_case(value: Any) -> Any:
    """Spell the keys of nested dictionaries in camelCase; tuples become lists."""
    if isinstance(value, dict):
        return {camel_case_word(key): camel_case(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [camel_case(item) for item in value]
    return value


def camel_case_word(word: str) -> str:
    first, *others = word.split("_")
    return first + "".join(other.capitalize() for other in others)
