"""The whole life of an app: deployed, changed and destroyed by the real CDK command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.operate.cloudformation.stack_events import ResourceEvent, resource_counts
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import deploy, destroy
from tests.local.emulator import sample_app


def _recorded(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        str(file.relative_to(folder)): yaml.safe_load(file.read_text()) for file in folder.rglob("*.yaml")
    }


def _outputs(cloudformation: Any, stack: str) -> dict[str, str]:
    outputs = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["Outputs"]
    return {output["OutputKey"]: output["OutputValue"] for output in outputs}


def _deploy(emulator: Emulator, assembly: Path) -> list[ResourceEvent]:
    events: list[ResourceEvent] = []
    log_path = assembly.with_suffix(".log")
    deploy(emulator, assembly, log_path=log_path, on_line=lambda _: None, on_event=events.append)
    return events


def test_an_app_is_deployed_changed_and_destroyed(
    emulator: Emulator, client: Callable[[str], Any], tmp_path: Path
) -> None:
    first = sample_app.synthesise(tmp_path / "first", replicas=2, extra=True)

    events = _deploy(emulator, first)

    completed = [event.resource for event in events if event.is_complete]
    assert len(completed) == len(set(completed)) == sum(resource_counts(first).values())
    outputs = _outputs(client("cloudformation"), "sample-Cluster")
    recorded = _recorded(emulator.records_directory / outputs["ClusterName"])
    # A weak reference across stacks (Fn::GetStackOutput) reached the manifest as a value.
    assert recorded["default/configmap-network.yaml"]["data"]["vpc"].startswith("vpc-")
    # Real helm rendered the chart that was published as an asset.
    assert recorded["web/deployment.apps-web.yaml"]["spec"]["replicas"] == 2
    assert "default/configmap-extra.yaml" in recorded
    # The chart of a registry is recorded, and says that it was not rendered.
    states = {release.name: release.rendered for release in emulator.recorded_releases()}
    assert states == {"web": True, "karpenter": False}
    assert recorded["_releases/kube-system.karpenter.yaml"]["values"]["settings"]["clusterName"]

    client("s3").put_object(Bucket=outputs["BucketName"], Key="results/1.json", Body=b"{}")
    _deploy(emulator, sample_app.synthesise(tmp_path / "second", replicas=3, extra=False))

    recorded = _recorded(emulator.records_directory / outputs["ClusterName"])
    assert recorded["web/deployment.apps-web.yaml"]["spec"]["replicas"] == 3
    assert "default/configmap-extra.yaml" not in recorded, "an object that is no longer named is pruned"

    destroy(emulator, first, log_path=tmp_path / "destroy.log", on_line=lambda _: None)

    assert not _recorded(emulator.records_directory / outputs["ClusterName"]), "the cluster is gone"
    buckets = [bucket["Name"] for bucket in client("s3").list_buckets()["Buckets"]]
    assert outputs["BucketName"] not in buckets, "a bucket with objects is emptied and deleted"
