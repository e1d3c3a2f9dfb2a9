"""The expected platform, read from the synthesised templates of a blueprint."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.synthesis import synthesise
from inference_contracts.records import dataclass

_TEMPLATE = ".template.json"
_RELEASE = "Custom::AWSCDK-EKS-HelmChart"
_ADD_ON = "AWS::EKS::Addon"

Template = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExpectedRelease:
    """A Helm release."""

    name: str
    namespace: str
    version: str


@dataclass(frozen=True, slots=True)
class SynthesisedPlatform:
    """All templates of a platform."""

    templates: Mapping[str, Template]
    """Templates by name of the stack."""
    releases: Mapping[str, ExpectedRelease]
    """Releases by name."""

    @property
    def add_ons(self) -> frozenset[str]:
        """Names of the EKS add-ons."""
        return frozenset(
            properties["AddonName"] for properties in _properties(self.templates.values(), _ADD_ON)
        )


def assemble(name_or_path: str) -> SynthesisedPlatform:
    """Synthesise a blueprint.

    name_or_path: Name of a shipped blueprint, or path of a YAML file.
    Raises UserError if the blueprint cannot be synthesised.
    """
    with tempfile.TemporaryDirectory() as folder:
        synthesise(name_or_path, Path(folder))
        return read_assembly(Path(folder))


def read_assembly(folder: Path) -> SynthesisedPlatform:
    """Read the output of ``cdk synth``.

    folder: The cloud assembly, including charts.
    """
    templates = {
        file.name.removesuffix(_TEMPLATE): json.loads(file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob(f"*{_TEMPLATE}"))
    }
    releases = [
        ExpectedRelease(
            name=properties["Release"],
            namespace=properties.get("Namespace", "default"),
            version=properties.get("Version") or _chart_version(folder, properties["ChartAssetURL"]),
        )
        for properties in _properties(templates.values(), _RELEASE)
    ]
    return SynthesisedPlatform(templates, {release.name: release for release in releases})


def _properties(templates: Any, resource_type: str) -> Iterator[dict[str, Any]]:
    """Iterate over the properties of all resources of a type."""
    for template in templates:
        for resource in template.get("Resources", {}).values():
            if resource["Type"] == resource_type:
                yield resource["Properties"]


def _chart_version(folder: Path, address: Any) -> str:
    """Return the version of a chart that is deployed as an asset; its address ends with the hash."""
    text = address["Fn::Sub"] if isinstance(address, dict) else address
    chart = folder / f"asset.{Path(text).stem}" / "Chart.yaml"
    return str(yaml.load(chart.read_text(encoding="utf-8"), yaml.CSafeLoader)["version"])
