"""The folder of a chart that is deployed as an asset."""

from __future__ import annotations

import tarfile
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from inference_blueprints.catalog.charts import Chart


def chart_folder(scope: Construct, chart: Chart) -> Path | None:
    """Return the folder to deploy: of a chart of this library its own, of a fetched one its unpacked archive.

    An archive is unpacked into the cloud assembly: CDK's handler takes a chart as a zipped folder only.

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
    if chart.archive is None:
        return chart.directory
    stage = cdk.Stage.of(scope)
    if stage is None:
        raise ValueError(f"{scope.node.path} is in no app")
    target = Path(stage.outdir) / "charts" / chart.archive.stem
    with tarfile.open(chart.archive) as archive:
        archive.extractall(target, filter="data")
    [folder] = target.iterdir()
    return folder
