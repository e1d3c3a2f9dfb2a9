"""The one resolver of files that come with the library: blueprints and the CDK app."""

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def root() -> Path:
    """Return the folder that holds `app.py`, `blueprints/` and `stacks/`.

    A checkout is that folder itself; an installed wheel carries the same tree in `_files`.

    Returns
    -------
    Path
        Absolute path of the folder.
    """
    files = _PACKAGE / "_files"
    return files if files.is_dir() else _PACKAGE.parent


def blueprints_directory() -> Path:
    """Return the folder of the shipped blueprints."""
    return root() / "blueprints"


def schema_path() -> Path:
    """Return the generated JSON Schema of the blueprint."""
    return blueprints_directory() / "schema" / "blueprint.v1alpha1.json"
