"""What nodes cost: the catalogue's prices on demand, and the rates of a user's own file before them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inference_blueprints import catalog
from inference_blueprints.catalog import InstanceType, PriceTable
from inference_blueprints.errors import BlueprintError, Problem
from inference_blueprints.spec import composer, source
from inference_blueprints.spec.document import INVALID, Document, FileKind
from inference_blueprints.spec.structure import keys
from inference_blueprints.spec.types import Pool, Purchase
from inference_blueprints.spec.wording import allowed, quote, suggestion

_ON_DEMAND = "onDemand"
_CURRENCY = "USD"
_TEXTS = {
    "currency": "always USD",
    "region": "the AWS region that the rates hold for",
    "date": "when they were agreed or read, in quotes",
    "source": "whose they are, such as a contract",
}
_RATES = "usdPerHour"
_FILE = FileKind(
    noun="rates file",
    first_key="currency",
    when_missing="docs/planning.md has one to start from",
    when_empty="docs/planning.md has one to start from",
)


@dataclass(frozen=True, slots=True)
class CustomRates:
    """The rates of one file.

    Parameters
    ----------
    region, date, source
        What the file says of itself.
    usd_per_hour
        Instance type and purchase, such as ``("g6e.2xlarge", "spot")``, to US dollars an hour.
    """

    region: str
    date: str
    source: str
    usd_per_hour: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Prices:
    """What is known of prices for one plan.

    Parameters
    ----------
    table
        On demand, of the blueprint's region or of the reference region.
    rates
        The user's own, which come first; None without a file.
    """

    table: PriceTable
    rates: CustomRates | None = field(default=None)

    def usd_per_hour(self, instance_type: str, purchase: str) -> float | None:
        """Return the price of a type paid for in a way; None when unknown."""
        if self.rates and (instance_type, purchase) in self.rates.usd_per_hour:
            return self.rates.usd_per_hour[instance_type, purchase]
        return self.table.usd_per_hour.get(instance_type) if purchase == _ON_DEMAND else None

    def types_of(self, pool: Pool) -> list[InstanceType]:
        """Return a pool's types, each with its price as the pool pays for it."""
        purchase = pool.purchase.chosen
        return [
            replace(catalog.instance_type(name), usd_per_hour=self.usd_per_hour(name, purchase))
            for name in pool.instance_types
        ]


def prices_for(region: str, rates: CustomRates | None = None) -> Prices:
    """Return what is known of prices in a region.

    Parameters
    ----------
    region
        Where the blueprint deploys to.
    """
    return Prices(catalog.prices(region), rates)


def load_rates(path: Path, region: str) -> CustomRates:
    """Read a rates file.

    Parameters
    ----------
    path
        The file, in the format of docs/planning.md.
    region
        Where the blueprint deploys to, which the file has to be for.

    Raises
    ------
    BlueprintError
        If the file cannot be used, with every problem and its position.
    """
    document = composer.parse(source.read(path, str(path), _FILE), str(path), _FILE)
    problems = [*document.problems, *_problems(document, region)]
    if problems:
        raise BlueprintError(problems)
    values: dict[str, Any] = document.root.value
    return CustomRates(
        region=values["region"],
        date=values["date"],
        source=values["source"],
        usd_per_hour={
            (instance_type, purchase): float(rate)
            for instance_type, rates in values[_RATES].items()
            for purchase, rate in rates.items()
        },
    )


def _problems(document: Document, region: str) -> Iterator[Problem]:
    """Yield what is wrong with the file, less what its text alone was reported for."""
    children = document.root.children
    names = [*_TEXTS, _RATES]
    for name in children:
        if name not in names:
            message = f"is an unknown key, {allowed('key', names)}{suggestion(str(name), names)}"
            yield document.problem((name,), message, at_key=True)
    for name, meaning in _TEXTS.items():
        yield from _text_problems(document, name, meaning)
    currency, of_region = document.value(("currency",)), document.value(("region",))
    if isinstance(currency, str) and currency != _CURRENCY:
        yield document.problem(
            ("currency",), f"got {quote(currency)}, rates are in {_CURRENCY}; convert them"
        )
    if isinstance(of_region, str) and of_region != region:
        message = f"got {quote(of_region)}, the blueprint deploys to {quote(region)}; use that region's rates"
        yield document.problem(("region",), message)
    yield from _rate_problems(document)


def _text_problems(document: Document, name: str, meaning: str) -> Iterator[Problem]:
    if name not in document.root.children:
        yield document.problem((name,), f"is missing: {meaning}")
        return
    value = document.value((name,))
    if value is not INVALID and not (isinstance(value, str) and value.strip()):
        yield document.problem((name,), f"got {quote(value)}, expected text: {meaning}")


def _rate_problems(document: Document) -> Iterator[Problem]:
    if _RATES not in document.root.children:
        yield document.problem((_RATES,), "is missing: a mapping of instance types")
        return
    node = document.node((_RATES,))
    if node.value is INVALID:
        return
    if not isinstance(node.value, dict) or not node.value:
        yield document.problem((_RATES,), f"got {quote(node.value)}, expected `g6e.2xlarge: {{spot: 0.9}}`")
        return
    known = catalog.instance_types()
    for name, child in node.children.items():
        if name not in known:
            hint = suggestion(str(name), known)
            message = f"is an instance type that the catalogue does not have{hint}"
            yield document.problem((_RATES, name), message, at_key=True)
        if isinstance(child.value, dict) and child.value:
            yield from _purchase_problems(document, str(name))
        elif child.value is not INVALID:
            yield document.problem((_RATES, name), f"got {quote(child.value)}, expected `{{spot: 0.9}}`")


def _purchase_problems(document: Document, instance_type: str) -> Iterator[Problem]:
    purchases = list(keys(Purchase))
    path = (_RATES, instance_type)
    for name, child in document.node(path).children.items():
        if name not in purchases:
            message = (
                f"is an unknown way to pay, {allowed('key', purchases)}{suggestion(str(name), purchases)}"
            )
            yield document.problem((*path, name), message, at_key=True)
        rate = child.value
        is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
        if rate is not INVALID and not (is_number and math.isfinite(rate) and rate > 0):
            yield document.problem((*path, name), f"got {quote(rate)}, expected US dollars an hour above 0")
