"""What must fail a deployment, with a reason that can be read, and roll it back."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from botocore.exceptions import ClientError

from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import DeployError, deploy
from tests.local.emulator.conftest import ApplyStack

MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
CHART = "Custom::AWSCDK-EKS-HelmChart"
Client = Callable[[str], Any]


def _manifest(cluster: str, *objects: dict[str, Any], **properties: object) -> tuple[str, dict[str, Any]]:
    return MANIFEST, {
        "ServiceToken": "none", "ClusterName": cluster, "Manifest": json.dumps(objects), **properties
    }  # fmt: skip


def _config_map(name: str, **fields: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def _zip(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def _record(emulator: Emulator, cluster: str, name: str) -> Path:
    return emulator.records_directory / cluster / "default" / f"configmap-{name}.yaml"


def test_cdk_deploy_reports_the_failed_resource_and_its_reason(
    emulator: Emulator, cluster: str, client: Client, tmp_path: Path
) -> None:
    app = cdk.App(outdir=str(tmp_path / "out"))
    stack = cdk.Stack(app, "bad-manifest", env=cdk.Environment(account="123456789012", region="us-west-2"))
    kind, properties = _manifest(cluster, _config_map("good"), _config_map("bad", dataa={}))
    cdk.CfnResource(stack, "Bad", type=kind, properties=properties)
    app.synth()

    with pytest.raises(DeployError, match=r"ConfigMap bad: .*'dataa' was unexpected") as raised:
        deploy(emulator, tmp_path / "out", log_path=tmp_path / "deploy.log", on_line=lambda _: None,
               on_event=lambda _: None)  # fmt: skip

    assert raised.value.failures[0].resource_type == MANIFEST
    assert str(tmp_path / "deploy.log") in str(raised.value)
    stacks = client("cloudformation").describe_stacks(StackName="bad-manifest")["Stacks"]
    assert stacks[0]["StackStatus"] == "ROLLBACK_COMPLETE"
    assert not _record(emulator, cluster, "good").exists(), "all objects are checked before one is made"


def test_a_resource_type_that_nothing_handles_fails_before_anything_is_made(
    client: Client, apply_stack: ApplyStack
) -> None:
    resources = {"Queue": ("AWS::SQS::Queue", {"QueueName": "never"}), "Odd": ("AWS::EC2::Wormhole", {})}
    with pytest.raises(ClientError, match=r"Unrecognized resource types: \[AWS::EC2::Wormhole\]"):
        apply_stack("unknown-type", resources)
    assert "never" not in str(client("sqs").list_queues().get("QueueUrls", []))


def test_a_failed_update_restores_what_was_deployed(
    emulator: Emulator, cluster: str, apply_stack: ApplyStack
) -> None:
    apply_stack("bad-update", {"Map": _manifest(cluster, _config_map("kept", data={"version": "first"}))})
    changed = _manifest(cluster, _config_map("kept", data={"version": "second"}))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}

    end = apply_stack("bad-update", {"Map": changed, "Widget": _manifest(cluster, widget)})

    assert end.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "no schema for kind Widget of example.com/v1" in end.reasons[0]
    record = yaml.safe_load(_record(emulator, cluster, "kept").read_text())
    assert record["data"] == {"version": "first"}


def test_two_owners_of_one_object_are_refused(
    emulator: Emulator, cluster: str, apply_stack: ApplyStack
) -> None:
    apply_stack("owner", {"Map": _manifest(cluster, _config_map("owned"))})
    end = apply_stack("thief", {"Map": _manifest(cluster, _config_map("owned"))})
    assert end.status == "ROLLBACK_COMPLETE"
    assert "already exists: default/configmap-owned.yaml" in end.reasons[0]


@pytest.fixture(scope="module")
def published_chart(client: Client) -> str:
    chart = Path(__file__).parent / "chart"
    files = {str(file.relative_to(chart)): file.read_text() for file in chart.rglob("*.*")}
    location = {"LocationConstraint": "us-west-2"}
    client("s3").create_bucket(Bucket="charts", CreateBucketConfiguration=location)
    client("s3").put_object(Bucket="charts", Key="web.zip", Body=_zip(files))
    return "s3://charts/web.zip"


def _release(cluster: str, name: str, url: str, **values: object) -> tuple[str, dict[str, Any]]:
    properties = {"ServiceToken": "none", "ClusterName": cluster, "Release": name, "ChartAssetURL": url}
    return CHART, {**properties, "Values": json.dumps(values)}


def test_values_that_a_charts_schema_refuses_fail_with_helms_own_words(
    published_chart: str, cluster: str, apply_stack: ApplyStack
) -> None:
    end = apply_stack("bad-values", {"Web": _release(cluster, "bad", published_chart, replicas="two")})
    assert end.status == "ROLLBACK_COMPLETE"
    assert "helm cannot render release bad" in end.reasons[0]
    assert "got string, want integer" in end.reasons[0]


def test_a_chart_that_was_not_published_is_named(cluster: str, apply_stack: ApplyStack) -> None:
    end = apply_stack("no-chart", {"Web": _release(cluster, "absent", "s3://nowhere/absent.zip")})
    assert "the chart asset s3://nowhere/absent.zip was not published" in end.reasons[0]


@pytest.mark.parametrize("kind", ["KubernetesPatch", "KubernetesObjectValue"])
def test_what_needs_live_objects_is_refused_rather_than_pretended(
    kind: str, cluster: str, apply_stack: ApplyStack
) -> None:
    properties = {"ServiceToken": "none", "ClusterName": cluster}
    end = apply_stack(f"live-{kind}", {"Live": (f"Custom::AWSCDK-EKS-{kind}", properties)})
    assert "needs a running cluster" in end.reasons[0]


def test_a_custom_resource_whose_function_crashes_fails_at_once(
    client: Client, apply_stack: ApplyStack
) -> None:
    """Without the patch the stack waits an hour for an answer, and this test runs into its time limit."""
    function = client("lambda").create_function(
        FunctionName="crashing",
        Runtime="python3.11",
        Handler="index.handler",
        Role="arn:aws:iam::123456789012:role/any",
        Code={
            "ZipFile": _zip({"index.py": "def handler(event, context):\n    raise OSError('no cheese')\n"})
        },
    )
    end = apply_stack("crash", {"Broken": ("Custom::Broken", {"ServiceToken": function["FunctionArn"]})})
    assert end.status == "ROLLBACK_COMPLETE"
    assert "crashing failed: " in end.reasons[0]
    assert "no cheese" in end.reasons[0]


def test_a_stub_refuses_what_lacks_a_required_property(apply_stack: ApplyStack) -> None:
    end = apply_stack("stub", {"Nat": ("AWS::EC2::NatGateway", {})})
    assert "AWS::EC2::NatGateway Nat lacks SubnetId" in end.reasons[0]
