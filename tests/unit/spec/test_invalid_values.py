"""Checks of a blueprint with invalid values: what can be decided is, and nothing else."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.spec.invalid_values import InvalidValue, Undecidable, decidable, usable
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

BASE = (Path(__file__).parent / "base.yaml").read_text(encoding="utf-8")
NAME_OF_FIRST = ("spec", "pools", 0, "name")


@pytest.fixture
def blueprint() -> Blueprint:
    """A blueprint of two pools, the first without a usable name."""
    right = parse_blueprint(BASE, "base.yaml").blueprint
    first, second = right.spec.pools
    pools = [first.model_copy(update={"name": InvalidValue(NAME_OF_FIRST)}), second]
    return right.model_copy(update={"spec": right.spec.model_copy(update={"pools": pools})})


def found(index: int, message: str = "it") -> Finding:
    return Finding(("spec", "pools", index), message)


USES: list[Callable[[Any], object]] = [
    *(bool, str, repr, len, iter, hash, int, float, list, range),
    *(
        lambda invalid_value: invalid_value.attribute,
        lambda invalid_value: invalid_value[0],
        lambda invalid_value: invalid_value(),
        lambda invalid_value: f"{invalid_value:g}",
    ),
    *(
        lambda invalid_value: "a" in invalid_value,
        lambda invalid_value: invalid_value in ("a",),
        lambda invalid_value: invalid_value in {"a"},
    ),
    *(
        lambda invalid_value: sum([1, invalid_value]),
        lambda invalid_value: max(1, invalid_value),
        lambda invalid_value: [0][invalid_value],
    ),
    *(
        lambda invalid_value, operate=operate, left=left: (
            operate(1, invalid_value) if left else operate(invalid_value, 1)
        )
        for operate in (
            *(operator.eq, operator.ne, operator.lt, operator.ge, operator.add, operator.sub, operator.mul),
            *(operator.truediv, operator.floordiv),
        )
        for left in (True, False)
    ),
]


@pytest.mark.parametrize("use", USES)
def test_no_use_of_a_hole_gives_a_value(use: Callable[[Any], object]) -> None:
    with pytest.raises(Undecidable) as caught:
        use(InvalidValue(NAME_OF_FIRST))
    assert caught.value.place == NAME_OF_FIRST


def test_an_item_with_a_hole_is_left_out_and_its_neighbours_are_not(blueprint: Blueprint) -> None:
    def check(blueprint: Blueprint) -> Iterator[Finding]:
        for index, pool in usable(blueprint.spec.pools):
            yield found(index, str(pool.nodes.max))
            yield found(index + 10, f"{pool.name}")

    assert list(decidable(check, blueprint)) == [found(0, "3"), found(1, "2"), found(11, "quad")]


def test_a_check_that_needs_every_item_ends(blueprint: Blueprint) -> None:
    def check(blueprint: Blueprint) -> Iterator[Finding]:
        yield found(0)
        yield from (found(index, f"{pool.name}") for index, pool in enumerate(blueprint.spec.pools))

    assert list(decidable(check, blueprint)) == [found(0)]


def test_a_check_without_use_of_the_hole_is_not_disturbed(blueprint: Blueprint) -> None:
    def check(blueprint: Blueprint) -> Iterator[Finding]:
        yield found(0, str(len(blueprint.spec.pools)))

    assert list(decidable(check, blueprint)) == [found(0, "2")]


def test_a_place_is_reported_by_one_run_only(blueprint: Blueprint) -> None:
    def check(blueprint: Blueprint) -> Iterator[Finding]:
        known = list(usable(blueprint.spec.pools))
        yield found(1, f"one of {len(known)}")
        yield found(1, f"another of {len(known)}")
        yield found(0, "".join(f"{pool.name}" for _, pool in known))

    whole = [found(1, "one of 2"), found(1, "another of 2")]
    assert list(decidable(check, blueprint)) == [*whole, found(0, "quad")]


def test_a_hole_outside_all_lists_ends_a_check(blueprint: Blueprint) -> None:
    spec = blueprint.spec.model_copy(update={"network": InvalidValue(("spec", "network"))})

    def check(blueprint: Blueprint) -> Iterator[Finding]:
        yield found(0)
        yield found(1, str(blueprint.spec.network.cidr))

    assert list(decidable(check, blueprint.model_copy(update={"spec": spec}))) == [found(0)]
