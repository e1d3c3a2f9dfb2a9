"""The charts and their values lie beside this folder in a checkout, and in it in a source archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ChartFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Adds both folders: to a wheel below ``inference_catalog/_files``, to a source archive as they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Add the folders."""
        here = Path(self.root)
        place = "" if self.target_name == "sdist" else "inference_catalog/_files/"
        for name in ("charts", "helm_values"):
            folder = here / name if (here / name).is_dir() else here.parent / name
            build_data["force_include"][str(folder)] = place + name
