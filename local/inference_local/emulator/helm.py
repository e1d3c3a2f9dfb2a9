"""Renders a chart with real helm."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from inference_local.emulator.kubernetes import KubernetesRejection

_TIMEOUT_SECONDS = 60


def render(
    helm: Path,
    chart: Path,
    *,
    release: str,
    namespace: str,
    values: Mapping[str, Any],
    kubernetes_version: str,
) -> list[dict[str, Any]]:
    """Return the objects that a chart installs, including its custom resource definitions.

    chart: Folder of the chart.
    namespace: Namespace of the release.
    values: Values that override the chart's defaults. Helm enforces the chart's ``values.schema.json``.
    kubernetes_version: Version of the cluster in the chart's templates, such as ``1.35``.
    Raises KubernetesRejection if it does not render, with helm's message.
    """
    command = [
        *(str(helm), "template", release, str(chart), "--namespace", namespace),
        *("--kube-version", kubernetes_version, "--include-crds", "--values", "-"),
    ]
    result = subprocess.run(
        command,
        input=json.dumps(values),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if result.returncode:
        reason = " ".join(result.stderr.split())
        raise KubernetesRejection(f"helm cannot render release {release}: {reason}")
    return [document for document in yaml.safe_load_all(result.stdout) if document]
