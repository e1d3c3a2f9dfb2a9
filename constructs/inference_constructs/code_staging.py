"""Copies packages of this project, and the contracts that they import, into the folder of an asset."""

from __future__ import annotations

import shutil
from pathlib import Path

from inference_blueprints import contracts

_CONTRACTS = Path(contracts.__file__).parent


def stage_packages(packages: tuple[Path, ...], directory: Path) -> None:
    """Copy packages and `inference_blueprints.contracts` so that `directory` can be an import path.

    Parameters
    ----------
    packages
        Folders of the packages. The copies keep their names.
    directory
        Existing folder for the copies.
    """
    for package in packages:
        shutil.copytree(package, directory / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    library = directory / _CONTRACTS.parent.name
    library.mkdir()
    shutil.copy(_CONTRACTS.parent / "__init__.py", library)
    shutil.copytree(_CONTRACTS, library / _CONTRACTS.name, ignore=shutil.ignore_patterns("__pycache__"))
