"""The Helm charts that a platform installs, from ``helm_values/charts.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

import yaml

from inference_blueprints import resources


@dataclass(frozen=True, slots=True)
class Chart:
    """One Helm chart at its pinned version.

    Parameters
    ----------
    name
        Key of the chart, and folder of its values template.
    version
        Version of the chart.
    namespace
        Kubernetes namespace that it is installed in.
    minimum_kubernetes
        Oldest Kubernetes version that it runs on, such as ``1.30``.
    repository
        Where it is: an ``oci://`` address with the chart's name, or the address of a chart repository;
        None for a chart of this library.
    directory
        Folder of a chart of this library; None for one from a repository.
    release
        Helm release; None where each deployment has its own.
    digest
        SHA-256 of the chart's archive, ``sha256:…``; None while it is not known.
    oldest
        Oldest version that the values template here fits; None for the version itself.
    archive
        The chart's archive on this machine, deployed as an asset; None where it is pulled at deployment.
    """

    name: str
    version: str
    namespace: str
    minimum_kubernetes: str
    repository: str | None = None
    directory: Path | None = None
    release: str | None = None
    digest: str | None = None
    oldest: str | None = None
    archive: Path | None = None


@cache
def charts() -> Mapping[str, Chart]:
    """Return chart by name.

    Returns
    -------
    Mapping[str, Chart]
        In the order in which they are installed.
    """
    document = yaml.load(
        (resources.helm_values_directory() / "charts.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
    )
    return MappingProxyType({name: _chart(name, entry) for name, entry in document.items()})


def _chart(name: str, entry: Mapping[str, str | None]) -> Chart:
    """Turn one entry of the file into a chart; a key that is not known is a TypeError."""
    words = dict(entry)
    path = words.pop("path", None)
    return Chart(
        name=name,
        minimum_kubernetes=words.pop("minimumKubernetes") or "",
        directory=resources.charts_directory() / path if path else None,
        **words,  # type: ignore[arg-type]
    )
