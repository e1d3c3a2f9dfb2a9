"""The folder of a chart that is deployed as an asset."""

from __future__ import annotations

import tarfile
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from inference_blueprints.catalog.chart_staging import stage_chart
from inference_blueprints.catalog.charts import Chart


def chart_folder(scope: Construct, chart: Chart) -> Path | None:
    """Return the folder to deploy: our own chart with its dependencies, or a chart's unpacked archive.

    Copies are made in the cloud assembly: CDK's handler accepts a chart only as a zipped folder.

    Parameters
    ----------
    scope
        Construct that deploys it.
    chart
        The chart.

    Returns
    -------
    Path or None
        None for a chart that is pulled from its repository at deployment.
    """
    stage = cdk.Stage.of(scope)
    if stage is None:
        raise ValueError(f"{scope.node.path} is in no app")
    folder = Path(stage.outdir) / "charts"
    if chart.archive is None:
        return stage_chart(chart.directory, folder) if chart.directory else None
    target = folder / chart.archive.stem
    with tarfile.open(chart.archive) as archive:
        archive.extractall(target, filter="data")
    [unpacked] = target.iterdir()
    return unpacked
