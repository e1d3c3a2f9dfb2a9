"""Each row of the table of refusals, sent to a running emulator: it refuses what AWS refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from inference_local.emulator.emulator import Emulator
from inference_local.emulator.refusals import Refusal
from inference_local.emulator.request_refusals import refusals
from tests.local.emulator.conftest import ApplyStack, Resources
from tests.local.emulator.refused import EXAMPLES, LATER, OF_ECS, Call
from tests.local.emulator.refused_managed import MANAGED

ROWS = refusals()
ALL_EXAMPLES = {**EXAMPLES, **MANAGED}


@pytest.fixture(scope="module")
def plain_client(emulator: Emulator) -> Callable[[str], Any]:
    return clients(emulator)


@pytest.fixture(scope="module")
def ecs_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    with Emulator(tmp_path_factory.mktemp("ecs"), region="us-west-2", task_images={}) as emulator:
        yield clients(emulator)


def clients(emulator: Emulator) -> Callable[[str], Any]:
    """Return what makes clients that send every request: botocore itself refuses some."""
    settings = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    access = emulator.environment()
    session = boto3.Session(
        access["AWS_ACCESS_KEY_ID"], access["AWS_SECRET_ACCESS_KEY"], region_name=emulator.region
    )
    return lambda name: session.client(name, endpoint_url=emulator.endpoint_url, config=settings)


def words(row: Refusal) -> re.Pattern[str]:
    """Return a pattern of a row's words, with anything in the place of what is filled in."""
    parts = re.split(r"\{\w+\}", row.message)
    return re.compile(".*".join(re.escape(part.format()) for part in parts), re.DOTALL | re.IGNORECASE)


def send(each: Call, client: Callable[[str], Any]) -> None:
    sender = client(each.service)
    getattr(sender, each.operation)(**each.parameters, **each.found(sender))


def demand_refused(row: Refusal, example: Call, client: Callable[[str], Any]) -> None:
    for each in example.before:
        send(each, client)
    with pytest.raises(ClientError) as raised:
        send(example, client)
    error = raised.value.response["Error"]
    # The API's model has an error of its own for each service.
    assert row.call.startswith("every call") or error["Code"].rpartition("#")[2] == row.code
    assert words(row).search(error["Message"]), error


@pytest.mark.parametrize("name", sorted(ROWS.keys() - OF_ECS.keys() - LATER.keys()))
def test_the_emulator_refuses_it(
    name: str, plain_client: Callable[[str], Any], apply_stack: ApplyStack
) -> None:
    """Red if a deployment passes here that AWS refuses."""
    row, example = ROWS[name], ALL_EXAMPLES[name]
    if isinstance(example, Call):
        demand_refused(row, example, plain_client)
        return
    for each in example.calls:
        send(each, plain_client)
    stack = f"refused-{name.lower().replace('_', '-')}"
    if example.before is not None:
        made = apply_stack(stack, {"It": (example.kind, dict(example.before))})
        assert made.status == "CREATE_COMPLETE", made.reasons
    resources: Resources = {
        f"It{index or ''}": (example.kind, dict(example.properties)) for index in range(1 + example.others)
    }
    end = apply_stack(stack, resources)
    if example.deleted:
        end = apply_stack(stack, {"Other": ("AWS::SQS::Queue", {})})
    assert any(words(row).search(reason) for reason in end.reasons), end


@pytest.mark.parametrize("name", sorted(OF_ECS))
def test_the_emulator_of_ecs_refuses_it(name: str, ecs_client: Callable[[str], Any]) -> None:
    """Red if a deployment of ECS passes here that AWS refuses."""
    demand_refused(ROWS[name], OF_ECS[name], ecs_client)
