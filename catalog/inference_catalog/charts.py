"""The Helm charts that a platform installs: where they are, their pins, values and folders for Helm."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import yaml

from inference_catalog.entry_builder import without_notes
from inference_contracts.records import dataclass

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """Return a folder that an installed wheel carries in the package, and a checkout at its root."""
    installed = _PACKAGE / "_files" / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name


def helm_values_directory() -> Path:
    """Return the folder with one values template a chart and `charts.yaml`."""
    return _folder("helm_values")


def charts_directory() -> Path:
    """Return the folder of this library's own Helm charts."""
    return _folder("charts")


_LOCAL = "file://"


def stage_chart(chart: Path, folder: Path) -> Path:
    """Return the folder of a chart with its local dependencies.

    Helm looks for dependencies in the folder ``charts/`` of a chart. The dependencies of this library's
    charts are folders beside the chart, and its ``Chart.yaml`` refers to them as ``file://../<name>``. A
    chart with dependencies is copied, and they are copied into it. A chart without dependencies is returned
    unchanged.

    Parameters
    ----------
    chart
        Folder of the chart.
    folder
        Folder for the copy. An earlier copy is replaced.

    Raises
    ------
    ValueError
        If a dependency is not a local folder.
    """
    dependencies = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8")).get("dependencies", [])
    if not dependencies:
        return chart
    copy = folder / chart.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(chart, copy)
    for dependency in dependencies:
        name, repository = dependency["name"], dependency["repository"]
        if not repository.startswith(_LOCAL):
            raise ValueError(
                f"{chart / 'Chart.yaml'}: dependency '{name}' is at {repository}, allowed are local folders "
                f"({_LOCAL}../<name>); copy it to {chart.parent}"
            )
        shutil.copytree(chart / repository.removeprefix(_LOCAL), copy / "charts" / name)
    return copy


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
