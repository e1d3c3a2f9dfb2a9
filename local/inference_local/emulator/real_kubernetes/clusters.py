"""Starts a control plane for each EKS cluster.

ministack runs k3s in a Docker container for each cluster. Here, `ControlPlane` replaces the container. It
runs
the same API server as EKS. The API server authenticates IAM tokens with ministack's webhook, and the
cluster's
access entries grant permissions.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ministack.core.responses import get_account_id, get_region
from ministack.services import eks
from ministack.services.cloudformation import provisioners

from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_local.control_plane.control_plane import LOOPBACK, ControlPlane

RESOURCE_TYPE = "AWS::EKS::Cluster"
_POLL_SECONDS = 0.1
_PLAIN_CREATE = provisioners._eks_cluster_create


@dataclass(frozen=True)
class Host:
    """A control plane with the interface of a Docker container."""

    id: str
    """Name that ministack stores."""
    plane: ControlPlane

    def stop(self, timeout: float) -> None:  # noqa: ARG002 - as a Docker client calls it
        """End it at once, without a grace period."""
        self.plane.stop()

    def remove(self, **_: Any) -> None:
        """Do nothing. The files are part of the run folder."""


class Hosts:
    """The control planes of all clusters, with the interface of a Docker daemon.

    directory: Where each has its folder.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._hosts: dict[str, Host] = {}
        self._addresses: dict[int, str] = {}

    @property
    def containers(self) -> Hosts:
        """Return this object, which replaces the part of a Docker client with `get`."""
        return self

    def get(self, identifier: str) -> Host:
        """Return a control plane by the name that ministack stores."""
        return self._hosts[identifier]

    def of(self, cluster: str) -> Host:
        """Return the control plane of a cluster."""
        return self._hosts[eks._clusters[cluster]["_docker_id"]]

    def start(self, _: Any, options: Mapping[str, Any], __: bytes | None, webhook: bytes) -> Host:
        """Start a control plane.

        options: Options of the container: its name, and the port that identifies the cluster.
        webhook: Configuration of the webhook that authenticates tokens.
        """
        name = f"{options['name']}-{time.monotonic_ns()}"
        directory = self._directory / name
        directory.mkdir(parents=True)
        configuration = directory / "token-webhook.yaml"
        configuration.touch(mode=0o600)
        configuration.write_bytes(webhook)
        plane = ControlPlane(
            directory,
            report=print,
            api_server_flags=(
                f"--authentication-token-webhook-config-file={configuration}",
                "--authentication-token-webhook-version=v1",
                # A removed access entry must not stay cached for the default of two minutes.
                "--authentication-token-webhook-cache-ttl=1s",
            ),
        )
        plane.__enter__()
        self._hosts[name] = host = Host(name, plane)
        self._addresses[options["ports"]["6443/tcp"]] = plane.address
        return host

    def stop(self) -> None:
        """End every control plane."""
        for host in self._hosts.values():
            host.plane.stop()

    def address(self, port: int) -> str:
        """Return the URL of the cluster that ministack identifies by a port. None until it listens."""
        return self._addresses.get(port, "")


def _certificate(host: Host) -> str:
    return base64.b64encode(host.plane.authority.certificate.read_bytes()).decode()


def _execute(host: Host, command: Sequence[str]) -> tuple[int, str]:
    """Run kubectl as administrator, as ministack does inside a container."""
    _, *arguments = command
    try:
        return 0, host.plane.kubectl.run(*arguments)
    except KubectlFailed as failure:
        return 1, str(failure)


def _apply_rights(host: Host, objects: Sequence[Mapping[str, Any]]) -> None:
    host.plane.kubectl.apply(objects)


def _create(logical_id: str, properties: Mapping[str, Any], stack: str) -> tuple[str, dict[str, str]]:
    """Create a cluster and wait until its API server applies the permissions of its access entries."""
    name, _ = _PLAIN_CREATE(logical_id, properties, stack)
    cluster = eks._clusters[name]
    while cluster["status"] != "ACTIVE":
        time.sleep(_POLL_SECONDS)
    if not cluster["_docker_id"]:
        eks._delete_cluster(name)
        raise RuntimeError(f"the control plane of {name} did not start; see the emulator's log")
    eks._reconcile_access_policy_rbac(name, get_account_id(), get_region())
    return name, provisioners._eks_cluster_attrs(cluster)


def apply(directory: Path) -> Hosts:
    """Register control planes in the emulator's EKS."""
    hosts = Hosts(directory)
    eks._get_docker = lambda: hosts
    eks._k3s_gateway_host = lambda *_: LOOPBACK
    eks._start_k3s_container = hosts.start
    eks._stop_all_k3s = hosts.stop
    eks._cluster_endpoint = hosts.address
    eks._extract_ca_cert = _certificate
    eks._k3s_exec = _execute
    eks._apply_access_policy_rbac = _apply_rights
    provisioners._eks_cluster_create = _create
    provisioners._RESOURCE_HANDLERS[RESOURCE_TYPE]["create"] = _create
    return hosts
