"""Copies packages of this project, and the contracts that they import, into the folder of an asset."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from inference_blueprints import contracts

_CONTRACTS = Path(contracts.__file__).parent


def stage_packages(packages: tuple[Path, ...], directory: Path, library: Sequence[str] = ()) -> None:
    """Copy packages and `inference_blueprints.contracts` so that `directory` can be an import path.

    Parameters
    ----------
    packages
        Folders of the packages. The copies keep their names.
    directory
        Existing folder for the copies.
    library
        Further packages of `inference_blueprints` that they import, such as ``gpu_health``.
    """
    for package in packages:
        shutil.copytree(package, directory / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    copied = directory / _CONTRACTS.parent.name
    copied.mkdir()
    shutil.copy(_CONTRACTS.parent / "__init__.py", copied)
    for name in (_CONTRACTS.name, *library):
        origin = _CONTRACTS.parent / name
        shutil.copytree(origin, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
