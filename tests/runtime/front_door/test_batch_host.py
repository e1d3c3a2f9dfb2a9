"""The host name of the batch API, which replicas find in a parameter after they have started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from front_door.batch_host import BatchHost
from front_door.watched_configuration import WatchedConfiguration

from inference_contracts.door_names import batch_parameter
from inference_contracts.door_object import BATCH_HOST
from tests.runtime.front_door.policy_process import a_configuration

HOST = "a1b2c3d4e5-vpce-0123456789abcdef0.execute-api.us-west-2.amazonaws.com"
PARAMETER = batch_parameter("try")


class Parameters:
    """Systems Manager with one parameter: a value, or the code of an error."""

    def __init__(self) -> None:
        self.found: str | Exception = refused("ParameterNotFound")
        self.asked, self.now = 0, 0.0

    def get_parameter(self, Name: str) -> dict[str, Any]:  # noqa: N803 -- the name of AWS
        assert Name == PARAMETER
        self.asked += 1
        if isinstance(self.found, Exception):
            raise self.found
        return {"Parameter": {"Value": self.found}}

    def after_a_while(self, found: str | Exception) -> None:
        self.found, self.now = found, self.now + 31


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "GetParameter")


@pytest.fixture
def parameters() -> Parameters:
    return Parameters()


@pytest.fixture
def host(parameters: Parameters) -> BatchHost:
    return BatchHost(parameters, PARAMETER, lambda: parameters.now)


def test_the_name_is_found_when_it_is_written_and_gone_with_the_parameter(
    host: BatchHost, parameters: Parameters
) -> None:
    assert host.current() == ""
    parameters.after_a_while(HOST)
    assert host.current() == HOST
    parameters.after_a_while(refused("ParameterNotFound"))
    assert host.current() == ""


def test_it_is_asked_for_twice_a_minute(host: BatchHost, parameters: Parameters) -> None:
    """Red if each replica asks every second: all readers of an account share 40 reads a second."""
    for parameters.now in range(60):
        host.current()
    assert parameters.asked == 2


@pytest.mark.parametrize(
    "found",
    [
        refused("ThrottlingException"),
        refused("AccessDeniedException"),
        EndpointConnectionError(endpoint_url="https://ssm.us-west-2.amazonaws.com"),
        "example.com",
        f'{HOST}"',
        f"{HOST}.example.com",
        "a1b2c3d4e5.execute-api.us-west-2.amazonaws.com",
    ],
    ids=str,
)
def test_the_last_name_stays_if_another_cannot_be_read_or_used(
    host: BatchHost, parameters: Parameters, found: str | Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    """Red if keys of callers could be sent elsewhere, or if a fault of AWS takes the API away."""
    parameters.after_a_while(HOST)
    assert host.current() == HOST
    parameters.after_a_while(found)
    assert host.current() == HOST
    assert json.loads(capsys.readouterr().err)["parameter"] == PARAMETER


def test_envoy_gets_the_name_without_a_new_configuration(
    host: BatchHost, parameters: Parameters, tmp_path: Path
) -> None:
    """Red if replicas know the batch API only after the next change of the front door."""
    document = tmp_path / "configuration.json"
    part = {"resources": [{"host": BATCH_HOST}]}
    policy = json.loads(a_configuration().to_json())
    document.write_text(json.dumps({"policy": policy, "envoy": {"listeners": part, "clusters": part}}))
    watched = WatchedConfiguration(str(document), tmp_path, tmp_path, None, host)
    watched.first(lambda: pytest.fail("refused"))
    assert BATCH_HOST in (tmp_path / "clusters.json").read_text()
    assert watched.read() is None
    parameters.after_a_while(HOST)
    assert watched.read() is not None
    for name in ("clusters.json", "listeners.json"):
        assert json.loads((tmp_path / name).read_text()) == {"resources": [{"host": HOST}]}
    assert watched.read() is None
    # A replica that starts again with the last good configuration asks for the name anew.
    assert BATCH_HOST in (tmp_path / "last-good-configuration.json").read_text()
