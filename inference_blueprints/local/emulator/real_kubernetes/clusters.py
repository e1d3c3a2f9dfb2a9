"""Gives every EKS cluster a control plane of its own.

ministack runs k3s in a Docker container for each cluster. Here `ControlPlane` takes the container's place:
the same API server as on EKS, which asks ministack's webhook who the bearer of an IAM token is, and whose
rights are those of the cluster's access entries.
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

from inference_blueprints.deployment.kubernetes.kubectl import KubectlFailed
from inference_blueprints.local.control_plane.control_plane import LOOPBACK, ControlPlane

RESOURCE_TYPE = "AWS::EKS::Cluster"
_POLL_SECONDS = 0.1
_PLAIN_CREATE = provisioners._eks_cluster_create


@dataclass(frozen=True)
class Host:
    """A control plane, as ministack sees a container.

    Parameters
    ----------
    id
        Name that ministack keeps.
    """

    id: str
    plane: ControlPlane

    def stop(self, timeout: float) -> None:  # noqa: ARG002 - as a Docker client calls it
        """End it; nothing of it is worth a grace period."""
        self.plane.stop()

    def remove(self, **_: Any) -> None:
        """Do nothing: its files are part of the run folder."""


class Hosts:
    """The control planes of all clusters, as ministack sees a Docker daemon.

    Parameters
    ----------
    directory
        Where each has its folder.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._hosts: dict[str, Host] = {}
        self._addresses: dict[int, str] = {}

    @property
    def containers(self) -> Hosts:
        """Itself: the part of a Docker client that has `get`."""
        return self

    def get(self, identifier: str) -> Host:
        """Return one by the name that ministack keeps."""
        return self._hosts[identifier]

    def of(self, cluster: str) -> Host:
        """Return the control plane of a cluster."""
        return self._hosts[eks._clusters[cluster]["_docker_id"]]

    def start(self, _: Any, options: Mapping[str, Any], __: bytes | None, webhook: bytes) -> Host:
        """Start a control plane.

        Parameters
        ----------
        options
            What a container would be run with: a name, and the port that stands for the cluster.
        webhook
            Configuration of the webhook that authenticates tokens.
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
                # An access entry that is removed must not be believed for the usual two minutes.
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
        """Return where the cluster that ministack knows by a port listens; nothing before it does."""
        return self._addresses.get(port, "")


def _certificate(host: Host) -> str:
    return base64.b64encode(host.plane.authority.certificate.read_bytes()).decode()


def _execute(host: Host, command: Sequence[str]) -> tuple[int, str]:
    """Run what ministack runs inside a container: kubectl, as administrator."""
    _, *arguments = command
    try:
        return 0, host.plane.kubectl.run(*arguments)
    except KubectlFailed as failure:
        return 1, str(failure)


def _apply_rights(host: Host, objects: Sequence[Mapping[str, Any]]) -> None:
    host.plane.kubectl.apply(objects)


def _create(logical_id: str, properties: Mapping[str, Any], stack: str) -> tuple[str, dict[str, str]]:
    """Create a cluster and wait until its API server knows the rights of its access entries."""
    name, _ = _PLAIN_CREATE(logical_id, properties, stack)
    cluster = eks._clusters[name]
    while cluster["status"] != "ACTIVE":
        time.sleep(_POLL_SECONDS)
    if not cluster["_docker_id"]:
        eks._delete_cluster(name)
        raise RuntimeError(f"the control plane of {name} did not start; the emulator's log says why")
    eks._reconcile_access_policy_rbac(name, get_account_id(), get_region())
    return name, provisioners._eks_cluster_attrs(cluster)


def apply(directory: Path) -> Hosts:
    """Let the emulator's EKS start control planes.

    Parameters
    ----------
    directory
        Where each has its folder.
    """
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
