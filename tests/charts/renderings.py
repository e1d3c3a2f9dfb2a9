"""Renders our charts with the helm that installs them, each chart and set of values once per run."""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from inference_blueprints.tools import helm
from inference_catalog.charts import charts_directory, stage_chart

KUBERNETES_VERSION = "1.35"

Manifest = dict[str, Any]
Render = Callable[..., list[Manifest]]
RunHelm = Callable[..., subprocess.CompletedProcess[str]]
Staged = Callable[[str], str]


def run_helm(*words: str, values: Manifest) -> subprocess.CompletedProcess[str]:
    """Run helm with values."""
    # As CDK passes them on: what PyYAML leaves without quotes, such as `y`, Helm takes for a boolean.
    # CDK's function indents them. One line of a multiple of 4,096 bytes is empty to Helm 4.1.4.
    text = json.dumps(values, indent=2)
    command = [str(helm()), *words, "--values", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


class Renderer:
    """Renders charts, and keeps what helm printed by the content of the chart and the values.

    folder: Folder of this process for charts with their dependencies.
    shared: Folder for what helm printed. Other processes may use it, too.
    """

    def __init__(self, folder: Path, shared: Path) -> None:
        self._folder = folder
        self._shared = shared
        self._charts: dict[str, _Chart] = {}
        self._parsed: dict[Path, list[Manifest]] = {}

    def staged(self, chart: str) -> str:
        """Return the folder of a chart with its dependencies."""
        return str(self._chart(chart).folder)

    def render(
        self, values: Manifest, release: str = "release", chart: str = "dynamo-model"
    ) -> list[Manifest]:
        """Return the objects of a release."""
        key = json.dumps([self._chart(chart).digest, release, values])
        file = self._shared / f"{hashlib.sha256(key.encode()).hexdigest()}.yaml"
        if file not in self._parsed:
            if not file.exists():
                self._print(file, release, self.staged(chart), values)
            documents = yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
            self._parsed[file] = [manifest for manifest in documents if manifest]
        return copy.deepcopy(self._parsed[file])

    def _chart(self, name: str) -> _Chart:
        if name not in self._charts:
            self._charts[name] = _Chart(stage_chart(charts_directory() / name, self._folder))
        return self._charts[name]

    def _print(self, file: Path, release: str, folder: str, values: Manifest) -> None:
        words = ("--namespace", "inference", "--kube-version", KUBERNETES_VERSION)
        result = run_helm("template", release, folder, *words, values=values)
        assert result.returncode == 0, result.stderr
        # Renamed, so that no other process reads half of it.
        draft = self._folder / file.name
        draft.write_text(result.stdout, encoding="utf-8")
        draft.rename(file)


class _Chart:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def digest(self) -> str:
        """Digest of the names and contents of all files."""
        files = sorted(file for file in self.folder.rglob("*") if file.is_file())
        lines = [
            f"{file.relative_to(self.folder)} {hashlib.sha256(file.read_bytes()).hexdigest()}"
            for file in files
        ]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
