"""The largest blueprint that the loader takes stays within CloudFormation's limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.harness.generated import generated_blueprint
from inference_blueprints.spec.rules.queueing import MAXIMUM_BORROWING_POOLS
from inference_blueprints.spec.types import Spec
from tests.templates.checks.limits import exceeded_limits, sizes
from tests.templates.conftest import write_templates
from tests.templates.strategies import PLATFORM

POOLS = 100
TAGS = {f"organisation:purpose-{index}": "the team that answers for it" for index in range(10)}
TYPES = [f"g6e.{size}xlarge" for size in ("", 2, 4, 8, 16)]


@pytest.mark.parametrize(
    ("pools", "kueue"),
    [(POOLS, {}), (MAXIMUM_BORROWING_POOLS, {"borrowing": {}})],
    ids=["queues", "borrowing"],
)
def test_the_largest_number_of_pools_fits_one_stack(
    tmp_path: Path, pools: int, kueue: dict[str, Any]
) -> None:
    document = generated_blueprint(pools, 2)
    document["metadata"]["name"] = PLATFORM
    spec = document["spec"]
    spec["queueing"] = {"kueue": kueue}
    spec["environment"] |= {"tags": TAGS, "availabilityZones": [f"us-west-2{zone}" for zone in "abcd"]}
    for pool in spec["pools"]:
        if pool["instanceTypes"] == ["g6e.2xlarge"]:
            pool["instanceTypes"] = TYPES
    (tmp_path / "blueprint.yaml").write_text(yaml.safe_dump(document))
    templates = write_templates(tmp_path / "blueprint.yaml", tmp_path / "cdk.out")
    assert exceeded_limits(templates) == []
    assert sizes(templates)["Capacity"].resources > 2 * pools


def test_the_loader_takes_no_more_pools_than_were_tried() -> None:
    [limit] = [each.max_length for each in Spec.model_fields["pools"].metadata if hasattr(each, "max_length")]
    assert limit == POOLS
