"""Helm, the very one that CDK runs at deployment, on the control plane of the tests."""

from __future__ import annotations

import os
import subprocess

from inference_blueprints import tools
from inference_blueprints.local.control_plane.control_plane import ControlPlane


def helm(control_plane: ControlPlane, namespace: str, *arguments: str) -> None:
    """Run helm in a namespace."""
    command = [str(tools.helm()), "--kubeconfig", str(control_plane.kubeconfig), "--namespace", namespace]
    environment = {"HOME": str(control_plane.run_directory), "PATH": os.environ.get("PATH", os.defpath)}
    subprocess.run([*command, *arguments], env=environment, check=True, capture_output=True)
