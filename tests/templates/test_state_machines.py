"""State machines are valid before AWS says that they are not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.templates.checks.state_language import definition_of, expressions, faults, faults_of_each
from tests.templates.conftest import Synthesise
from tests.templates.test_batch_stack import with_batch
from tests.templates.test_image_cache import NOT_YET, accelerated
from tests.templates.test_stores_stack import with_signals

Break = Callable[[dict[str, Any]], None]

_EXPRESSIONS_OF_A_JOB = 20


@pytest.fixture(scope="module")
def job(synthesise: Synthesise) -> dict[str, Any]:
    return definition_of(synthesise(with_signals).only("AWS::StepFunctions::StateMachine", "Batch"))


def test_the_machine_of_jobs_is_valid(job: dict[str, Any]) -> None:
    assert faults(job) == []
    assert "Publications" in job["States"]
    assert len(list(expressions(job))) > _EXPRESSIONS_OF_A_JOB


def test_without_a_signal_store_it_is_valid_too(synthesise: Synthesise) -> None:
    machine = synthesise(with_batch).only("AWS::StepFunctions::StateMachine", "Batch")
    assert faults(definition_of(machine)) == []


def test_every_other_machine_is_valid(synthesise: Synthesise) -> None:
    machines = synthesise(accelerated(NOT_YET)).properties("AWS::StepFunctions::StateMachine")
    assert machines
    assert not any(faults_of_each(definition_of(machine) for machine in machines))


def test_no_log_of_a_machine_adds_to_the_policy_that_the_account_shares(synthesise: Synthesise) -> None:
    # Step Functions Developer Guide, "Avoiding Amazon CloudWatch Logs resource policy size restrictions".
    def both(spec: dict[str, Any]) -> None:
        with_batch(spec)
        accelerated(NOT_YET)(spec)

    templates = synthesise(both)
    names = set()
    for stack in templates.by_stack.values():
        for resource in stack["Resources"].values():
            if resource["Type"] == "AWS::StepFunctions::StateMachine":
                [log] = resource["Properties"]["LoggingConfiguration"]["Destinations"]
                arn = log["CloudWatchLogsLogGroup"]["LogGroupArn"]
                group = stack["Resources"][arn["Fn::GetAtt"][0]]
                names.add(group["Properties"]["LogGroupName"])
    assert len(names) == 2
    assert all(name.startswith("/aws/vendedlogs/states/") for name in names)


def _misspell_a_transition(machine: dict[str, Any]) -> None:
    machine["States"]["Merge"]["Next"] = "Finnish"


def _forget_a_processor(machine: dict[str, Any]) -> None:
    del machine["States"]["Shards"]["ItemProcessor"]


def _use_a_field_of_the_other_language(machine: dict[str, Any]) -> None:
    machine["States"]["Plan"]["ResultPath"] = "$.plan"


def _break_an_expression_of_a_choice(machine: dict[str, Any]) -> None:
    machine["States"]["IsFirstAttempt"]["Choices"][0]["Condition"] = "{% $attempt >> 1 %}"


def _break_an_expression_that_no_schema_has(machine: dict[str, Any]) -> None:
    machine["States"]["Shards"]["ItemReader"]["Arguments"]["Key"] = "{% $shardsKey & %}"


def _break_a_child(machine: dict[str, Any]) -> None:
    machine["States"]["Shards"]["ItemProcessor"]["States"]["RunShard"]["End"] = "yes"


BREAKS = (
    _misspell_a_transition,
    _forget_a_processor,
    _use_a_field_of_the_other_language,
    _break_an_expression_of_a_choice,
    _break_an_expression_that_no_schema_has,
    _break_a_child,
)


@pytest.fixture(scope="module")
def found(job: dict[str, Any]) -> dict[Break, list[str]]:
    """What is found in each broken machine."""
    machines = [copy.deepcopy(job) for _ in BREAKS]
    for breaks, machine in zip(BREAKS, machines, strict=True):
        breaks(machine)
    return dict(zip(BREAKS, faults_of_each(machines), strict=True))


@pytest.mark.parametrize("breaks", BREAKS)
def test_a_broken_machine_is_found(found: dict[Break, list[str]], breaks: Break) -> None:
    assert found[breaks]
