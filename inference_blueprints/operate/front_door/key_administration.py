"""Finds the API keys of a deployed platform, and turns refusals into errors for users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.cloudformation.deployed_stacks import stack_outputs
from inference_blueprints.serving.front_door.key_rules import key_rules
from inference_blueprints.spec.types import Blueprint
from inference_contracts.door_audit import Actor, AuditLog
from inference_contracts.door_key_acts import (
    KeyActs,
    KeyRequest,
    KeyRequestError,
    KeyRules,
    request_problems,
)
from inference_contracts.door_key_table import AUDIT_BUCKET_OUTPUT, TABLE_OUTPUT, KeyTable
from inference_contracts.errors import BlueprintError, Problem, UserError


def front_door_stack(platform: str) -> str:
    """Return the name of the stack of the front door.

    platform: `metadata.name`.
    """
    return f"{platform}-FrontDoor"


def demand_possible(blueprint: Blueprint, request: KeyRequest) -> None:
    """Check a request for a key before the account is asked.

    Raises UserError if the blueprint has no API keys, and KeyRequestError with all problems of the request.
    """
    problems = [*request_problems(request, _demanded_rules(blueprint))]
    if problems:
        raise KeyRequestError(*problems)


def key_acts(blueprint: Blueprint) -> KeyActs:
    """Return the acts on a platform's keys, as whoever has the credentials of the environment.

    Raises UserError if the blueprint has no API keys, the platform is not deployed, or the credentials are
        missing or for another account.
    """
    rules = _demanded_rules(blueprint)
    environment = blueprint.spec.environment
    account = Account(environment.region)
    account.demand(environment.account)
    outputs = stack_outputs(account, front_door_stack(rules.platform), TABLE_OUTPUT, AUDIT_BUCKET_OUTPUT)
    return KeyActs(
        KeyTable(account.client("dynamodb"), outputs[TABLE_OUTPUT]),
        AuditLog(account.client("s3"), outputs[AUDIT_BUCKET_OUTPUT], rules.platform),
        rules,
        Actor(account.caller, "command"),
    )


def _demanded_rules(blueprint: Blueprint) -> KeyRules:
    rules = key_rules(blueprint)
    if rules is None:
        raise UserError(
            f"{blueprint.metadata.name}: has no API keys; add spec.frontDoor with identity.apiKeys to the "
            "blueprint, and deploy it"
        )
    return rules


@contextmanager
def refusals_as_errors(file: str) -> Iterator[None]:
    """Turn refusals of an act, and errors of AWS, into errors for users.

    file: The blueprint as the user named it.
    Raises BlueprintError with all reasons of a refusal, and UserError if AWS does not answer or refuses.
    """
    try:
        with readable_errors():
            yield
    except KeyRequestError as error:
        raise BlueprintError([Problem(file, 0, 0, "", each) for each in error.problems]) from error
