"""Helm, the very one that CDK runs at deployment, on the control plane of the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from inference_blueprints import tools
from inference_constructs.eks.inference_cluster import LAYER_HELM, PROGRAM
from inference_local.control_plane.control_plane import ControlPlane


class HelmError(Exception):
    """Helm failed; the text is what it said."""


def helm(control_plane: ControlPlane, namespace: str, *arguments: str, program: Path | None = None) -> None:
    """Run helm, or another program with its arguments, in a namespace."""
    options = ["--kubeconfig", str(control_plane.kubeconfig), "--namespace", namespace]
    environment = {"HOME": str(control_plane.run_directory), "PATH": os.environ.get("PATH", os.defpath)}
    command = [str(program or tools.helm()), *arguments, *options]
    result = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if result.returncode:
        raise HelmError(result.stderr)


def deployed_helm(folder: Path) -> Path:
    """Write the program `helm` of the deployment's layer, which runs the one of CDK's layer."""
    program = folder / "helm"
    program.write_text(PROGRAM.replace(LAYER_HELM, str(tools.helm())))
    program.chmod(0o755)
    return program
