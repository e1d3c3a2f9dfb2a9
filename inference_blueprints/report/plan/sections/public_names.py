"""Names of models in requests, where a model has a second one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inference_blueprints.report.plan.cells import few
from inference_blueprints.report.plan.section import Label, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.spec.types import Model
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class PublicNameSummary:
    """The second name of a model."""

    model: str
    public_name: str


def _summarise(models: Iterable[Model]) -> Iterator[PublicNameSummary]:
    for model in models:
        if model.public_name is not None:
            yield PublicNameSummary(model.name, model.public_name)


def public_names(summary: PlanSummary) -> TextTable:
    """Return the table of second names, which has rows if a model has one."""
    return TextTable(
        "Names in requests",
        ("model", "public name"),
        (),
        tuple((each.model, each.public_name) for each in summary[PUBLIC_NAMES]),
        ("Requests may have either name.",) if summary[PUBLIC_NAMES] else (),
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the second names."""
    if found := summary[PUBLIC_NAMES]:
        yield Label.MODELS, few(f"{each.model} is also {each.public_name} in requests" for each in found)


PUBLIC_NAMES = PlanSection(
    "publicNames",
    lambda basis: tuple(_summarise(basis.spec.models)),
    _in_short,
    (public_names,),
)
