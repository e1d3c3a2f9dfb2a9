"""The stack of streaming jobs on the emulator, where no broker and no job runs: its steps do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

import app
from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.source import shipped
from inference_contracts.streaming_job import StreamingJobConfiguration
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import deploy

APPLICATION = "streaming-shopper"


def put_up(
    emulator: Emulator, folder: Path, change: Callable[[dict[str, Any]], object] | None = None
) -> None:
    """Deploy the shipped blueprint's stack and those that it needs."""
    folder.mkdir()
    document = yaml.safe_load(shipped()["streaming-g6e"].read_text())
    document["spec"]["environment"]["account"] = emulator.account
    if change:
        change(document["spec"])
    (folder / "blueprint.yaml").write_text(yaml.safe_dump(document))
    app.synthesise(app.build_app(load_blueprint(str(folder / "blueprint.yaml")), outdir=folder / "cdk.out"))
    deploy(
        emulator,
        folder / "cdk.out",
        log_path=folder / "deploy.log",
        on_line=lambda _: None,
        on_event=lambda _: None,
        stacks=["streaming-Streaming"],
    )


def described(emulator: Emulator) -> dict[str, Any]:
    found: dict[str, Any] = emulator.client("kinesisanalyticsv2").describe_application(
        ApplicationName=APPLICATION, IncludeAdditionalDetails=True
    )["ApplicationDetail"]
    return found


def configuration(emulator: Emulator) -> tuple[str, StreamingJobConfiguration]:
    """Return the address that the application has, and the document that is there."""
    details = described(emulator)["ApplicationConfigurationDescription"]
    [group] = details["EnvironmentPropertyDescriptions"]["PropertyGroupDescriptions"]
    assert group["PropertyGroupId"] == "job"
    address = group["PropertyMap"]["configuration"]
    bucket, _, key = address.removeprefix("s3://").partition("/")
    body = emulator.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return address, StreamingJobConfiguration.from_json(body.decode())


def test_a_job_is_configured_started_and_restarted_by_a_change(emulator: Emulator, tmp_path: Path) -> None:
    put_up(emulator, tmp_path / "first")
    assert described(emulator)["ApplicationStatus"] == "RUNNING"
    first, job = configuration(emulator)
    assert job.kafka.bootstrap_servers.endswith(":9098")
    assert job.signal.store.port == 6379
    assert job.history.uri.endswith("/streaming-history/shopper")
    version = described(emulator)["ApplicationVersionId"]

    def ask_otherwise(spec: dict[str, Any]) -> None:
        spec["streaming"][0]["prompt"]["system"] = "Ja oder nein? \u00dcberlege."

    put_up(emulator, tmp_path / "second", ask_otherwise)
    second, job = configuration(emulator)
    assert second != first
    assert job.prompt.system == "Ja oder nein? \u00dcberlege."
    assert described(emulator)["ApplicationStatus"] == "RUNNING"
    assert described(emulator)["ApplicationVersionId"] > version
    snapshots = emulator.client("kinesisanalyticsv2").list_application_snapshots(ApplicationName=APPLICATION)
    assert len(snapshots["SnapshotSummaries"]) == 1
