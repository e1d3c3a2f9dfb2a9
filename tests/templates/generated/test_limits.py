"""The largest blueprint that the loader takes stays within CloudFormation's limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.harness.generated import generated_blueprint
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.spec.section import Section
from inference_blueprints.spec.sections.queueing.rules import MAXIMUM_BORROWING_POOLS
from inference_blueprints.spec.types import Batch, Spec
from tests.templates.checks.limits import exceeded_limits, sizes
from tests.templates.strategies import PLATFORM
from tests.templates.synthesis import write_templates

POOLS = 100
QUEUES, SCHEDULES = 15, 50
TAGS = {f"organisation:purpose-{index}": "the team that answers for it" for index in range(10)}
TYPES = [f"g6e.{size}xlarge" for size in ("", 2, 4, 8, 16)]


@pytest.mark.thorough
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


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["eks", "ecs"])
def test_the_largest_number_of_queues_fits_one_stack(tmp_path: Path, place: str) -> None:
    document = yaml.safe_load((blueprints_directory() / "batch-g6e.yaml").read_text("utf-8"))
    document["metadata"]["name"] = PLATFORM
    spec, batch = document["spec"], document["spec"]["batch"]
    [model], [pool], [queue], [team] = spec["models"], spec["pools"], batch["queues"], spec["teams"]
    names = [f"a-model-with-quite-a-name-{index:02}" for index in range(QUEUES)]
    pool["nodes"] = {"max": 3 * QUEUES}
    spec["models"] = [{**model, "name": name} for name in names]
    spec["teams"] = [
        {
            **team,
            "name": f"team-{index}",
            "principals": [f"arn:aws:iam::123456789012:role/Team{index}-{place}" for place in range(12)],
            "dataPrefixes": [f"s3://data-of-team-{index}/prompts-{place:02}/" for place in range(20)],
        }
        for index in range(3)
    ]
    spec["signalStore"]["signals"] = [
        {"name": f"answers-of-the-model-{index:02}", "team": "team-0"} for index in range(20)
    ]
    batch["queues"] = [{**queue, "name": f"{name}-nightly", "model": name} for name in names]
    batch["workers"] = {"min": 1, "max": 5, place: {}}
    manifest = {"inputs": [f"{spec['teams'][0]['dataPrefixes'][0]}prompts.jsonl"]}
    batch["schedules"] = [
        {
            "name": f"every-night-{index:02}",
            "queue": f"{names[index % QUEUES]}-nightly",
            "team": "team-0",
            "cron": "0 2 * * ? *",
            "manifest": manifest,
        }
        for index in range(SCHEDULES)
    ]
    (tmp_path / "blueprint.yaml").write_text(yaml.safe_dump(document))
    templates = write_templates(tmp_path / "blueprint.yaml", tmp_path / "cdk.out")
    assert exceeded_limits(templates) == []
    assert sizes(templates)["Batch"].resources > 10 * QUEUES


@pytest.mark.parametrize(
    ("section", "key", "maximum"),
    [(Spec, "pools", POOLS), (Batch, "queues", QUEUES), (Batch, "schedules", SCHEDULES)],
)
def test_the_loader_takes_no_more_than_was_tried(section: type[Section], key: str, maximum: int) -> None:
    metadata = section.model_fields[key].metadata
    assert [each.max_length for each in metadata if hasattr(each, "max_length")] == [maximum]
