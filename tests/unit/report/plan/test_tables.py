"""The plan in a terminal and in a pipe."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.plan.plan_tables import print_plan
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections.cold_starts import COLD_STARTS
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.memory import MEMORY
from inference_blueprints.report.plan.sections.pools import POOLS, TOTALS
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.plan import build_plan
from tests.unit.plan_samples import ChangedScene


@pytest.fixture
def shipped_plan() -> Callable[[str], PlanSummary]:
    """The summary of a shipped blueprint."""

    def summary(name: str) -> PlanSummary:
        blueprint = load_blueprint(name).blueprint
        return summarise(blueprint, build_plan(blueprint))

    return summary


def _printed(summary: PlanSummary, width: int, *, terminal: bool = False) -> str:
    stream = io.StringIO()
    print_plan(summary, Console(file=stream, width=width, force_terminal=terminal))
    return stream.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_figure_stays_whole_and_every_line_fits(summary: PlanSummary, width: int) -> None:
    text = _printed(summary, width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    assert "…" not in text
    words = text.split()
    for pool in summary[POOLS]:
        price = "unknown" if pool.usd_per_hour_used is None else f"{pool.usd_per_hour_used:,.2f}"
        assert price in words
    for memory in summary[MEMORY]:
        assert f"{memory.kv_cache_tokens:,}" in words


def test_what_is_kept_in_the_nodes_memory_is_shown_where_something_is(changed: ChangedScene) -> None:
    kept = changed(lambda spec: spec["models"][0].update(kvCache={"hostMemoryGib": 40}))
    # 40 GiB of 147,456 bytes a token, in whole blocks of 64.
    assert "291,264" in _printed(summarise(kept.blueprint, kept.plan), 80).split()
    without = changed(lambda spec: spec)
    assert "KV cache outside the devices" not in _printed(summarise(without.blueprint, without.plan), 80)


def test_further_tiers_are_shown_with_what_they_hold_and_cost(changed: ChangedScene) -> None:
    cache = {"hostMemoryGib": 30, "nvme": {"gib": 200}, "shared": {"s3": {"expireDays": 10}}}
    kept = changed(lambda spec: spec["models"][0].update(kvCache=cache))
    words = _printed(summarise(kept.blueprint, kept.plan), 80).split()
    # LMCache fills four fifths of 200 GiB.
    assert f"{int(0.8 * 200 * 2**30 / 147_456) // 64 * 64:,}" in words
    # 147 GB for a third of a month at 0.023 USD, and 3,906 puts.
    assert f"{147.456 / 3 * 0.023 + 1e6 / 256 * 0.005 / 1000:.2f}" in words


def test_names_are_shown_whole(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec)
    lines = _printed(summarise(scene.blueprint, scene.plan), 80).splitlines()
    assert any(line.split()[:2] == ["l40s", "g6e.2xlarge"] for line in lines)
    assert any(line.split()[:2] == ["qwen3-8b/main/worker", "l40s"] for line in lines)


def test_colour_only_in_a_terminal(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec)
    assert "\x1b[1m" in _printed(summarise(scene.blueprint, scene.plan), 80, terminal=True)


def test_notes_say_region_spot_and_what_is_missing(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec["pools"][0].update(purchase={"spot": {}}))
    summary = summarise(scene.blueprint, scene.plan)
    text = " ".join(_printed(summary, 80).split())
    assert "where prices may differ" in text
    assert "The price is unknown for l40s" in text
    assert "Spot prices change, and are at most the on-demand price. Pass yours" in text
    assert "Counted at the most that they can cost, and as 0 in the least: pool l40s." in text
    assert "load balancer capacity" in text


def test_an_unknown_price_is_shown_as_unknown(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec)
    summary = summarise(scene.blueprint, scene.plan)
    pool = dataclasses.replace(
        summary[POOLS][0], usd_per_hour_used=None, usd_per_hour_max=None, usd_per_hour_used_at_most=None
    )
    totals = dataclasses.replace(
        summary[TOTALS], without_used=("l40s",), without_max=("l40s",), usd_per_hour_used_at_most=None
    )
    figures = {**summary.figures, POOLS.key: (pool,), TOTALS.key: totals}
    text = " ".join(_printed(dataclasses.replace(summary, figures=figures), 80).split())
    assert "unknown unknown" in text
    assert f"at least {totals.usd_per_hour_used:.2f} at least {totals.usd_per_hour_max:.2f}" in text
    assert "The price is unknown for l40s. Sums with it say 'at most' or 'at least'." in text


@pytest.mark.parametrize("width", [60, 120])
def test_a_month_stranded_devices_and_missed_objectives_are_said(changed: ChangedScene, width: int) -> None:
    def doubtful(spec: dict[str, Any]) -> None:
        spec["pools"][0]["nodes"] = {"min": 20, "max": 22}
        spec["models"][0]["objectives"] = {"timePerOutputTokenP90Ms": 0.1}

    scene = changed(doubtful)
    text = _printed(summarise(scene.blueprint, scene.plan), width)
    assert max(len(line) for line in text.splitlines()) <= width
    words = " ".join(text.split())
    assert "Stranded: 18 devices of pool l40s hold no worker. nodes.min keeps 20 nodes" in words
    assert "qwen3-8b/main misses its time per output token p90: " in words
    assert "not priced" in words
    assert "Prices of services are those of us-east-1" in words


def test_the_schedule_of_elastic_workers_is_shown(shipped_plan: Callable[[str], PlanSummary]) -> None:
    text = " ".join(_printed(shipped_plan("elastic-g6e"), 200).split())
    assert "At least 4 workers from '0 7 * * 1-5' to '0 21 * * 1-5' (America/Los_Angeles;" in text
    assert "at the earliest after 300 s in which fewer were enough" in text


def test_a_start_is_the_sum_of_its_known_parts(shipped_plan: Callable[[str], PlanSummary]) -> None:
    (start,) = shipped_plan("elastic-g6e")[COLD_STARTS]
    assert start.image_seconds is None
    assert start.launch_seconds is not None
    assert start.weights_seconds is not None
    assert start.engine_seconds is not None
    by_hand = start.launch_seconds + start.weights_seconds + start.engine_seconds
    assert start.known_seconds == pytest.approx(by_hand)
    lines = _printed(shipped_plan("elastic-g6e"), 60).splitlines()
    assert [line.split()[-1] for line in lines if "sum of the known" in line] == [f"{by_hand:.0f}"]


@pytest.mark.parametrize(
    ("name", "assumption"),
    [
        ("elastic-g6e", "12 nodes all month, as if all elastic workers always ran"),
        ("quickstart-g6e", "2 nodes all month"),
    ],
)
def test_the_price_of_a_month_says_how_many_elastic_workers_run(
    shipped_plan: Callable[[str], PlanSummary], name: str, assumption: str
) -> None:
    items = {item.name: item.assumption for item in shipped_plan(name)[PLATFORM_COST].items}
    assert items["pool l40s"] == assumption
