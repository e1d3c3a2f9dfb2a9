"""Entries of the catalogue are what their configurations give. Bug: one is changed by hand, or copied wrong.

Configurations of the wheel ``aiconfigurator-core`` are not here; ``record_models.py`` counts those again.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from record_models import BUNDLED, CONFIGURATIONS, FACTS, KEPT

import inference_catalog as catalog
from inference_catalog.catalogue import shipped
from inference_catalog.configurations.describe import describe

MODELS = json.loads((shipped().directory / "models.json").read_text(encoding="utf-8"))["models"]
KEPT_HERE = [
    (name, entry)
    for path in (KEPT, CONFIGURATIONS / "heldOut.json")
    for name, entry in json.loads(path.read_text(encoding="utf-8"))["configurations"].items()
    if name in MODELS
]
#: Bytes of all files of a checkpoint, with its layers for multi-token prediction.
#: Hy3: ``metadata.total_size`` of its index at 716aa7241bd6d95896be4ebfc761162a9c4d49ef.
PUBLISHED_BYTES = {"tencent/Hy3": 597_572_342_272}


@pytest.mark.parametrize(("name", "kept"), KEPT_HERE)
def test_an_entry_is_what_its_configuration_gives(name: str, kept: dict[str, Any]) -> None:
    counted = {key: value for key, value in MODELS[name].items() if key not in FACTS}
    assert counted == describe(kept["configuration"])
    assert MODELS[name]["source"] == kept["source"]


def test_every_entry_can_be_counted_again() -> None:
    bundled = {name for name, entry in MODELS.items() if BUNDLED.match(entry["source"])}
    assert {name for name, _ in KEPT_HERE} == MODELS.keys() - bundled


@pytest.mark.parametrize("name", PUBLISHED_BYTES)
def test_counted_bytes_are_those_of_the_published_files(name: str) -> None:
    model = catalog.model(name)
    counted = model.weight_bytes + model.prediction_weight_bytes
    assert counted == pytest.approx(PUBLISHED_BYTES[name], rel=1e-5)
