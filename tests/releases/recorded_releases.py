"""Cloud assemblies of earlier releases, recorded by ``scripts/record_release.py``."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import files
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
_TEMPLATE = ".template.json"
#: Stands for the archives of kubectl, Helm and the AWS CLI, which no test needs and which have 60 MB.
_EMPTY_ZIP = b"PK\x05\x06" + bytes(18)


@dataclass(frozen=True)
class RecordedRelease:
    """The assemblies of some shipped blueprints, as a release synthesised them.

    Parameters
    ----------
    archive
        The recorded file. Its name is the commit.
    """

    archive: Path

    @property
    def commit(self) -> str:
        """The commit of the release."""
        return self.archive.name.removesuffix(".tar.xz")

    @cached_property
    def blueprints(self) -> list[str]:
        """Names of the recorded blueprints."""
        with tarfile.open(self.archive) as archive:
            return sorted({name.split("/")[1] for name in archive.getnames() if name.startswith("stacks/")})

    def templates(self, blueprint: str) -> Mapping[str, dict[str, Any]]:
        """Return the templates of a blueprint by the name of the stack."""
        with tarfile.open(self.archive) as archive:
            return {
                Path(member.name).name.removesuffix(_TEMPLATE): json.load(content)
                for member in archive
                if member.name.startswith(f"stacks/{blueprint}/") and member.name.endswith(_TEMPLATE)
                if (content := archive.extractfile(member))
            }

    def assembly(self, blueprint: str, folder: Path) -> Path:
        """Write the assembly of a blueprint, with its code and charts, into a new folder.

        Code of other projects that the functions use comes from the installed packages.
        """
        with tarfile.open(self.archive) as archive:
            archive.extractall(folder.with_suffix(".release"), filter="data")
        unpacked = folder.with_suffix(".release")
        shutil.copytree(unpacked / "stacks" / blueprint, folder)
        packages = json.loads((unpacked / "packages.json").read_text("utf-8"))
        for file in folder.glob("*.assets.json"):
            for asset in json.loads(file.read_text("utf-8"))["files"].values():
                _restore(asset["source"]["path"], unpacked / "assets", folder, packages)
        for artefact in json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"].values():
            if name := artefact.get("additionalMetadataFile"):
                (folder / name).write_text("{}")
        shutil.rmtree(unpacked)
        return folder


def recorded_releases() -> list[RecordedRelease]:
    """Return every recorded release."""
    return [RecordedRelease(archive) for archive in sorted(FOLDER.glob("*.tar.xz"))]


def _restore(name: str, assets: Path, folder: Path, packages: Mapping[str, list[str]]) -> None:
    """Put an asset into an assembly, unless it is there."""
    if (folder / name).exists():
        return
    if name.endswith(".zip"):
        (folder / name).write_bytes(_EMPTY_ZIP)
        return
    shutil.copytree(assets / name, folder / name)
    for package in packages[name]:
        _install(package, folder / name)


def _install(package: str, folder: Path) -> None:
    """Copy the modules of an installed package."""
    for file in files(package) or ():
        if ".." in file.parts or file.parts[0].endswith(".dist-info") or file.suffix == ".pyc":
            continue
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(str(file.locate()), target)
