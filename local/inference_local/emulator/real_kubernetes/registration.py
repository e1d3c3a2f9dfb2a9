"""Registers real control planes in the emulator's EKS."""

from __future__ import annotations

from pathlib import Path

from inference_local.emulator.real_kubernetes import (
    clusters,
    encrypted_transport,
    lambda_programs,
    node_groups,
)
from inference_local.emulator.real_kubernetes.access_entries import register_access_entries
from inference_local.emulator.real_kubernetes.eks_add_ons import register_add_ons
from inference_local.emulator.real_kubernetes.registry_charts import write_charts


def register_real_kubernetes(directory: Path) -> None:
    """Make EKS clusters real, and let CDK's handler access them.

    Parameters
    ----------
    directory
        Folder for control planes, layers and charts. It is created.
    """
    charts = directory / "charts"
    write_charts(charts, print)
    encrypted_transport.apply()
    lambda_programs.apply(directory / "lambda", charts)
    register_access_entries()
    hosts = clusters.apply(directory / "clusters")
    node_groups.apply(hosts)
    register_add_ons(hosts)
