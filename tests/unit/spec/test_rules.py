"""Warnings, and the table of rules itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints import catalog
from inference_blueprints.errors import BlueprintError, Finding
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.serving.checks.serving_checks import SPEC_CHECKS
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.spec.rules import (
    batch,
    batch_load,
    batch_policy,
    capacity,
    capacity_shift,
    cluster,
    efa_interfaces,
    elasticity,
    environment,
    events,
    gguf,
    image_acceleration,
    image_models,
    kafka,
    media,
    names,
    network,
    nodes,
    observability,
    pools,
    purchases,
    queueing,
    repairs,
    routes,
    schedules,
    signals,
    stacks,
    streaming,
    subnet_addresses,
    tasks,
    topologies,
    weights,
    workload,
)
from inference_blueprints.spec.rules.rule_table import RULES, Rule, rule_findings
from inference_blueprints.spec.structure import keys
from inference_blueprints.spec.types import Engine, Spec

HERE = Path(__file__).parent
BASE = (HERE / "base.yaml").read_text(encoding="utf-8")
DOUBTFUL = yaml.safe_load((HERE / "doubtful.yaml").read_text(encoding="utf-8"))
SUBJECTS = (
    events,
    gguf,
    kafka,
    streaming,
    subnet_addresses,
    batch,
    batch_load,
    batch_policy,
    capacity,
    capacity_shift,
    cluster,
    efa_interfaces,
    environment,
    image_acceleration,
    image_models,
    media,
    names,
    network,
    nodes,
    observability,
    pools,
    purchases,
    queueing,
    repairs,
    routes,
    elasticity,
    schedules,
    signals,
    stacks,
    tasks,
    topologies,
    weights,
    workload,
)


def edited(case: dict[str, Any]) -> str:
    """Return the base with a case's edits."""
    text = BASE
    for edit in case["edits"]:
        assert edit["replace"] in text, "the edit has to find its place"
        text = text.replace(edit["replace"], edit["by"], 1)
    return text


@pytest.mark.parametrize("case", DOUBTFUL, ids=[case["case"] for case in DOUBTFUL])
def test_warnings_come_with_the_blueprint(case: dict[str, Any]) -> None:
    loaded = parse_blueprint(edited(case), "base.yaml")
    expected = [f"base.yaml:{line}" for line in case["warnings"].splitlines()]
    assert [str(warning) for warning in loaded.warnings] == expected
    assert {warning.severity for warning in loaded.warnings} == {"warning"}


def test_warnings_do_not_join_errors() -> None:
    text = BASE.replace("{max: 3}", "{max: 2}").replace("pool: quad", "pool: qad")
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text, "base.yaml")
    assert [problem.severity for problem in caught.value.problems] == ["error"]


def test_every_rule_is_in_the_table() -> None:
    written = {
        function
        for subject in SUBJECTS
        for _, function in inspect.getmembers(subject, inspect.isgeneratorfunction)
        if function.__module__ == subject.__name__ and not function.__name__.startswith("_")
    }
    assert written == set(RULES)


def test_every_rule_has_a_case_that_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fired: set[Rule] = set()

    def record(rule: Rule) -> Rule:
        def check(spec: Spec) -> Iterator[Finding]:
            for finding in rule(spec):
                fired.add(rule)
                yield finding

        return check

    table = "inference_blueprints.spec.rules.rule_table.RULES"
    monkeypatch.setattr(table, tuple(record(rule) for rule in RULES))
    checks = "inference_blueprints.serving.checks.serving_checks.SPEC_CHECKS"
    monkeypatch.setattr(checks, tuple(record(check) for check in SPEC_CHECKS))
    broken = [*HERE.glob("broken/rules_*.yaml")]
    cases = [
        *DOUBTFUL,
        *(case for file in broken for case in yaml.safe_load(file.read_text(encoding="utf-8"))),
    ]
    for case in cases:
        try:
            parse_blueprint(edited(case), "base.yaml")
        except BlueprintError:
            continue
    assert fired == {*RULES, *SPEC_CHECKS}


def test_rules_of_a_whole_blueprint() -> None:
    blueprint = parse_blueprint(BASE, "base.yaml").blueprint
    assert rule_findings(blueprint) == []
    spec = blueprint.spec.model_copy(update={"pools": blueprint.spec.pools[:1]})
    [finding] = rule_findings(blueprint.model_copy(update={"spec": spec}))
    assert finding.path == ("spec", "models", 1, "deployments", 0, "aggregated", "pool")


def test_every_engine_says_whose_accelerators_it_needs() -> None:
    assert set(keys(Engine)) == set(ENGINES)
    known = {each.accelerator.manufacturer for each in catalog.instance_types().values() if each.accelerator}
    assert {engine.manufacturer for engine in ENGINES.values()} <= known
