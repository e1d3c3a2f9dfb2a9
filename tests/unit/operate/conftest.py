"""A moto account in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from moto import mock_aws

from inference_blueprints import resources, tools
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.resources import blueprints_directory
from tests.unit.stand_in_programs import Printed, StandInPrograms

REGION = "us-west-2"
#: Time of all checks.
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    # moto's own images and their snapshots take most of the time of these tests.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield Account(REGION)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the pauses between retries and polls."""
    monkeypatch.setattr("time.sleep", lambda _seconds: None)


@pytest.fixture
def cdk(monkeypatch: pytest.MonkeyPatch) -> StandInPrograms:
    """The pinned CDK command line. It is not started, which would take more than a second."""
    package = json.loads((resources.root() / "package.json").read_text(encoding="utf-8"))
    programs = StandInPrograms(monkeypatch)
    programs.add("cdk", lambda _: Printed(f"{package['dependencies']['aws-cdk']} (build 0)\n"))
    monkeypatch.setattr(tools, "cdk", lambda: ["cdk"])
    return programs


@pytest.fixture
def make_context(account: Account) -> Callable[..., DoctorContext]:
    """Create a context from the shipped quickstart. A function may change its spec."""

    def make(change: Callable[[dict[str, Any]], object] | None = None) -> DoctorContext:
        document = yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text())
        if change:
            change(document["spec"])
        blueprint = parse_blueprint(yaml.safe_dump(document), "a.yaml").blueprint
        return DoctorContext(account, blueprint, "a.yaml", NOW)

    return make
