"""Certificates of callers in AWS: who may read which, and what the load balancer still reaches."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from inference_contracts.door_identities import CALLERS_PORT
from tests.templates.checks.hops import ingress
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, listed, statements, text
from tests.templates.test_front_door_stack import on_ecs, with_front_door

STACK, MODEL, RELEASE = "Certificates", "Model-qwen3-8b", "qwen3-8b-main"
_OLD_NAMES = {"models": {"until": "2027-01-31T00:00:00Z"}}


def observed(spec: dict[str, Any]) -> None:
    with_front_door(spec)
    spec["observability"] = {}


def observed_on_ecs(spec: dict[str, Any]) -> None:
    on_ecs(spec)
    spec["observability"] = {}


def with_old_names(spec: dict[str, Any]) -> None:
    with_front_door(spec)
    spec["frontDoor"]["oldHostNames"] = _OLD_NAMES


def with_old_names_on_ecs(spec: dict[str, Any]) -> None:
    on_ecs(spec)
    spec["frontDoor"]["oldHostNames"] = _OLD_NAMES


@pytest.fixture(scope="module", params=[observed, observed_on_ecs], ids=["EKS", "ECS"])
def templates(request: pytest.FixtureRequest, synthesise: Synthesise) -> Templates:
    return synthesise(request.param)


def secrets(templates: Templates) -> dict[str, str]:
    """Return the logical ID of each secret, by what it is for."""
    return {
        resource["Properties"]["Description"]: name
        for name, resource in templates.by_stack[STACK]["Resources"].items()
        if resource["Type"] == "AWS::SecretsManager::Secret"
    }


def readers(templates: Templates, secret: str) -> set[str]:
    """Return the stacks with a role that may read a secret: those that name it, or its export."""
    exported = {
        name
        for name, output in templates.by_stack[STACK].get("Outputs", {}).items()
        if output["Value"] == {"Ref": secret}
    }
    found = set()
    for stack, template in templates.by_stack.items():
        for resource in template["Resources"].values():
            if resource["Type"] not in ("AWS::IAM::Role", "AWS::IAM::Policy"):
                continue
            for statement in statements(resource):
                if "secretsmanager:GetSecretValue" not in listed(statement["Action"]):
                    continue
                names = " ".join(text(each) for each in listed(statement["Resource"]))
                if f"${{{secret}}}" in names or any(name in names for name in exported):
                    found.add(stack)
    return found


def test_each_certificate_is_read_by_its_owner_and_the_authority_by_the_build(
    templates: Templates,
) -> None:
    """Red if a model could take the place of the door, or if anything else may read the authority's key."""
    found = {
        purpose.removeprefix("Certificate of "): readers(templates, secret)
        for purpose, secret in secrets(templates).items()
    }
    assert found == {
        "Certificate authority of callers of models": {STACK},
        "spiffe://try/door": {STACK, "FrontDoor"},
        "spiffe://try/prometheus": {STACK, "Observability"},
        "spiffe://try/benchmark": {STACK},
        "spiffe://try/verify": {STACK},
        f"spiffe://try/models/{RELEASE}": {STACK, MODEL},
    }


def test_the_build_runs_every_day_and_before_the_models(templates: Templates) -> None:
    [rule] = templates.properties("AWS::Events::Rule", STACK)
    assert rule["ScheduleExpression"] == "rate(1 day)"
    [project] = templates.properties("AWS::CodeBuild::Project", STACK)
    variables = {each["Name"]: each["Value"] for each in project["Environment"]["EnvironmentVariables"]}
    # Each certificate outlives a week of builds that fail.
    assert int(variables["DAYS"]) - int(variables["LEFT_DAYS"]) >= 7
    assert int(variables["LEFT_DAYS"]) >= 7
    assert "PRIVATE KEY" not in json.dumps(project)
    assert any("Certificates" in each for each in templates.artifacts[MODEL]["dependencies"])


@pytest.mark.parametrize("change", [observed, observed_on_ecs], ids=["EKS", "ECS"])
def test_the_load_balancer_reaches_no_port_for_callers(synthesise: Synthesise, change: Any) -> None:
    """Red if it could pass requests to a port where a certificate opens the API."""
    rules = [rule for rule in ingress(synthesise(change)) if rule.endswith("from Callers of the models")]
    models = [rule for rule in rules if rule.startswith(("the cluster", "Hosts and tasks"))]
    found = {int(rule.split(" tcp ")[1].split()[0]) for rule in models}
    assert 8000 in found
    assert CALLERS_PORT not in found


def without_door(spec: dict[str, Any]) -> None:
    """A platform whose host names are ready for a front door."""
    with_front_door(spec)
    del spec["frontDoor"], spec["teams"], spec["models"][0]["rates"]


def without_door_on_ecs(spec: dict[str, Any]) -> None:
    without_door(spec)
    spec["cluster"] = {"ecs": {}}


def meeting_points(templates: Templates) -> dict[str, Any]:
    """Everything by which the load balancer finds entry points and checks them, but the rules' weights."""
    found = {
        name: resource
        for name, resource in templates.by_stack[MODEL]["Resources"].items()
        if resource["Type"] == "AWS::ElasticLoadBalancingV2::TargetGroup"
    }
    services = templates.properties("AWS::ECS::Service", MODEL)
    balancers = [each["LoadBalancers"] for each in services if each.get("LoadBalancers")]
    bound = [each["spec"] for each in templates.manifests(MODEL) if each["kind"] == "TargetGroupBinding"]
    reached = {rule for rule in ingress(templates) if re.search(r"tcp 8000 from Callers of the models", rule)}
    assert balancers or bound
    return {"groups": found, "balancers": balancers, "bindings": bound, "reached": reached}


@pytest.mark.parametrize(
    "states",
    [(without_door, with_old_names, with_front_door), (without_door_on_ecs, with_old_names_on_ecs, on_ecs)],
    ids=["EKS", "ECS"],
)
def test_a_door_that_comes_or_goes_changes_nothing_between_load_balancer_and_models(
    synthesise: Synthesise, states: tuple[Any, ...]
) -> None:
    """A target of before and one of after pass the same check at the same port.

    Red if the check moves to a port that running entry points do not have, if the port of a target group
    changes, which CloudFormation replaces (resource reference, TargetGroup, "Port"), if pods are registered
    by another Service before they listen there, or if the load balancer loses the port of those that run.
    """
    first, *others = (meeting_points(synthesise(each)) for each in states)
    assert others == [first, first]
