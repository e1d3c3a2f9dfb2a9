"""The folder of a Helm chart that is deployed as an asset."""

from __future__ import annotations

import tarfile
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from inference_catalog.chart_staging import stage_chart
from inference_catalog.charts import Chart


def chart_folder(scope: Construct, chart: Chart) -> Path | None:
    """Return the folder to deploy: this library's chart with its dependencies, or an unpacked chart archive.

    Copies are placed in the cloud assembly, because CDK's handler accepts a chart only as a zipped folder.

    Parameters
    ----------
    scope
        Construct that deploys the chart.
    chart
        The chart.

    Returns
    -------
    Path or None
        None if the chart is pulled from its repository at deployment.
    """
    stage = cdk.Stage.of(scope)
    if stage is None:
        raise ValueError(f"{scope.node.path} is not part of an app")
    folder = Path(stage.outdir) / "charts"
    if chart.archive is None:
        return stage_chart(chart.directory, folder) if chart.directory else None
    target = folder / chart.archive.stem
    with tarfile.open(chart.archive) as archive:
        archive.extractall(target, filter="data")
    [unpacked] = target.iterdir()
    return unpacked
