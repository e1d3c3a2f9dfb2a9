"""The Helm charts that a platform installs, from ``helm_values/charts.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

import yaml

from inference_catalog.pin_notes import without_notes
from inference_catalog.resources import charts_directory, helm_values_directory


@dataclass(frozen=True, slots=True)
class Chart:
    """A Helm chart at its pinned version."""

    name: str
    """Key of the chart, and folder of its values template."""
    version: str
    """Version of the chart."""
    namespace: str
    """Kubernetes namespace of the release."""
    minimum_kubernetes: str
    """Oldest supported Kubernetes version, such as ``1.30``."""
    repository: str | None = None
    """An ``oci://`` address with the chart's name, or the address of a chart repository; None for a chart of
    this library."""
    directory: Path | None = None
    """Folder of a chart of this library; None for one from a repository."""
    release: str | None = None
    """Name of the Helm release; None if each deployment has its own."""
    digest: str | None = None
    """SHA-256 of the chart's archive, ``sha256:…``; None if it is unknown."""
    oldest: str | None = None
    """Oldest version that the values template supports; None if it supports only `version`."""
    archive: Path | None = None
    """Path of a local archive, deployed as an asset; None if the chart is pulled at deployment."""


@cache
def charts() -> Mapping[str, Chart]:
    """Return all charts by name.

    Returns
    -------
    Mapping[str, Chart]
        In the order in which they are installed.
    """
    document = yaml.load(
        (helm_values_directory() / "charts.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
    )
    return MappingProxyType({name: _chart(name, entry) for name, entry in document.items()})


def _chart(name: str, entry: Mapping[str, str | None]) -> Chart:
    """Convert one entry of the file. An unknown key raises a TypeError."""
    words = without_notes(entry)
    path = words.pop("path", None)
    return Chart(
        name=name,
        minimum_kubernetes=words.pop("minimumKubernetes") or "",
        directory=charts_directory() / path if path else None,
        **words,  # type: ignore[arg-type]
    )
