"""Where the charts of this library are, and the values of charts from registries."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    """Return a folder that an installed wheel carries in the package, and a checkout at its root."""
    installed = _PACKAGE / "_files" / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name


def helm_values_directory() -> Path:
    """Return the folder with one values template a chart and `charts.yaml`."""
    return _folder("helm_values")


def charts_directory() -> Path:
    """Return the folder of this library's own Helm charts."""
    return _folder("charts")
