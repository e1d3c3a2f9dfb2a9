"""Releases of third-party software: charts, engines, the nodes' operating system, EKS add-ons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from types import MappingProxyType

from inference_catalog.catalogue import shipped
from inference_catalog.charts import Chart, charts
from inference_catalog.engine import Engine
from inference_catalog.entry_builder import UnknownEntryError
from inference_catalog.operating_system import SystemName
from inference_contracts.records import dataclass

#: EKS add-ons that a platform may have. EKS chooses their versions unless a lock names one.
ADD_ONS = (
    "amazon-cloudwatch-observability",
    "aws-secrets-store-csi-driver-provider",
    "coredns",
    "eks-node-monitoring-agent",
    "eks-pod-identity-agent",
    "kube-proxy",
    "metrics-server",
    "vpc-cni",
)
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class NodeImage:
    """The image that nodes boot."""

    kubernetes: str
    """Minor version of their kubelet, such as ``1.35``; at most the control plane's."""
    bottlerocket: str
    al2023: str
    """`bottlerocket`, `al2023`: Release of each operating system, such as ``v1.66.0`` and ``v20261119``. The
    serving plan decides which one the nodes of a pool boot."""

    def release_of(self, system: SystemName) -> str:
        """Return the release of an operating system."""
        return self.bottlerocket if system == "bottlerocket" else self.al2023


@dataclass(frozen=True, slots=True)
class Releases:
    """The pinned versions of all third-party software."""

    bottlerocket: str
    al2023: str
    """`bottlerocket`, `al2023`: Releases of the nodes' operating systems, such as ``v1.66.0`` and
    ``v20261119``."""
    charts: Mapping[str, Chart]
    """Chart by name."""
    engines: Mapping[str, Engine]
    """Engine by the blueprint's key."""
    add_ons: Mapping[str, str | None]
    """Version by EKS add-on; None if EKS chooses it when the add-on is created."""
    held_pools: Mapping[str, NodeImage] = field(default_factory=dict)
    """Names of the pools whose nodes keep their current image."""
    recorded_engines: Mapping[str, Mapping[str, Engine]] = field(default_factory=dict)
    """Releases of engines that were recorded next to the blueprint, by engine and release."""

    def engine(self, name: str) -> Engine:
        """Return one engine; raises UnknownEntryError with close matches."""
        if name not in self.engines:
            raise UnknownEntryError("engine", name, self.engines)
        return self.engines[name]

    def engine_releases(self, name: str) -> Mapping[str, Engine]:
        """Return the releases of an engine that an image may have, by release.

        Those next to the blueprint come before the recorded ones of this library.
        """
        return {**shipped().engine_releases[name], **self.recorded_engines.get(name, {})}

    def release_of(self, system: SystemName) -> str:
        """Return the release of an operating system."""
        return self.bottlerocket if system == "bottlerocket" else self.al2023

    def node_image(self, pool: str, kubernetes: str) -> NodeImage:
        """Return the image that the nodes of a pool boot.

        Parameters
        ----------
        pool
            Name of the pool.
        kubernetes
            Version of the control plane. A held pool keeps its own.
        """
        return self.held_pools.get(pool) or NodeImage(kubernetes, self.bottlerocket, self.al2023)

    @property
    def registry_charts(self) -> Mapping[str, Chart]:
        """The charts from other publishers."""
        return {name: chart for name, chart in self.charts.items() if chart.repository}


@cache
def shipped_releases() -> Releases:
    """Return the default versions of this release of the library, which a lock may override."""
    catalogue = shipped()
    return Releases(
        bottlerocket=catalogue.operating_systems["bottlerocket"].version,
        al2023=catalogue.operating_systems["al2023"].version,
        charts=charts(),
        engines=catalogue.engines,
        add_ons=MappingProxyType(dict.fromkeys(ADD_ONS)),
    )


def version_order(version: str) -> tuple[int, ...]:
    """Return a sort key for the versions of one project.

    Parameters
    ----------
    version
        Such as ``1.35``, ``v0.5.30`` or ``v1.20.1-eksbuild.3``.
    """
    return tuple(int(number) for number in _NUMBER.findall(version))
