"""Refuses every call of boto3 in a test that AWS refuses for its parameters: moto takes most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from botocore import handlers
from botocore.exceptions import ClientError
from botocore.model import OperationModel

from inference_local.emulator.patches.request_checks import refusal_of
from inference_local.emulator.request_parameters import SERVICES, Request

_EVENT: Final = "before-parameter-build"


def refuse(params: dict[str, Any], model: OperationModel, **_: object) -> None:
    """Raise what AWS answers."""
    if model.service_model.service_name in SERVICES and (error := refusal_of(Request(model, params))):
        answer = {"Error": {"Code": error.code, "Message": str(error)}}
        raise ClientError(answer, model.name)


@pytest.fixture(scope="session", autouse=True)
def refused_by_aws() -> Iterator[None]:
    handlers.BUILTIN_HANDLERS.append((_EVENT, refuse))
    yield
    handlers.BUILTIN_HANDLERS.remove((_EVENT, refuse))
