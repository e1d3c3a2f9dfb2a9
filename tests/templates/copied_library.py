"""A copy of the library to which something is added, as docs/architecture.md says."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from import_graph import python_path

from inference_blueprints.resources import root
from tests.templates.conftest import BASE
from tests.templates.synthesis import CONTEXT

#: What the app reads. A test names the folders that it changes; the others are links.
_FOLDERS = (
    *("blueprints", "catalog", "cdk.json", "charts", "constructs", "contracts", "helm_values"),
    *("inference_blueprints", "runtime", "stacks"),
)


@dataclass(frozen=True)
class CopiedLibrary:
    """A copy, in which programs run as in a checkout."""

    place: Path

    @classmethod
    def make(
        cls,
        place: Path,
        *,
        changed: tuple[str, ...],
        added: Mapping[str, str],
        edits: tuple[tuple[str, str, str], ...],
    ) -> CopiedLibrary:
        """Copy the library into an empty folder and add to it.

        changed: Folders in which something is added.
        added: Texts of new files.
        edits: A file, what stands there once, and what is added before it.
        """
        for name in _FOLDERS:
            if name in changed:
                shutil.copytree(root() / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (place / name).symlink_to(root() / name)
        shutil.copy(root() / "app.py", place)  # which imports what lies beside the file that a link leads to
        for name, text in added.items():
            (place / name).write_text(text.lstrip())
        for name, anchor, text in edits:
            before = (place / name).read_text()
            assert before.count(anchor) == 1, f"{name} has no one place before {anchor!r}"
            (place / name).write_text(before.replace(anchor, text + anchor))
        return cls(place)

    def write_blueprint(self, name: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Write the base document after a change of its spec."""
        document = copy.deepcopy(dict(BASE))
        change(document["spec"])
        (self.place / f"{name}.yaml").write_text(yaml.safe_dump(document))

    def run(self, *arguments: str, **environment: str) -> str:
        """Run a program of the copy and return what it prints."""
        path = f"{python_path(self.place)}:{root() / 'scripts'}"
        ran = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": path, **environment},
            cwd=self.place,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def synthesise(self) -> Path:
        """Run the app with the blueprint `right` and return the folder of the templates."""
        output = self.place / "cdk.out"
        context = {**CONTEXT, "blueprint": "right.yaml"}
        self.run("app.py", CDK_CONTEXT_JSON=json.dumps(context), CDK_OUTDIR=str(output))
        return output
