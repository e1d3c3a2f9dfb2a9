"""The same model on other instances: simulated speeds, published ones, and cells without data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal, cast

import pytest

import inference_catalog as catalog
from inference_blueprints.measure.tuning.accelerator_comparison import (
    FAMILIES,
    ComparedInstance,
    compare_instances,
    comparison_table,
)
from inference_blueprints.report.pricing.rates import Prices
from inference_blueprints.spec.types import Blueprint
from inference_catalog.figures import LatencyProfile, PublishedSpeed
from inference_catalog.service_prices import capacity_block_price
from inference_contracts.errors import Finding

PRICES = Prices(
    replace(catalog.prices(), usd_per_hour={"inf2.48xlarge": 12.0, "inf2.xlarge": 3.6, "p5en.48xlarge": 80.0})
)
PUBLISHED = PublishedSpeed(
    model="Qwen/Qwen3-8B",
    same_shape_as=None,
    instance_type="inf2.48xlarge",
    devices=12,
    engine="vllmNeuron",
    quantization="BF16",
    concurrent_requests=8,
    least_tokens_per_second=500.0,
    most_tokens_per_second=1000.0,
    conditions="Prompts of 100 tokens",
    date="2026-01-02",
    source="https://example.com/speeds",
)


def flat(model: str, accelerator: str, size: int, engine: str) -> LatencyProfile | None:
    """Return a profile with steps of 10 ms and prompts that take no time, for one H200 and vLLM only."""
    if (accelerator, size, engine) != ("h200", 1, "vllm"):
        return None
    known = catalog.latency_profile("Qwen/Qwen3-8B", "h200", 1, "vllm")
    assert known is not None
    steps = tuple(tuple(10.0 for _ in row) for row in known.decode_itl)
    return replace(
        known, model=model, prefill_ttft_ms=tuple(0.0 for _ in known.prefill_isl), decode_itl=steps
    )


def compared(blueprint: Blueprint, family: str, *published: PublishedSpeed) -> ComparedInstance:
    return row_of(
        family, compare_instances(blueprint, 0, PRICES, find=flat, published=published or [PUBLISHED])
    )


def row_of(family: str, found: Iterable[ComparedInstance]) -> ComparedInstance:
    [row] = [each for each in found if each.family == family]
    return row


def test_every_family_has_a_row_in_the_order_of_the_list(blueprint_of: Callable[..., Blueprint]) -> None:
    found = compare_instances(blueprint_of(), 0, PRICES, find=flat, published=[])
    assert [each.family for each in found] == list(FAMILIES)
    assert len(comparison_table(found).rows) == len(FAMILIES)


def test_another_family_with_a_published_speed_gets_a_row(blueprint_of: Callable[..., Blueprint]) -> None:
    other = replace(PUBLISHED, instance_type="c7g.16xlarge")
    found = compare_instances(blueprint_of(), 0, PRICES, find=flat, published=[other])
    assert [each.family for each in found] == [*FAMILIES, "c7g"]


def test_without_a_speed_every_figure_reads_no_data(blueprint_of: Callable[..., Blueprint]) -> None:
    row = row_of("trn2", compare_instances(blueprint_of(), 0, PRICES, find=flat, published=[]))
    assert comparison_table([row]).rows == (("trn2", "-", "no data", "no data", "no data", "no data"),)


def test_a_simulated_speed_is_that_of_a_full_instance(blueprint_of: Callable[..., Blueprint]) -> None:
    row = compared(blueprint_of(), "p5en")
    assert (row.instance_type, row.engine, row.speed) == ("p5en.48xlarge", "vllm", "simulated")
    # A step of 10 ms writes one token of each request, and the instance has eight workers.
    assert row.least_tokens_per_second is not None
    requests_at_once = row.least_tokens_per_second / 100 / 8
    assert requests_at_once == pytest.approx(round(requests_at_once))
    assert requests_at_once >= 1
    assert row.most_usd_per_million_output_tokens == pytest.approx(80e6 / 3600 / row.least_tokens_per_second)
    assert "8 workers with 1 device each" in row.origin


def test_an_objective_for_the_time_per_token_limits_the_simulated_speed(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    tight = blueprint_of({"timePerOutputTokenP90Ms: 60": "timePerOutputTokenP90Ms: 8"})
    loose, strict = (
        row_of("p5en", compare_instances(each, 0, PRICES, published=[])) for each in (blueprint_of(), tight)
    )
    assert strict.least_tokens_per_second is not None
    assert loose.least_tokens_per_second is not None
    assert strict.least_tokens_per_second < loose.least_tokens_per_second


def test_an_instance_that_misses_the_objective_has_no_price(blueprint_of: Callable[..., Blueprint]) -> None:
    strict = blueprint_of({"timePerOutputTokenP90Ms: 60": "timePerOutputTokenP90Ms: 9"})
    row = compared(strict, "p5en")
    assert comparison_table([row]).rows[0][2:] == ("too slow", "no data", "80.00", "no data")
    assert "10 ms per token for one request alone, the objective is 9 ms" in row.origin


def test_a_published_range_gives_a_range_of_prices(blueprint_of: Callable[..., Blueprint]) -> None:
    row = compared(blueprint_of(), "inf2")
    assert row.speed == "published"
    assert row.least_usd_per_million_output_tokens == pytest.approx(12e6 / 3600 / 1000)
    assert row.most_usd_per_million_output_tokens == pytest.approx(12e6 / 3600 / 500)
    table = comparison_table([row])
    assert table.rows[0][3:] == ("500 to 1,000", "12.00", "3.333 to 6.667")
    [note] = [each for each in table.notes if each.startswith("inf2.48xlarge:")]
    for part in ("8 requests at once", "Prompts of 100 tokens", "https://example.com/speeds", "2026-01-02"):
        assert part in note


def test_a_server_on_some_devices_costs_their_share(blueprint_of: Callable[..., Blueprint]) -> None:
    row = compared(blueprint_of(), "inf2", replace(PUBLISHED, devices=3))
    assert row.usd_per_hour == pytest.approx(3.0)
    assert row.most_usd_per_million_output_tokens == pytest.approx(3e6 / 3600 / 500)
    assert "on 3 of 12 devices, whose price it is" in row.origin


def test_of_several_published_speeds_the_cheapest_counts(blueprint_of: Callable[..., Blueprint]) -> None:
    small = replace(PUBLISHED, instance_type="inf2.xlarge", devices=1, most_tokens_per_second=None)
    row = compared(blueprint_of(), "inf2", PUBLISHED, small)
    assert row.instance_type == "inf2.xlarge"
    assert comparison_table([row]).rows[0][3:] == ("at least 500", "3.60", "at most 2.000")


def test_a_published_speed_of_a_model_with_the_same_shape_counts(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    other = replace(PUBLISHED, model="someone/Finetuned", same_shape_as="Qwen/Qwen3-8B")
    assert compared(blueprint_of(), "inf2", other).instance_type == "inf2.48xlarge"
    assert compared(blueprint_of(), "inf2", replace(other, same_shape_as=None)).instance_type is None


def test_a_simulated_speed_comes_before_a_published_one(blueprint_of: Callable[..., Blueprint]) -> None:
    row = compared(blueprint_of(), "p5en", replace(PUBLISHED, instance_type="p5en.48xlarge"))
    assert row.speed == "simulated"


def test_without_a_price_the_speed_is_still_shown(blueprint_of: Callable[..., Blueprint]) -> None:
    row = compared(blueprint_of(), "x1", replace(PUBLISHED, instance_type="x1.32xlarge", devices=None))
    assert comparison_table([row]).rows[0][3:] == ("500 to 1,000", "no data", "no data")


def test_without_a_price_on_demand_that_of_a_capacity_block_is_shown_with_its_source(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    row = compared(blueprint_of(), "trn2", replace(PUBLISHED, instance_type="trn2.48xlarge", devices=8))
    # Half of the sixteen devices.
    assert row.usd_per_hour == pytest.approx(35.7608 / 2)
    assert row.most_usd_per_million_output_tokens == pytest.approx(35.7608 / 2 / 3600 / 500 * 1e6)
    assert "The price is that of a Capacity Block in us-east-2 (https://aws.amazon.com/ec2/" in row.origin


def test_capacity_blocks_have_a_price_here_only_without_one_on_demand() -> None:
    known = {name for name in catalog.instance_types() if capacity_block_price(name)}
    assert known == {"trn2.48xlarge"}
    assert all(catalog.instance_type(name).usd_per_hour is None for name in known)


def test_an_instance_on_which_the_engine_does_not_start_is_not_compared(
    blueprint_of: Callable[..., Blueprint], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if `tune` shows the price of a worker that the table of engines and GPUs refuses."""
    refused = "inference_blueprints.measure.tuning.accelerator_comparison.capability_findings"
    for severity, engine in (("warning", "vllm"), ("error", None)):
        finding = Finding((), "got 'p5en'", cast("Literal['error', 'warning']", severity))
        monkeypatch.setattr(refused, lambda _resolved, finding=finding: iter([finding]))
        assert (
            row_of("p5en", compare_instances(blueprint_of(), 0, PRICES, find=flat, published=[])).engine
            == engine
        )
