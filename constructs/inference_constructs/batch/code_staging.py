"""Copies programs of this project, and the contracts that they import, into one folder of an asset."""

from __future__ import annotations

import shutil
from pathlib import Path

from inference_blueprints import contracts

_CONTRACTS = Path(contracts.__file__).parent


def stage_packages(packages: tuple[Path, ...], directory: Path) -> None:
    """Copy packages, `inference_blueprints.contracts` among them, so that `directory` is an import path.

    Parameters
    ----------
    packages
        Folders of packages. They keep their names.
    directory
        Existing folder that receives the copies.
    """
    for package in packages:
        shutil.copytree(package, directory / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    library = directory / _CONTRACTS.parent.name
    library.mkdir()
    shutil.copy(_CONTRACTS.parent / "__init__.py", library)
    shutil.copytree(_CONTRACTS, library / _CONTRACTS.name, ignore=shutil.ignore_patterns("__pycache__"))
