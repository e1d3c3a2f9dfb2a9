"""The one resolver of files that come with the library: blueprints, charts, values, the CDK app."""

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def root() -> Path:
    """Return the folder that holds `app.py`, `blueprints/`, `charts/`, `helm_values/` and `stacks/`.

    A checkout is that folder itself; an installed wheel carries the same tree in `_house`.

    Returns
    -------
    Path
        Absolute path of the folder.
    """
    house = _PACKAGE / "_house"
    return house if house.is_dir() else _PACKAGE.parent


def blueprints_directory() -> Path:
    """Return the folder of the shipped blueprints."""
    return root() / "blueprints"


def schema_path() -> Path:
    """Return the generated JSON Schema of the blueprint."""
    return blueprints_directory() / "schema" / "blueprint.v1alpha1.json"


def helm_values_directory() -> Path:
    """Return the folder with one values template a chart and `charts.yaml`."""
    return root() / "helm_values"


def runtime_directory() -> Path:
    """Return the folder of the programs that run in the cloud."""
    return root() / "runtime"


def charts_directory() -> Path:
    """Return the folder of this library's own Helm charts."""
    return root() / "charts"
