"""Webhooks of controllers that are programs of this machine: the API server calls them on loopback."""

from __future__ import annotations

import base64
import copy
import shutil
from pathlib import Path

from inference_local.control_plane.control_plane import LOOPBACK, ControlPlane
from tests.cluster.objects import KubernetesObject


def certificate_folder(control_plane: ControlPlane, name: str) -> Path:
    """A folder of the run with the certificate and key of a controller, named as Kubernetes mounts them.

    It may be there: several files of tests run the same controller on one control plane, one after the other.
    """
    folder = control_plane.run_directory / name
    folder.mkdir(exist_ok=True)
    pair = control_plane.authority.issue(f"{name}-webhooks")
    shutil.copy(pair.certificate, folder / "tls.crt")
    shutil.copy(pair.key, folder / "tls.key")
    return folder


def on_loopback(
    configuration: KubernetesObject, name: str, control_plane: ControlPlane, port: int
) -> KubernetesObject:
    """A webhook configuration under another name, whose webhooks are called at a port of this machine."""
    found = copy.deepcopy(configuration)
    found["metadata"]["name"] = name
    bundle = base64.b64encode(control_plane.authority.certificate.read_bytes()).decode()
    for webhook in found["webhooks"]:
        path = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"url": f"https://{LOOPBACK}:{port}{path}", "caBundle": bundle}
    return found
