"""Says what of an emulated deployment is real, emulated and stubbed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from inference_blueprints.local.emulator.records import RecordedRelease
from inference_blueprints.local.emulator.resource_handlers import stubbed_resource_types
from inference_blueprints.local.parts import Part


def describe(assembly_directory: Path, releases: tuple[RecordedRelease, ...]) -> tuple[Part, ...]:
    """Return the lines of the table of parts for a deployment to the emulator.

    Parameters
    ----------
    assembly_directory
        The synthesised app that was deployed.
    releases
        The Helm releases that the emulator accepted.
    """
    counts = _resource_counts(assembly_directory)
    stubs = stubbed_resource_types()
    return (
        Part("Templates", "real", f"{sum(counts.values())} resources of the app that deploys to an account"),
        Part("Deployment", "real", "cdk bootstrap and cdk deploy by the pinned AWS CDK command line"),
        Part(
            "AWS",
            "emulated",
            f"CloudFormation and the services behind it by ministack {version('ministack')}",
        ),
        *_kubernetes(releases),
        *(
            Part(resource_type, "stubbed", f"{counts[resource_type]}: {stubs[resource_type]}")
            for resource_type in sorted(counts.keys() & stubs.keys())
        ),
    )


def _kubernetes(releases: tuple[RecordedRelease, ...]) -> Iterator[Part]:
    yield Part(
        "Kubernetes",
        "stubbed",
        "no API server: each manifest is checked against the schema of its kind and recorded",
    )
    rendered = [release.name for release in releases if release.rendered]
    recorded = [f"{release.name} {release.version}" for release in releases if not release.rendered]
    if rendered:
        yield Part(
            "Charts of this library", "real", f"rendered by helm, each object checked: {', '.join(rendered)}"
        )
    if recorded:
        yield Part(
            "Charts of others",
            "stubbed",
            f"release and values recorded, chart not pulled: {', '.join(recorded)}",
        )


def _resource_counts(assembly_directory: Path) -> Counter[str]:
    templates = (json.loads(path.read_text()) for path in assembly_directory.glob("*.template.json"))
    return Counter(resource["Type"] for template in templates for resource in template["Resources"].values())
