"""Helm releases of pinned charts."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from inference_catalog.charts import Chart, stage_chart


def chart_folder(scope: Construct, chart: Chart) -> Path | None:
    """Return the folder to deploy: this library's chart with its dependencies, or an unpacked chart archive.

    Copies are placed in the cloud assembly, because CDK's handler accepts a chart only as a zipped folder.

    scope: Construct that deploys the chart.
    Returns: None if the chart is pulled from its repository at deployment.
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


#: After a longer wait, a failed release stays in pending-upgrade
#: (https://github.com/aws/aws-cdk/issues/22257).
_WAIT_SECONDS = 600


class HelmRelease(eks.HelmChart):
    """A Helm release of a chart from its repository, from a fetched archive, or from this library.

    Parameters
    ----------
    cluster
        Cluster in which it is installed.
    chart
        The chart, with version and namespace.
    values
        Values of the release.
    release
        Name of the release; None for the chart's default.
    wait
        Whether the deployment waits until the pods are ready. Do not wait for pods that need accelerators.
    create_namespace
        Whether Helm creates the chart's namespace.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: eks.ICluster,
        chart: Chart,
        values: Mapping[str, Any],
        release: str | None = None,
        wait: bool = False,
        create_namespace: bool = False,
    ) -> None:
        folder = chart_folder(scope, chart)
        repository = None if folder else chart.repository
        super().__init__(
            scope,
            construct_id,
            cluster=cluster,
            chart=chart.name if repository else None,
            chart_asset=s3_assets.Asset(scope, f"{construct_id}Chart", path=str(folder)) if folder else None,
            # CDK's handler expects the full OCI address, including the chart's name.
            repository=repository,
            version=chart.version if repository else None,
            namespace=chart.namespace,
            release=release or chart.release,
            values=dict(values) or None,
            create_namespace=create_namespace,
            timeout=cdk.Duration.seconds(_WAIT_SECONDS) if wait else None,
            wait=wait,
        )
