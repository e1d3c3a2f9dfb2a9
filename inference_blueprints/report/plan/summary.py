"""Computes the figures of a plan from a blueprint and its serving plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from inference_blueprints.report.plan.section import PlanBasis, PlanSummary, RecordedReplay
from inference_blueprints.report.plan.sections import SECTIONS
from inference_blueprints.report.pricing.rates import CustomRates
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.spec.used_features import support_of
from inference_contracts.errors import UserError

#: Readers of the JSON know its keys in this order. Keys of later sections follow.
_FIRST_KEYS = (
    *("name", "region", "support", "pools", "processes", "frontends", "scaling", "memory", "totals"),
    *("prices", "platformCost", "tokenPrices", "withoutProfile", "embedding", "objectives", "quotas"),
    *("batchDays", "serviceQuotas", "signalStore", "batchWorkers", "repairs", "compilations", "images"),
    *("shift", "edges", "streaming", "kafka", "coldStarts", "addresses", "fits"),
)
#: Further names of sections for `--sections`.
_OTHER_NAMES = {"cost": "platformCost"}
_SUPPORT = "support"


def summarise(
    blueprint: Blueprint,
    plan: ServingPlan,
    rates: CustomRates | None = None,
    replays: Mapping[str, RecordedReplay] | None = None,
) -> PlanSummary:
    """Summarise nodes, memory, prices and limits of a blueprint.

    plan: The serving plan computed from it.
    rates: The user's own rates. Without them, only on-demand prices are known.
    replays: Recorded replays, as `read_replays` returns them.
    """
    basis = PlanBasis(blueprint, plan, rates, replays)
    figures = {section.key: basis[section] for section in SECTIONS}
    spec = blueprint.spec
    return PlanSummary(blueprint.metadata.name, spec.environment.region, support_of(spec), figures)


def as_dict(summary: PlanSummary, sections: Collection[str] | None = None) -> dict[str, Any]:
    """Return a summary as JSON values under camelCase keys.

    sections: Those of `chosen_sections`; None for all.
    """
    wanted = frozenset(_section_keys()) if sections is None else sections
    support = {_SUPPORT: summary.support.as_dict()} if _SUPPORT in wanted else {}
    figures = {
        section.key: _values(summary[section], section.computed)
        for section in SECTIONS
        if section.key in wanted
    }
    values = {"name": summary.name, "region": summary.region, **support, **figures}
    return {key: values[key] for key in dict.fromkeys((*_FIRST_KEYS, *values)) if key in values}


def _section_keys() -> list[str]:
    return [_SUPPORT, *(section.key for section in SECTIONS)]


def chosen_sections(names: str) -> frozenset[str]:
    """Return the keys of the sections that a user names.

    names: Keys of the plan in JSON, separated by commas; ``cost`` stands for ``platformCost``.
    Raises UserError if a name is none of a section.
    """
    keys = _section_keys()
    wanted = [_OTHER_NAMES.get(name, name) for name in map(str.strip, names.split(",")) if name]
    unknown = [name for name in wanted if name not in keys]
    if unknown or not wanted:
        got = ", ".join(unknown) if unknown else "no name"
        allowed = ", ".join(sorted([*keys, *_OTHER_NAMES]))
        raise UserError(f"--sections: got {got}; allowed are {allowed}, separated by commas")
    return frozenset(wanted)


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
