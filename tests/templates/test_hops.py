"""Each connection that a template admits is a row of a table, with the tests that deny everybody else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from inference_blueprints.resources import root
from tests.templates.checks.hops import HOPS, Hop, hops_of, ingress
from tests.templates.conftest import Synthesise, SynthesiseShipped
from tests.templates.support import Templates
from tests.templates.test_front_door_stack import traced_on_ecs, with_own_keys
from tests.templates.test_known_callers_stack import with_old_names
from tests.templates.test_policies import CHANGES

#: Shipped blueprints that have every group between them.
EVERY_GROUP = ("capacity-and-health", "ecs-p5en-disaggregated", "front-door", "streaming-g6e")


def strangers(templates: Templates) -> dict[str, int]:
    """Return the rules of security groups that belong to no row or to several."""
    found = {rule: len(hops_of(rule)) for rule in ingress(templates)}
    return {rule: rows for rule, rows in found.items() if rows != 1}


def test_whoever_a_shipped_platform_admits_is_in_the_table(shipped_templates: Templates) -> None:
    assert strangers(shipped_templates) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("change", CHANGES)
def test_whoever_a_variant_admits_is_in_the_table(synthesise: Synthesise, change: Any) -> None:
    assert strangers(synthesise(change)) == {}


@pytest.mark.thorough
def test_no_row_names_a_rule_that_no_platform_has(
    synthesise: Synthesise, synthesise_shipped: SynthesiseShipped
) -> None:
    variants = (traced_on_ecs, with_own_keys, with_old_names)
    platforms = [*map(synthesise_shipped, EVERY_GROUP), *map(synthesise, variants)]
    found = {rule for each in platforms for rule in ingress(each)}
    patterns = [pattern for hop in HOPS for pattern in hop.rules]
    assert [each for each in patterns if not any(re.fullmatch(each, rule) for rule in found)] == []


@pytest.mark.parametrize("hop", HOPS, ids=lambda hop: f"{hop.caller} - {hop.target}")
def test_a_closed_row_has_tests_and_an_open_one_says_what_closes_it(hop: Hop) -> None:
    assert bool(hop.tests) != bool(hop.closes)
    for test in hop.tests:
        file, name = test.split("::")
        assert f"def {name}(" in (root() / file).read_text(encoding="utf-8"), test
