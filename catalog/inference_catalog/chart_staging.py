"""Prepares folders of this library's charts, including their dependencies, for Helm."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

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
