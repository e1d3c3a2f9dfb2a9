"""The same requests go to simulated and to real engines: exactly the listed facts differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inference_blueprints.spec.types import Blueprint
from tests.engines.comparison.differences import differences, expected_differences, unexpected, vanished
from tests.engines.comparison.layouts import Layout, blueprint, served
from tests.engines.comparison.parts import (
    Observed,
    blocks,
    cached,
    metrics,
    order,
    responses,
    routing,
    worker_metrics,
)

pytestmark = pytest.mark.engines

#: Room for one prompt as long as the context of 40,960 tokens, and the block that vLLM keeps empty.
_KV_BLOCKS = 700
_SEQUENCES = 8

Part = Callable[[Layout, Observed | None], Observed]


def _router_view(layout: Layout) -> Path:
    """Start a router and return the file with what it knows."""
    file = layout.home / "router-view.json"
    program = ["-m", "tests.engines.comparison.router_view", "dynamo.backend.generate", "64", str(file)]
    layout.start_inside("router view", program)
    return file


_AGGREGATED = blueprint("quickstart-g6e", replicas=[2])
_FEW_BLOCKS = blueprint(
    "quickstart-g6e",
    replicas=[1],
    workload={"inputTokens": 12_000},
    arguments={"num-gpu-blocks-override": _KV_BLOCKS},
)
_DISAGGREGATED = blueprint("p5en-disaggregated", replicas=[1, 1])


@pytest.mark.parametrize(
    ("shown", "parts"),
    [
        pytest.param(
            _AGGREGATED,
            {
                "responses": lambda layout, _: responses(layout),
                "routing": lambda layout, _: routing(layout, _router_view(layout)),
                "metrics of the frontend": lambda layout, _: metrics(layout),
            },
            id="aggregated",
        ),
        pytest.param(
            _FEW_BLOCKS,
            {
                "blocks": lambda layout, wanted: blocks(layout, _router_view(layout), wanted),
                "cache": lambda layout, _: cached(layout),
                "order": lambda layout, _: order(layout, _SEQUENCES),
            },
            id="few-blocks",
        ),
        pytest.param(
            _DISAGGREGATED,
            {
                "responses, disaggregated": lambda layout, _: responses(layout),
                "cache, disaggregated": lambda layout, _: cached(layout),
            },
            id="disaggregated",
        ),
        pytest.param(
            _DISAGGREGATED,
            {"metrics of the workers": lambda layout, _: worker_metrics(layout)},
            id="metrics-of-workers",
        ),
    ],
)
def test_exactly_the_listed_facts_differ(
    shown: Blueprint, parts: dict[str, Part], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    observed: dict[str, dict[str, Observed]] = {}
    for kind in ("simulated", "real"):
        with served(shown, kind, tmp_path) as layout:
            wanted = observed.get("simulated", {})
            observed[kind] = {name: part(layout, wanted.get(name)) for name, part in parts.items()}
    (tmp_path / "observed.json").write_text(json.dumps(observed, indent=1), encoding="utf-8")
    record_property("observed", str(tmp_path / "observed.json"))
    expected = expected_differences()
    wrong = []
    for name in parts:
        found = differences(name, observed["simulated"][name], observed["real"][name])
        wrong += unexpected(found, expected) + vanished(name, found, expected)
    assert wrong == []
