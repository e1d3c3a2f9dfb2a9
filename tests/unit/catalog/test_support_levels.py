"""Levels follow from proofs, and what a proof names exists and runs when it says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from suites import BEFORE_RELEASE, SUITES, suites_of

import inference_catalog as catalog
from inference_blueprints.resources import root
from inference_blueprints.spec.section import Section
from inference_blueprints.spec.types import Spec
from inference_catalog.support_levels import (
    HOW,
    NEVER_ON_HARDWARE,
    PROCESSORS,
    Feature,
    Proof,
    Support,
    SupportLevel,
)


def proof(how: str, *, faults: bool = False, before_release: bool = False) -> Proof:
    broken = ("tests/test_b.py",) if faults else ()
    return Proof(how=how, shows="", tests=("tests/test_a.py",), faults=broken, before_release=before_release)


@pytest.mark.parametrize(
    ("proofs", "level"),
    [
        ([proof("emulated"), proof("real", faults=True)], "core"),
        ([proof("real"), proof("simulated", faults=True)], "supported"),
        ([proof("simulated"), proof("real", faults=True, before_release=True)], "supported"),
        ([proof("scripted", faults=True), proof("rendered")], "experimental"),
        ([proof("real", faults=True, before_release=True)], "experimental"),
        ([], "experimental"),
    ],
)
def test_proofs_decide_the_level(proofs: list[Proof], level: SupportLevel) -> None:
    """A level that weaker proofs, or proofs of a release, can reach turns this red."""
    assert Feature(name="a", keys=("a",), proofs=tuple(proofs)).level == level


def test_a_blueprint_has_the_lowest_level_of_its_features() -> None:
    core = Feature(name="a", keys=("a",), proofs=(proof("real", faults=True),))
    lower = Feature(name="b", keys=("b",), proofs=(proof("emulated"),))
    assert [Support((core,)).level, Support((core, lower)).level] == ["core", "supported"]
    assert Support((core, lower)).line == "Support: supported; never run on hardware"
    unproven = Support((core, Feature(name="c", keys=("c",))))
    assert unproven.line == "Support: experimental (c); never run on hardware"


@pytest.mark.parametrize("feature", catalog.features(), ids=lambda feature: feature.name)
def test_named_tests_exist_and_run_when_the_proof_says_so(feature: Feature) -> None:
    """A feature that claims a test which is gone, or which no run of CI has, turns this red."""
    for each in feature.proofs:
        assert each.how in HOW
        assert each.tests
        for name in each.files:
            assert (root() / name).is_file(), name
            suites = suites_of(root(), name)
            waiting = [suite for suite in suites if suite.target != "test"] or suites
            assert waiting, name
            assert all(suite.tier == "release" for suite in waiting) == each.before_release, name


def test_a_suite_of_every_run_loses_tests_of_experimental_features_only() -> None:
    """A test that something core or supported needs, and that runs before a release only, turns this red."""
    [suite] = [suite for suite in SUITES if suite.target == "test-experimental"]
    moved = set(suite.files(root()))
    assert moved == {name for name in BEFORE_RELEASE if suite in suites_of(root(), name)}
    needed = {
        name
        for feature in catalog.features()
        if feature.level != "experimental"
        for each in feature.proofs
        for name in each.files
    }
    assert moved & needed == set()


def test_keys_are_those_of_a_blueprint() -> None:
    """A misspelt key, whose feature no blueprint ever uses, turns this red."""
    resources = {kind.device_resource or PROCESSORS for kind in catalog.instance_types().values()}
    known = {".".join(path) for path in keys_of(Spec)}
    for feature in catalog.features():
        for key in feature.keys:
            name, _, value = key.partition("=")
            assert name in known, key
            assert name != "pools.instanceTypes" or value in resources, key


def keys_of(section: type[Section], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in section.model_fields.items():
        here = (*above, field.alias or name)
        yield here
        for inner in sections(field.annotation):
            yield from keys_of(inner, here)


def sections(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for inner in get_args(annotation):
        yield from sections(inner)


@pytest.mark.parametrize("page", ["README.md", "docs/life-cycle.md", "docs/support-levels.md"])
def test_pages_say_alike_that_nothing_ran_on_hardware(page: str) -> None:
    """As long as no feature has; then each page needs what has."""
    assert not any(feature.on_hardware for feature in catalog.features())
    assert NEVER_ON_HARDWARE in (root() / page).read_text(encoding="utf-8")
