"""The plan in about ten lines."""

from __future__ import annotations

import pytest

from inference_blueprints.report.plan.short_plan import headline
from inference_blueprints.report.plan.summary import summarise
from tests.unit.plan_samples import shipped_sample


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("quickstart-g6e", "quickstart in us-west-2: 2 x l40s on g6e.2xlarge, 4,035 USD a month"),
        ("elastic-g6e", "elastic in us-west-2: 2 to 12 x l40s on g6e.2xlarge, at most 20,589 USD a month"),
        (
            "capacity-block-p5",
            "capacity-block in us-west-2: 14 x h100 on p5.48xlarge (capacityBlock), 762 USD a month without "
            "the nodes of h100",
        ),
    ],
)
def test_the_first_line_has_devices_and_cost(name: str, line: str) -> None:
    """A sum without the price of the nodes would read as the price of the platform."""
    scene = shipped_sample(name)
    assert headline(summarise(scene.blueprint, scene.plan)) == line
