"""cdk-nag runs in every synthesis, and the templates are what CloudFormation takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sqs as sqs

import app
from inference_blueprints.loading import load_blueprint
from inference_contracts.errors import UserError
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates
from tests.templates.synthesis import CONTEXT


def everything(spec: dict[str, Any]) -> None:
    """Every option that adds a finding or a policy at once."""
    spec["environment"].update(dataRemoval="destroy", account="111122223333", tags={"team": "search"})
    spec["cluster"]["eks"]["endpointAccess"] = "publicAndPrivate"
    spec["network"] = {"sourceCidrs": ["0.0.0.0/0"]}
    spec["models"][0]["weights"] = {"s3": "s3://acme-models/qwen3-8b/", "catalog": "Qwen/Qwen3-8B"}


def test_all_findings_are_acknowledged_with_every_option(synthesise: Synthesise) -> None:
    synthesise(everything)


def test_no_validation_is_loaded_where_the_cli_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if `cdk synth --no-validation` validates: an own plugin runs whatever the CDK was told."""
    monkeypatch.setenv("CDK_VALIDATION", "false")
    assert app.load_validations() == []


def test_every_acknowledgement_has_a_reason(base_templates: Templates) -> None:
    reasons = [
        reason
        for file in base_templates.directory.glob("*.metadata.json")
        for entries in json.loads(file.read_text()).values()
        for entry in entries
        if entry["type"] == "aws:cdk:acknowledged-rules"
        for reason in entry["data"].values()
    ]
    assert reasons
    assert min(map(len, reasons)) > 20


def test_a_finding_is_one_line_with_rule_and_resource(base: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "blueprint.yaml").write_text(json.dumps(base))
    broken = app.build_app(
        load_blueprint(str(tmp_path / "blueprint.yaml")), outdir=tmp_path / "cdk.out", context=CONTEXT
    )
    data = broken.node.find_child("try-Data")
    assert isinstance(data, cdk.Stack)
    sqs.CfnQueue(data, "Forgotten")
    with pytest.raises(UserError) as caught:
        app.synthesise(broken)
    lines = str(caught.value).splitlines()
    assert {line.split(": ")[0] for line in lines} == {"try-Data/Forgotten"}
    assert {line.split(": ")[1] for line in lines} >= {"AwsSolutions-SQS3", "AwsSolutions-SQS4"}
