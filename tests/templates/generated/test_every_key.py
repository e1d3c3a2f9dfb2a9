"""The sample of generated blueprints has every key that a file may have, so that no check passes one by."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Set
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from inference_blueprints.spec.structure import keys, walk
from inference_blueprints.spec.types import EcsCluster
from tests.templates.strategies import Document, blueprints

_KNOWN = {f"{path}.{name}".lstrip(".") for path, section, _ in walk() for name in keys(section)}
#: Keys that no draw has, each with the reason.
LEFT_OUT: dict[str, str] = {
    "spec.cluster.ecs": "tests/templates/ecs_strategies.py draws lives on ECS",
    **{f"spec.cluster.ecs.{key}": "the same" for key in keys(EcsCluster)},
    "spec.models[].objectives.timeToFirstTokenMs.p90": "timeToFirstTokenP90Ms says the same",
    "spec.models[].objectives.timePerOutputTokenMs.p90": "timePerOutputTokenP90Ms says the same",
    **{
        key: "it needs a file: tests/unit/serving"
        for key in _KNOWN
        if key.endswith((".day.rates", ".chat.template"))
    },
    **{
        f"spec.models[].deployments[].disaggregated.{role}.scaledBy.capacityShift": "refused of such a role"
        for role in ("prefill", "decode")
    },
}


@pytest.mark.thorough
@pytest.mark.timeout(0)  # the number of draws bounds it
def test_every_key_is_drawn_or_left_out_for_a_reason() -> None:
    drawn = _drawn(_KNOWN - LEFT_OUT.keys())
    assert sorted(_KNOWN - drawn - LEFT_OUT.keys()) == [], "draw these in tests/templates/strategies.py"
    assert sorted(drawn & LEFT_OUT.keys()) == []
    assert sorted(LEFT_OUT.keys() - _KNOWN) == []


class CompleteError(Exception):
    """Every key has been drawn."""


def _drawn(wanted: Set[str]) -> set[str]:
    """Draw blueprints until they have all of these keys, and return every key that they have."""
    found: set[str] = set()

    @settings(
        max_examples=2000,  # it ends with the last key, long before
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(document=blueprints())
    def collect(document: Document) -> None:
        found.update(_keys(document, ""))
        if wanted <= found:
            raise CompleteError

    with contextlib.suppress(CompleteError):
        collect()
    return found


def _keys(value: Any, path: str) -> Iterator[str]:
    """Iterate over the paths of a value's keys, spelled as the types are walked."""
    if isinstance(value, list):
        for item in value:
            yield from _keys(item, f"{path}[]")
    elif isinstance(value, dict):
        for name, below in value.items():
            here = f"{path}.{name}".lstrip(".")
            yield here
            yield from _keys(below, here)
