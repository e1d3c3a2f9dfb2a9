"""Prices of nodes: the rates of the user's own file, else the catalogue's on-demand prices."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

import inference_catalog as catalog
from inference_blueprints.report.figures import PoolSummary, ProcessSummary
from inference_blueprints.spec import composer, source
from inference_blueprints.spec.document import INVALID, Document, FileKind
from inference_blueprints.spec.structure import keys
from inference_blueprints.spec.types import Pool, Purchase
from inference_blueprints.spec.wording import allowed, quote, suggestion
from inference_catalog import InstanceType, PriceTable
from inference_contracts.errors import BlueprintError, Problem
from inference_contracts.records import dataclass


def share_of(
    deployments: Collection[tuple[str, str]],
    pools: Sequence[PoolSummary],
    processes: Sequence[ProcessSummary],
) -> tuple[int, float | None]:
    """Return devices and US dollars per hour of some deployments.

    The price of a pool's used nodes is split among its deployments in proportion to their devices.

    deployments: Model and deployment names.
    Returns: Devices of their workers, and their share of the used nodes' price; None if a pool's price is
        unknown.
    """
    held = {
        pool.name: sum(
            process.replicas * process.accelerators
            for process in processes
            if process.pool == pool.name and (process.model, process.deployment) in deployments
        )
        for pool in pools
    }
    shares = [
        None
        if pool.usd_per_hour_used is None
        else pool.usd_per_hour_used * held[pool.name] / pool.accelerators_used
        for pool in pools
        if held[pool.name]
    ]
    known = [share for share in shares if share is not None]
    return sum(held.values()), sum(known) if len(known) == len(shares) else None


_ON_DEMAND = "onDemand"
#: "Capacity Reservations are charged at the equivalent On-Demand rate whether you run instances in reserved
#: capacity or not" (Amazon EC2 User Guide, Capacity Reservation pricing and billing).
_AT_ON_DEMAND_RATE = frozenset({_ON_DEMAND, "reservation"})
_CURRENCY = "USD"
_TEXTS = {
    "currency": "always USD",
    "region": "the AWS region of the rates",
    "date": "the date of the rates, in quotes",
    "source": "the source of the rates, such as a contract",
}
_RATES = "usdPerHour"
_FILE = FileKind(
    noun="rates file",
    first_key="currency",
    when_missing="copy the example in docs/planning.md",
    when_empty="copy the example in docs/planning.md",
)
#: Karpenter's capacity types. https://karpenter.sh/v1.15/concepts/nodepools/#capacity-type
_PURCHASES: Final = {"on-demand": _ON_DEMAND, "spot": "spot"}
_RESERVED: Final = "reserved"
#: Takes the pool, the instance type and Karpenter's capacity type of a node. Returns US dollars per hour;
#: None if the price is not known.
NodeRate = Callable[[str, str, str], float | None]


@dataclass(frozen=True, slots=True)
class CustomRates:
    """The rates of one file."""

    region: str
    date: str
    source: str
    """`region`, `date`, `source`: Description of the rates in the file."""
    usd_per_hour: Mapping[tuple[str, str], float]
    """US dollars per hour by instance type and purchase, such as ``("g6e.2xlarge", "spot")``."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Known prices for one plan."""

    table: PriceTable
    """On-demand prices of the blueprint's region or of the reference region."""
    rates: CustomRates | None = field(default=None)
    """The user's own rates, which take precedence; None without a file."""

    def usd_per_hour(self, instance_type: str, purchase: str) -> float | None:
        """Return the price of an instance type with a purchase option; None if unknown."""
        own = self.rates.usd_per_hour if self.rates else {}
        if (instance_type, purchase) in own:
            return own[instance_type, purchase]
        if purchase not in _AT_ON_DEMAND_RATE:
            return None
        return own.get((instance_type, _ON_DEMAND), self.table.usd_per_hour.get(instance_type))

    def usd_per_hour_at_most(self, instance_type: str, purchase: Purchase) -> float | None:
        """Return the most that an instance can cost; None if there is no known bound.

        A spot instance costs at most the on-demand price: "If you don't specify a maximum price, the default
        maximum price is the On-Demand price" (Amazon EC2 User Guide, Spot Instances), and Karpenter specifies
        none. With a fallback to on demand, the on-demand price is the bound even if a spot rate is known.
        """
        known = self.usd_per_hour(instance_type, purchase.chosen)
        if purchase.spot is None:
            return known
        on_demand = self.usd_per_hour(instance_type, _ON_DEMAND)
        if known is None or (purchase.spot.on_demand_fallback and on_demand is not None):
            return on_demand if known is None else max(known, on_demand or 0.0)
        return None if purchase.spot.on_demand_fallback else known

    def types_of(self, pool: Pool) -> list[InstanceType]:
        """Return a pool's types, each with its price for the pool's purchase option."""
        purchase = pool.purchase.chosen
        return [replace(each, usd_per_hour=self.usd_per_hour(each.name, purchase)) for each in pool.types]


def prices_for(region: str, rates: CustomRates | None = None) -> Prices:
    """Return the known prices in a region.

    region: Region of the blueprint.
    """
    return Prices(catalog.prices(region), rates)


def load_rates(path: Path, region: str) -> CustomRates:
    """Read a rates file.

    path: The file, in the format of docs/planning.md.
    region: Region of the blueprint, for which the rates must be.
    Raises BlueprintError if the file cannot be used, with every problem and its position.
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
    """Yield the errors of the file, without those of its YAML text."""
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
            message = f"this instance type is not in the catalogue{hint}"
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
            hint = suggestion(str(name), purchases)
            message = f"is an unknown purchase option, {allowed('key', purchases)}{hint}"
            yield document.problem((*path, name), message, at_key=True)
        rate = child.value
        is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
        if rate is not INVALID and not (is_number and math.isfinite(rate) and rate > 0):
            yield document.problem((*path, name), f"got {quote(rate)}, expected US dollars per hour above 0")


def node_rate(prices: Prices, pools: Sequence[Pool]) -> NodeRate:
    """Return what tells the price of a node.

    prices: Known prices, such as those of the user's rates file.
    pools: Section of the blueprint. Karpenter calls reservations and Capacity Blocks `reserved`; the pool's
        purchase option says which of both it is.
    """
    reserved = {pool.name: pool.purchase.chosen for pool in pools}

    def rate(pool: str, instance_type: str, capacity_type: str) -> float | None:
        purchase = reserved.get(pool) if capacity_type == _RESERVED else _PURCHASES.get(capacity_type)
        return None if purchase is None else prices.usd_per_hour(instance_type, purchase)

    return rate


def pools_without_price(prices: Prices, pools: Sequence[Pool]) -> list[str]:
    """Return the names of pools none of whose nodes has a known price.

    prices: Known prices.
    pools: Section of the blueprint.
    """
    return [
        pool.name
        for pool in pools
        if not any(
            prices.usd_per_hour(each.name, purchase) is not None
            for each in pool.types
            for purchase in _purchases(pool)
        )
    ]


def _purchases(pool: Pool) -> Iterator[str]:
    yield pool.purchase.chosen
    if pool.purchase.spot is not None and pool.purchase.spot.on_demand_fallback:
        yield _ON_DEMAND
