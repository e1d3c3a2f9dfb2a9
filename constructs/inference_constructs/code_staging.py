"""Copies programs, and what they import of this project, into the folder of an asset."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import inference_contracts
import inference_decisions
from inference_runtime.imported_files import imported_modules, needed_files

#: The packages from which a program gets the modules that it imports, with the folder above each.
_SHARED = {
    each.__name__: Path(str(each.__file__)).parents[1] for each in (inference_contracts, inference_decisions)
}


def stage_packages(packages: tuple[Path, ...], directory: Path) -> None:
    """Copy packages, and what they import of this project, so that `directory` can be an import path.

    A change of a contract that a program does not import leaves its asset as it is.

    Parameters
    ----------
    packages
        Folders of the packages. The copies keep their names.
    directory
        Existing folder for the copies.
    """
    for package in packages:
        shutil.copytree(package, directory / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    programs = [file for package in packages for file in package.rglob("*.py")]
    imported = (name for file in programs for name in imported_modules(file, _SHARED))
    for relative, file in needed_files(imported, _SHARED).items():
        for each in (file, *_data_of(file)):
            target = directory / relative.with_name(each.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(each, target)


def _data_of(module: Path) -> Iterator[Path]:
    """Yield the files beside a module that it names: what it reads."""
    text = module.read_text(encoding="utf-8")
    for each in module.parent.iterdir():
        if each.is_file() and each.suffix != ".py" and f'"{each.name}"' in text:
            yield each
