"""The price of one model's tokens on other kinds of instances, where its speed there is known.

A speed is either the simulated one of a latency profile, for the lengths and the objective of the blueprint,
or a published measurement with conditions of its own. Nothing is estimated from one kind to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import inference_catalog as catalog
from inference_blueprints.measure.tuning.candidates import RoleShape, TuningCandidate, WorkerShape
from inference_blueprints.report.plan.cells import counted
from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.checks.capability_checks import capability_findings
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.performance import (
    ProfileFinder,
    limits,
    operation,
    prompt_step_tokens,
    role_capacity,
    speeds,
)
from inference_blueprints.serving.resolved import catalog_name, resolve
from inference_blueprints.spec.types import Blueprint, Pool
from inference_catalog import InstanceType
from inference_catalog.figures import LatencyProfile, PublishedSpeed, published_speeds, same_shape
from inference_catalog.service_prices import capacity_block_price
from inference_contracts.records import dataclass
from inference_contracts.units import MILLION, SECONDS_PER_HOUR

#: Families of instance types that are always compared, in this order.
FAMILIES = ("g6e", "p5en", "p6-b200", "p6-b300", "inf2", "trn2", "c8g")

_ON_DEMAND, _CAPACITY_BLOCK = "onDemand", "capacityBlock"
_POOL = "compared"
_NO_DATA, _TOO_SLOW = "no data", "too slow"
_TITLE = "The same model on other instances"
_NOTES = (
    "Speeds marked simulated come from latency profiles, for this workload and its objective for the time "
    "per token. Published speeds have the conditions that their source states, so compare them with care.",
    "Prices are on demand, where a note names no Capacity Block, and for tokens of answers. Simulated speeds "
    "use all devices of the instance.",
)


@dataclass(frozen=True, slots=True)
class ComparedInstance:
    """What is known about the model on one family of instances."""

    family: str
    """Family of the instance type."""
    instance_type: str | None = None
    """The type to which the figures belong. None without a speed."""
    engine: str | None = None
    """The blueprint's key of the engine. None without a speed."""
    least_tokens_per_second: float | None = None
    most_tokens_per_second: float | None = None
    """`least_tokens_per_second`, `most_tokens_per_second`: Tokens of answers per second: the same figure
    for a simulated speed, and a range if the source of a published one states a range. None if it is not
    known."""
    usd_per_hour: float | None = None
    """Price of what reached that speed: the instance, or the share of its devices that took part. It is the
    on-demand price, or else that of a Capacity Block. None if neither is known."""
    speed: str = _NO_DATA
    """``simulated``, ``published``, ``too slow`` (a simulated one that misses the objective) or
    ``no data``."""
    origin: str = ""
    """Workers of a simulated speed, or conditions and source of a published one. Empty without data."""

    @property
    def least_usd_per_million_output_tokens(self) -> float | None:
        """USD per million tokens of answers at the highest speed. None if speed or price are not known."""
        return self._usd_per_million(self.most_tokens_per_second)

    @property
    def most_usd_per_million_output_tokens(self) -> float | None:
        """USD per million tokens of answers at the lowest speed. None if speed or price are not known."""
        return self._usd_per_million(self.least_tokens_per_second)

    def _usd_per_million(self, tokens_per_second: float | None) -> float | None:
        if tokens_per_second is None or self.usd_per_hour is None:
            return None
        return self.usd_per_hour / SECONDS_PER_HOUR / tokens_per_second * MILLION

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "family": self.family,
            "instanceType": self.instance_type,
            "engine": self.engine,
            "leastOutputTokensPerSecond": self.least_tokens_per_second,
            "mostOutputTokensPerSecond": self.most_tokens_per_second,
            "usdPerHour": self.usd_per_hour,
            "leastUsdPerMillionOutputTokens": self.least_usd_per_million_output_tokens,
            "mostUsdPerMillionOutputTokens": self.most_usd_per_million_output_tokens,
            "speed": self.speed,
            "origin": self.origin,
        }


def compare_instances(
    blueprint: Blueprint,
    model_index: int,
    prices: Prices,
    *,
    find: ProfileFinder = catalog.latency_profile,
    published: Sequence[PublishedSpeed] | None = None,
) -> tuple[ComparedInstance, ...]:
    """Return what is known about a model's price on `FAMILIES`, and on others with a published speed.

    blueprint, model_index: The model, with its workload and objectives.
    prices: Known prices.
    find: Source of latency profiles.
    published: Published speeds; those of the catalogue by default.
    Returns: A published speed is used only without a simulated one. A family without either has no figures.
    """
    alike = same_shape(catalog_name(blueprint.spec.models[model_index].weights), catalog.models())
    known = published_speeds() if published is None else published
    rows = [_published(each, prices) for each in known if {each.model, each.same_shape_as} & {*alike}]
    found = []
    for family in dict.fromkeys((*FAMILIES, *(row.family for row in rows))):
        kinds = [kind for kind in catalog.instance_types().values() if kind.family == family]
        simulated = [
            row
            for kind in kinds
            for row in _simulated(blueprint, model_index, prices, _finder(find, alike), kind)
        ]
        of_family = simulated or [row for row in rows if row.family == family]
        found.append(min(of_family, key=_rank, default=ComparedInstance(family)))
    return tuple(found)


def comparison_table(found: Sequence[ComparedInstance]) -> TextTable:
    """Return the comparison as a table.

    found: A row for each.
    """
    return TextTable(
        title=_TITLE,
        names=("instances", "engine", "speed"),
        figures=("tokens/s", "USD/hour", "USD/M answer tokens"),
        rows=tuple(
            (
                each.instance_type or each.family,
                each.engine or "-",
                each.speed,
                _range(each.least_tokens_per_second, each.most_tokens_per_second, ",.0f"),
                _range(each.usd_per_hour, each.usd_per_hour, ",.2f"),
                _range(
                    each.least_usd_per_million_output_tokens, each.most_usd_per_million_output_tokens, ",.3f"
                ),
            )
            for each in found
        ),
        notes=(*_NOTES, *(f"{each.instance_type}: {each.origin}." for each in found if each.origin)),
    )


def _finder(find: ProfileFinder, alike: Sequence[str]) -> ProfileFinder:
    """Return a source of profiles that takes those of models with the same shape for the first of them."""

    def found(model: str, accelerator: str, size: int, engine: str) -> LatencyProfile | None:
        names = alike if model == alike[0] else (model,)
        return next(filter(None, (find(name, accelerator, size, engine) for name in names)), None)

    return found


def _published(speed: PublishedSpeed, prices: Prices) -> ComparedInstance:
    """Return the figures of a published speed."""
    weights = f"{speed.model} with weights of type {speed.quantization}"
    requests = counted(speed.concurrent_requests, "request")
    price, of_block = _price(speed.instance_type, prices)
    kind = catalog.instance_types().get(speed.instance_type)
    used = ""
    if kind and speed.devices and speed.devices < kind.accelerator_count:
        used = f" on {speed.devices} of {counted(kind.accelerator_count, 'device')}, whose price it is"
        price = price and price * speed.devices / kind.accelerator_count
    return ComparedInstance(
        speed.instance_type.partition(".")[0],
        speed.instance_type,
        speed.engine,
        speed.least_tokens_per_second,
        speed.most_tokens_per_second,
        price,
        "published",
        f"{weights}, {requests} at once{used}. {speed.conditions} ({speed.source}, {speed.date}){of_block}",
    )


def _price(instance_type: str, prices: Prices) -> tuple[float | None, str]:
    """Return the price of an instance, and a sentence about it if it is that of a Capacity Block."""
    price = prices.usd_per_hour(instance_type, _ON_DEMAND)
    own = prices.usd_per_hour(instance_type, _CAPACITY_BLOCK)
    block = capacity_block_price(instance_type)
    if price is not None:
        return price, ""
    if own is not None:
        return own, ". The price is your rate of a Capacity Block"
    if block is None:
        return None, ""
    stated = f"{block.region} ({block.source}, {block.date})"
    return block.usd_per_hour, f". The price is that of a Capacity Block in {stated}; there is none on demand"


def _simulated(
    blueprint: Blueprint,
    model_index: int,
    prices: Prices,
    find: ProfileFinder,
    kind: InstanceType,
) -> Iterator[ComparedInstance]:
    """Yield the figures of an instance full of equal workers, for each size and engine with a profile."""
    pool = Pool.model_validate({"name": _POOL, "instanceTypes": [kind.name], "nodes": {"max": 1}})
    models = [*blueprint.spec.models]
    weights = models[model_index].weights
    # Profiles are those of the published weights: engines for GPUs do not read the GGUF file here.
    plain = weights.model_copy(update={"gguf": None})
    models[model_index] = models[model_index].model_copy(update={"weights": plain})
    spec = blueprint.spec.model_copy(update={"pools": [*blueprint.spec.pools, pool], "models": models})
    with_pool = blueprint.model_copy(update={"spec": spec})
    for engine, size in product(_engines(kind), _sizes(kind)):
        candidate = TuningCandidate(WorkerShape(engine, (RoleShape(_POOL, size),)), (1,))
        [resolved] = resolve(candidate.within(with_pool, model_index), model_index, 0)
        if any(each.severity == "error" for each in capability_findings(resolved)):
            continue  # such a worker would not start
        profile, capacity = speeds(resolved, find), role_capacity(resolved, find)
        if profile is None or capacity is None:
            continue
        workload = resolved.traffic.means
        allowed = limits(resolved, profile, workload)
        workers = kind.accelerator_count // size
        split = f"{counted(workers, 'worker')} with {counted(size, 'device')} each"
        if profile.model != resolved.device_shape.name:
            split += f", at the speed of {profile.model}, which has the same layers and sizes"
        if weights.gguf:
            split += f", with the weights of {profile.model} and not those of the GGUF file"
        if capacity.is_objective_at_least:
            split += ", with no more requests at once than the latency profile reaches"
        price = prices.usd_per_hour(kind.name, _ON_DEMAND)
        alone = operation(profile, workload, 1, step_tokens=prompt_step_tokens(resolved))
        too_slow = [
            f"{split}: {took:,.0f} ms per {of} for one request alone, the objective is {limit:,.0f} ms"
            for took, limit, of in (
                (alone.time_per_output_token_ms, allowed.token_ms, "token"),
                (alone.request_ms, allowed.request_ms, "request"),
            )
            if took > limit
        ]
        if too_slow:
            yield ComparedInstance(kind.family, kind.name, engine, None, None, price, _TOO_SLOW, too_slow[0])
            continue
        answers = capacity.objective_requests_per_second * workers
        speed = answers * workload.output_tokens
        yield ComparedInstance(
            kind.family,
            kind.name,
            engine,
            speed,
            speed,
            price,
            "simulated",
            split,
        )


def _engines(kind: InstanceType) -> list[str]:
    """Return the engines that run on the devices of an instance type."""
    device = kind.accelerator
    return [name for name, engine in ENGINES.items() if device and engine.manufacturer == device.manufacturer]


def _sizes(kind: InstanceType) -> list[int]:
    """Return the numbers of devices of a worker that leave no device of the instance over."""
    return [size for size in range(1, kind.accelerator_count + 1) if kind.accelerator_count % size == 0]


def _rank(row: ComparedInstance) -> tuple[float, float]:
    """Sort by the price at the lowest speed; without a price, by speed."""
    price = row.most_usd_per_million_output_tokens
    return (float("inf") if price is None else price, -(row.least_tokens_per_second or 0.0))


def _range(minimum: float | None, maximum: float | None, form: str) -> str:
    """Return two figures as text, or one if they are the same or only one is known."""
    if minimum is None and maximum is None:
        return _NO_DATA
    if minimum is None:
        return f"at most {maximum:{form}}"
    if maximum is None:
        return f"at least {minimum:{form}}"
    return f"{minimum:{form}}" if minimum == maximum else f"{minimum:{form}} to {maximum:{form}}"
