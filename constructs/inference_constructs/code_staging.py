"""The code of programs: the project's own with what it imports, and packages that Lambda does not provide.

The packages are copied from this virtual environment. Synthesis then needs neither a container engine nor a
package registry.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_

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

    packages: Folders of the packages. The copies keep their names.
    directory: Existing folder for the copies.
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


# Compiled files fit only one Python version and processor. Each of the packages works without them.
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.so", "*.pyi", "*.c", "py.typed")


@jsii.implements(cdk.ILocalBundling)
class _Copying:
    """Copies code and packages into the asset's folder.

    folders: The project's own packages.
    packages: Import names of installed packages.
    documents: Content of additional files, by file name.
    """

    def __init__(
        self,
        folders: tuple[Path, ...],
        packages: Sequence[str],
        documents: Mapping[str, str],
    ) -> None:
        self._folders = folders
        self._packages = packages
        self._documents = documents

    def try_bundle(self, output_dir: str, *, image: Any, **_: Any) -> bool:  # noqa: ARG002 - jsii's
        """Copy everything into the folder."""
        stage_packages(self._folders, Path(output_dir))
        for name in self._packages:
            _copy_package(name, Path(output_dir))
        for name, content in self._documents.items():
            (Path(output_dir) / name).write_text(content, "utf-8")
        return True


def function_code(
    *folders: Path,
    packages: Sequence[str] = (),
    documents: Mapping[str, str] | None = None,
) -> lambda_.Code:
    """Return code for functions in Python: packages, and what they import of this project.

    Parameters
    ----------
    folders
        The project's own packages.
    packages
        Import names of installed packages that the code needs. Lambda itself provides boto3.
    documents
        Content of additional files, by file name. It must be known at synthesis, without CDK tokens.
    """
    return lambda_.Code.from_asset(
        str(folders[0]),
        asset_hash_type=cdk.AssetHashType.OUTPUT,
        bundling=bundled_by(
            _Copying(folders, packages, documents or {}),
            *map(str, folders),
            *packages,
            *(f"{name}: {content}" for name, content in (documents or {}).items()),
        ),
    )


def bundled_by(local: cdk.ILocalBundling, *facts: str) -> cdk.BundlingOptions:
    """Return options of an asset whose files are written by `local`.

    CDK writes assets with the same path and the same options once, and sees nothing of `local`
    (`calculateCacheKey` of aws-cdk-lib's ``core/lib/asset-staging``). So whatever makes the files of an asset
    differ from those of others stands in its command, which nobody runs.

    Parameters
    ----------
    local
        What writes the files.
    facts
        What its files depend on besides the asset's path.
    """
    # CDK requires an image but never pulls it.
    return cdk.BundlingOptions(
        image=cdk.DockerImage.from_registry("none"), local=local, command=list(facts) or None
    )


def _copy_package(name: str, directory: Path) -> None:
    """Copy an installed package or a single-file module."""
    specification = importlib.util.find_spec(name)
    if specification is None or specification.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed in this virtual environment; run `make setup`")
    origin = Path(specification.origin)
    if specification.submodule_search_locations is None:
        shutil.copy(origin, directory)
    else:
        shutil.copytree(origin.parent, directory / name, ignore=_LEFT_OUT)
