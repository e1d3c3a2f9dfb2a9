"""A cloud assembly with edited templates, for one step of a deployment."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from inference_blueprints.operate.changes.findings import Held

_MANIFEST = "manifest.json"


def write_step(assembly: Path, folder: Path, held: Iterable[Held]) -> None:
    """Write an assembly in which some changes are held.

    The CDK uploads a template under its hash, and not at all if the bucket has that hash. So an edited
    template gets a new one.

    assembly: The assembly with all changes. It stays as it is.
    folder: A new folder on the same file system.
    """
    shutil.copytree(assembly, folder, copy_function=_link)
    manifest = (folder / _MANIFEST).read_text("utf-8")
    by_stack: dict[str, list[Held]] = {}
    for each in held:
        by_stack.setdefault(each.stack, []).append(each)
    for stack, changes in by_stack.items():
        path = folder / f"{stack}.template.json"
        template: dict[str, Any] = json.loads(path.read_text("utf-8"))
        for change in changes:
            change.edit(template)
        text = json.dumps(template, indent=1)
        _replace(path, text)
        assets = folder / f"{stack}.assets.json"
        document = json.loads(assets.read_text("utf-8"))
        [old] = [name for name, each in document["files"].items() if each["source"]["path"] == path.name]
        new = hashlib.sha256(text.encode()).hexdigest()
        _replace(assets, assets.read_text("utf-8").replace(old, new))
        manifest = manifest.replace(old, new)
    _replace(folder / _MANIFEST, manifest)


def _link(source: str, target: str) -> None:
    """Link a file, because assets are large."""
    os.link(source, target)


def _replace(path: Path, text: str) -> None:
    """Write a file that may be a link: the other file stays."""
    path.unlink()
    path.write_text(text, "utf-8")
